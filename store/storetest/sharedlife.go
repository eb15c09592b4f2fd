package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"testing"
	"time"

	"berth/store"
)

// testSharedWatch checks that a watch yields the commits of all handles in order.
func testSharedWatch(t *testing.T, h *handles) {
	all := h.three()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	settle(t, all[2])
	next, stop := iter.Pull2(all[2].Watch(ctx, []byte("w/")))
	defer stop()
	const rounds = 30
	for n := range rounds {
		update(t, all[n%3], puts(fmt.Sprintf("w/n=%d", n), "z/other=1", fmt.Sprintf("w/m=%d", n)))
		if n%10 == 5 {
			update(t, all[(n+1)%3], deletes("w/m"))
		}
	}
	for n := range rounds {
		if got, want := take(t, next, 2), fmt.Sprintf("w/m=%d, w/n=%d", n, n); got != want {
			t.Fatalf("round %d: the watch yields %s, not %s", n, got, want)
		}
		if n%10 == 5 {
			if got := take(t, next, 1); got != "w/m deleted" {
				t.Fatalf("round %d: the watch yields %s, not the deletion", n, got)
			}
		}
	}
}

// testPresent checks that a name announced through one handle is present for all until that handle is closed.
func testPresent(t *testing.T, h *handles) {
	all := h.three()
	all[0].Announce("a", []byte("1"))
	all[1].Announce("b", nil)
	present := func(s store.Shared) string {
		names := s.Present()
		out := ""
		for _, name := range []string{"a", "b", "c"} {
			if v, ok := names[name]; ok {
				out += name + "=" + string(v) + " "
			}
		}
		if len(names) > 3 {
			out += "and others"
		}
		return out
	}
	sees := func(s store.Shared, want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("those present are %q", want), func() bool { return present(s) == want })
	}
	for _, s := range all {
		sees(s, "a=1 b= ")
	}
	value := []byte("2")
	all[0].Announce("a", value)
	spoil(value, all[1].Present()["a"])
	for _, s := range all {
		sees(s, "a=2 b= ")
	}
	wantAll(t, all[0], "") // it is nobody's record
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	all[0].Announce("c", nil) // a closed handle announces nothing
	for _, s := range all[1:] {
		sees(s, "b= ")
	}
	again := h.one()
	again.Announce("a", []byte("3"))
	for _, s := range []store.Shared{all[1], all[2], again} {
		sees(s, "a=3 b= ")
	}
}

// testReach checks that a reachable handle reports this and how recent its reads are.
func testReach(t *testing.T, h *handles) {
	all := []store.Shared{h.one(), h.one()}
	for _, s := range all {
		now := time.Now()
		eventually(t, "a handle within reach is fresh", func() bool {
			settle(t, s)
			r := s.Reach()
			if r.Err != nil || !r.Since.IsZero() {
				t.Fatalf("a handle within reach: %+v", r)
			}
			if r.Fresh.After(time.Now()) {
				t.Fatalf("it is fresh as of the future: %+v", r)
			}
			return !r.Fresh.Before(now)
		})
	}
}

// testCloseOne closes one of three handles under load. Its updates succeed or are refused, and the others continue.
func testCloseOne(t *testing.T, h *handles) {
	all := h.three()
	shadows := []*shadow{newShadow(t, all[0], nil), newShadow(t, all[1], nil), newShadow(t, all[2], nil)}
	var mu sync.Mutex
	done := 0
	halfway := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		<-halfway
		if err := all[0].Close(); err != nil {
			t.Error(err)
		}
	})
	concurrently(all, func(i, w, n int) {
		err := shadows[i].update(func(tx store.Tx) error { return add(tx, "n", 1) }, "n")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			if done++; done == callers*shifts() {
				close(halfway)
			}
		case i != 0 || !errors.Is(err, store.ErrClosed):
			t.Errorf("handle %d: %v", i, err)
		}
	})
	wg.Wait()
	wantSame(t, shadows[1:])
	wantAll(t, all[1], "n="+strconv.Itoa(done))
	never := func(store.Tx) error { t.Error("a function ran on a closed handle"); return nil }
	if err := all[0].Update(context.Background(), never); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update of a closed handle: %v", err)
	}
	if err := all[0].Follow(context.Background(), never, nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Follow of a closed handle: %v", err)
	}
	shadows[0].mu.Lock()
	before := shadows[0].applied
	shadows[0].mu.Unlock()
	update(t, all[1], puts("after=1"))
	settle(t, all[2])
	shadows[0].mu.Lock()
	defer shadows[0].mu.Unlock()
	if shadows[0].applied != before {
		t.Error("apply of a closed handle is called")
	}
}

// testHandlesEnd uses everything once. No goroutine may stay.
func testHandlesEnd(t *testing.T, h *handles) {
	settle(t, h.one())
	all := []store.Shared{h.one(), h.one()}
	var shadows []*shadow
	for i, s := range all {
		shadows = append(shadows, newShadow(t, s, nil))
		s.Announce(fmt.Sprint(i), nil)
		_ = s.Watch(context.Background(), nil)
	}
	concurrently(all, func(i, w, n int) {
		if err := shadows[i].update(scribble(i, w, n), "s/1"); err != nil {
			t.Error(err)
		}
	})
	for _, s := range all {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// testSessions checks that a session is visible to all until it ends or another one takes its name. An ended session
// must never return.
func testSessions(t *testing.T, h *handles) {
	all := h.three()
	hold := func(s store.Shared, name string) store.Session {
		t.Helper()
		one, err := s.Hold(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Keep(t.Context()); err != nil {
			t.Errorf("a session that was begun: %v", err)
		}
		return one
	}
	sees := func(name, id string) {
		t.Helper()
		for _, s := range all {
			eventually(t, "who holds "+name, func() bool { return s.Held()[name] == id })
		}
	}
	a, b := hold(all[0], "a"), hold(all[1], "b")
	sees("a", a.ID())
	sees("b", b.ID())
	next := hold(all[2], "a")
	if next.ID() == a.ID() {
		t.Errorf("two sessions have the id %s", a.ID())
	}
	sees("a", next.ID())
	for range 2 {
		if err := a.Keep(t.Context()); !errors.Is(err, store.ErrEnded) {
			t.Errorf("a session whose name another one has: %v", err)
		}
	}
	a.End(t.Context())
	if err := next.Keep(t.Context()); err != nil {
		t.Errorf("the end of the former one has touched this one: %v", err)
	}
	b.End(t.Context())
	sees("b", "")
	if err := b.Keep(t.Context()); !errors.Is(err, store.ErrEnded) {
		t.Errorf("a session that was ended: %v", err)
	}
	again := hold(all[1], "b")
	sees("b", again.ID())
	wantAll(t, all[0], "") // it is nobody's record
}
