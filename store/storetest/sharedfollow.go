package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/store"
)

// testFollow checks that the commits of others arrive before a later update returns, each in one piece and with the
// values before it.
func testFollow(t *testing.T, h *handles) {
	all := h.three()
	update(t, all[0], puts("early=1", "empty=", "gone=1"))
	sh := newShadow(t, all[2], nil)
	sh.wants("early=1", "empty=", "gone=1")
	update(t, all[0], puts("a=1", "empty=x", "early="))
	update(t, all[1], func(tx store.Tx) error {
		return errors.Join(deletes("gone", "never was", "a")(tx), puts("b=1", "twice=1", "twice=2", "not=1")(tx),
			deletes("not")(tx))
	})
	settle(t, all[2])
	sh.wants("early=", "empty=x", "b=1", "twice=2")
	if err := all[0].Update(context.Background(),
		func(tx store.Tx) error { _ = puts("b=failed")(tx); return errWanted }); err != errWanted {
		t.Errorf("Update answers %v", err)
	}
	update(t, all[1], puts("c=1"))
	if err := sh.update(puts("own=1", "b=own")); err != nil {
		t.Error(err)
	}
	sh.wants("early=", "empty=x", "b=own", "twice=2", "c=1", "own=1")
}

// wants compares the shadow with records "key=value".
func (sh *shadow) wants(records ...string) {
	sh.t.Helper()
	m := NewModel()
	update(sh.t, m, puts(records...))
	if !sh.is(m.data) {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		sh.t.Errorf("the shadow differs by %q", difference(sh.data, m.data))
	}
}

// testFollowOnce checks that load cannot write, that a handle whose load failed is not followed, and that a second
// Follow is refused.
func testFollowOnce(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	apply := func([]store.Foreign) { t.Error("apply is called without a load") }
	err := all[1].Follow(t.Context(), func(tx store.Tx) error {
		if err := tx.Put([]byte("a"), nil); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("a write while loading: %v", err)
		}
		return errWanted
	}, apply)
	if err != errWanted {
		t.Errorf("Follow answers %v, not the error of its load", err)
	}
	update(t, all[0], puts("a=1"))
	settle(t, all[1])
	sh := newShadow(t, all[1], nil)
	if all[1].Follow(t.Context(), func(store.Tx) error { return nil }, apply) == nil {
		t.Error("a handle is followed twice")
	}
	update(t, all[0], puts("b=1"))
	settle(t, all[1])
	sh.wants("a=1", "b=1")
}

// testFollowQuiet checks that an idle handle gets the commits of others.
func testFollowQuiet(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	sh := newShadow(t, all[1], nil)
	update(t, all[0], puts("a=1"))
	eventually(t, "a put reaches a handle that does nothing", func() bool { return sh.is(map[string]string{"a": "1"}) })
	update(t, all[0], deletes("a"))
	eventually(t, "a deletion reaches a handle that does nothing", func() bool { return sh.is(map[string]string{}) })
}

// testFollowOwn checks that a handle's own commits never come back to it, not even if they write the same value again.
func testFollowOwn(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	sh := newShadow(t, all[0], nil)
	for i := range few(20) {
		if err := sh.update(puts("a=1", fmt.Sprintf("b=%d", i))); err != nil {
			t.Error(err)
		}
		if err := sh.update(deletes("b")); err != nil {
			t.Error(err)
		}
	}
	update(t, all[1], puts("end=1"))
	settle(t, all[0])
	sh.wants("a=1", "end=1")
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.applied != 1 {
		t.Errorf("apply is called %d times for one commit of another handle", sh.applied)
	}
}

// testFollowWhole makes updates through two handles in turn, each of which changes several records. A third handle must
// get them in order and never a part.
func testFollowWhole(t *testing.T, h *handles) {
	all := h.three()
	update(t, all[0], puts("left=0", "right=0", "x=0", "y=0"))
	rule := func(data map[string]string) error {
		x, errX := strconv.Atoi(data["x"])
		y, errY := strconv.Atoi(data["y"])
		if data["left"] != data["right"] || errX != nil || errY != nil || x != y && x != y+1 {
			return fmt.Errorf("a part, or something out of order: left=%s right=%s x=%s y=%s", data["left"],
				data["right"], data["x"], data["y"])
		}
		return nil
	}
	sh := newShadow(t, all[2], rule)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // the third handle is busy, so it gets commits at different moments
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := sh.update(func(tx store.Tx) error {
				return errors.Join(rule(sh.data),
					puts(fmt.Sprintf("own=%d", i))(tx))
			}, "x", "y", "left", "right"); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for n := range few(60) {
		v := strconv.Itoa(n + 1)
		try(t, all[n%2], puts("x="+v, "left=x"+v, "right=x"+v))
		try(t, all[1-n%2], puts("right=y"+v, "y="+v, "left=y"+v))
	}
	close(stop)
	wg.Wait()
	wantSame(t, []*shadow{sh})
}

// testFollowJoins opens and follows handles while others write. They may miss nothing and get nothing twice.
func testFollowJoins(t *testing.T, h *handles) {
	writers := []store.Shared{h.one(), h.one()}
	var written atomic.Int32
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, s := range writers {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					try(t, s, scribble(i, 0, n))
					written.Add(1)
				}
			}
		})
	}
	var joined []*shadow
	for n := range few(8) {
		sh := &shadow{t: t, s: h.one()}
		sh.follow(func() { // others continue if they can; if they wait for the load, it does not wait for them
			until := written.Load() + 4
			for deadline := time.Now().Add(3 * time.Millisecond); written.Load() < until &&
				time.Now().Before(deadline); {
				runtime.Gosched()
			}
		})
		if err := sh.update(puts(fmt.Sprintf("joined=%d", n))); err != nil {
			t.Error(err)
		}
		joined = append(joined, sh)
	}
	close(stop)
	wg.Wait()
	wantSame(t, joined)
}

// scribble writes or deletes some of a few records. Each value is unique.
func scribble(i, w, n int) func(store.Tx) error {
	return func(tx store.Tx) error {
		for k := range 1 + (w+n)%4 {
			key := fmt.Sprintf("s/%d", (i+2*w+n*5+k*3)%11)
			if (i+w+n+k)%4 == 0 {
				if err := tx.Delete([]byte(key)); err != nil {
					return err
				}
				continue
			}
			if err := tx.Put([]byte(key), fmt.Appendf(nil, "%d.%d.%d.%d", i, w, n, k)); err != nil {
				return err
			}
		}
		return nil
	}
}

// testFollowUnderLoad checks the promise that an index needs. At the beginning of each function, the shadow equals what
// the function reads, while three handles write, fail and panic concurrently.
func testFollowUnderLoad(t *testing.T, h *handles) {
	var all []store.Shared
	var shadows []*shadow
	for range 3 {
		s := h.one()
		all, shadows = append(all, s), append(shadows, newShadow(t, s, nil))
	}
	concurrently(all, func(i, w, n int) {
		sh, write := shadows[i], scribble(i, w, n)
		var keys []string // what is read: everything, or one record, so that not all updates conflict
		if (w+n)%3 != 0 {
			keys = []string{fmt.Sprintf("s/%d", (w+n)%11)}
		}
		switch (i + w + n) % 7 {
		case 1:
			err := sh.update(func(tx store.Tx) error { return errors.Join(write(tx), errWanted) }, keys...)
			if !errors.Is(err, errWanted) {
				t.Errorf("an update that fails: %v", err)
			}
		case 3:
			p := panics(func() {
				_ = sh.update(func(tx store.Tx) error { _ = write(tx); panic("on purpose") }, keys...)
			})
			if p != "on purpose" {
				t.Errorf("the panic %v", p)
			}
		case 5:
			if err := sh.update(func(store.Tx) error { return nil }, keys...); err != nil {
				t.Errorf("an update that writes nothing: %v", err)
			}
		default:
			if err := sh.update(write, keys...); err != nil {
				t.Error(err)
			}
		}
	})
	wantSame(t, shadows)
}

// testFollowBlind writes a key that was not read, while others write it just before or at the same time. Whichever
// write is last, the shadow must equal the store.
func testFollowBlind(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	sh, wait := newShadow(t, all[0], nil), &patience{}
	update(t, all[1], puts("other=1"))
	settle(t, all[0])
	for n := range 6 * few(2) {
		own, others := puts(fmt.Sprintf("k=own%d", n)), puts(fmt.Sprintf("k=others%d", n), "l=1")
		switch n % 3 {
		case 1:
			own = deletes("k")
		case 2:
			others = deletes("k", "l")
		}
		begun, done := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		first := true
		if n%2 == 0 {
			update(t, all[1], others)
		} else {
			wg.Go(func() { <-begun; try(t, all[1], others); close(done) })
		}
		err := sh.update(func(tx store.Tx) error {
			err := own(tx)
			if first && n%2 == 1 {
				close(begun)
				wait.forIt(done)
			}
			first = false
			return err
		}, "other")
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		wantSame(t, []*shadow{sh})
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
	}
}

// testLarge checks that another handle sees updates with the maximum number of writes as a whole.
func testLarge(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	sh := newShadow(t, all[1], nil)
	for round, value := range []string{"1", "2", ""} {
		update(t, all[0], large(store.MaxWrites, value))
		settle(t, all[1])
		want := store.MaxWrites
		if value == "" {
			want = 0
		}
		view(t, all[1], func(tx store.Tx) error { return wantLarge(t, tx, want, value) })
		sh.mu.Lock()
		if len(sh.data) != want || sh.applied != round+1 {
			t.Errorf("round %d: apply was called %d times, the shadow has %d records", round, sh.applied, len(sh.data))
		}
		sh.mu.Unlock()
	}
	if err := sh.update(large(store.MaxWrites, "own")); err != nil {
		t.Error(err)
	}
	view(t, all[0], func(tx store.Tx) error { return wantLarge(t, tx, store.MaxWrites, "own") })
	wantSame(t, []*shadow{sh})
}

// large writes n records with the same value. An empty value deletes them.
func large(n int, value string) func(store.Tx) error {
	return func(tx store.Tx) error {
		for i := range n {
			key := fmt.Appendf(nil, "large/%05d", i*7%n)
			write := func() error { return tx.Put(key, []byte(value)) }
			if value == "" {
				write = func() error { return tx.Delete(key) }
			}
			if err := write(); err != nil {
				return err
			}
		}
		return nil
	}
}

func wantLarge(t *testing.T, tx store.Tx, want int, value string) error {
	t.Helper()
	n := 0
	for rec, err := range tx.Scan(store.Prefix([]byte("large/"))) {
		if err != nil {
			return err
		}
		if n++; string(rec.Value) != value {
			t.Errorf("%s is %q, not %q", rec.Key, rec.Value, value)
		}
	}
	if n != want {
		t.Errorf("%d records, not %d", n, want)
	}
	return nil
}

// testLargeUnderLoad checks that no function, apply or view sees a part of a large update, while small updates
// write between its records.
func testLargeUnderLoad(t *testing.T, h *handles) {
	all := h.three()
	update(t, all[0], large(1500, "0"))
	shadows := []*shadow{newShadow(t, all[1], wholeLarge), newShadow(t, all[2], wholeLarge)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i, sh := range shadows {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				small := puts(fmt.Sprintf("small/%d=%d", i, n))
				if err := sh.update(func(tx store.Tx) error { return errors.Join(wholeLarge(sh.data), small(tx)) },
					"large/00007", "large/01234"); err != nil {
					t.Error(err)
					return
				}
				view(t, sh.s, func(tx store.Tx) error {
					data, err := everything(tx)
					if err = errors.Join(err, wholeLarge(data)); err != nil {
						t.Errorf("in a view: %v", err)
					}
					return nil
				})
			}
		})
	}
	for n := range few(6) {
		try(t, all[0], large(1500, fmt.Sprint(n+1)))
	}
	try(t, all[0], large(1500, ""))
	try(t, all[0], large(1500, "end"))
	close(stop)
	wg.Wait()
	wantSame(t, shadows)
}

// wholeLarge returns an error if a large update is visible in part.
func wholeLarge(data map[string]string) error {
	count := map[string]int{}
	for k, v := range data {
		if k > "large/" && k < "large0" {
			count[v]++
		}
	}
	if len(count) > 1 || len(count) == 1 && !maps.Equal(count, map[string]int{data["large/00000"]: 1500}) {
		return fmt.Errorf("a part of a large update: of each value %v", count)
	}
	return nil
}
