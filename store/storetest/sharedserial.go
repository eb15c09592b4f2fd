package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/store"
)

// skews are pairs of updates through two handles, or through one. One reads some of q/2, q/4 and q/6, and records under
// "saw" that they are unchanged. The other reads "saw" and, if it is missing, changes what the first one reads. The
// second commit must know of the first. A row has the key or the range that is read ("leave": only its first records),
// and the record that is put, or deleted.
const skews = `
	a value is overwritten | get q/4 | q/4=new
	an empty value is put where there was none | get q/5 | q/5=
	a key is deleted | get q/4 | -q/4
	a key that is not there is written | get q/3 | q/3=new
	a range is overwritten | prefix=q/ | q/6=new
	a key is put into a range | prefix=q/ | q/5=new
	the first key of a range is deleted | prefix=q/ | -q/2
	the last key of a range is deleted | prefix=q/ | -q/6
	a key is put before the last one read | from=q/ limit=2 | q/3=new
	a key is put before the first one read | from=q/ limit=1 | q/1=new
	the first one read is deleted | from=q/ limit=1 | -q/2
	a key is put behind the first one read backwards | to=q0 limit=1 reverse | q/7=new
	the one read backwards is deleted | to=q0 limit=1 reverse | -q/6
	a key is put into what was read of a range | prefix=q/ leave 2 | q/3=new
	a key is deleted of what was read of a range | prefix=q/ leave 2 | -q/4
	a key is put into what was read of a range backwards | to=q0 reverse leave 2 | q/5=new
	a key is put into a range that was empty | prefix=q/6/ | q/6/1=new
	a key is put in front of everything | limit=1 | a=new
	a key is put behind everything | reverse limit=1 | z=new
`

// getting reads one key.
func getting(key string) func(store.Tx) (string, error) {
	return func(tx store.Tx) (string, error) {
		v, err := tx.Get([]byte(key))
		return fmt.Sprintf("%t %s", v != nil, v), err
	}
}

// scanning reads a range and stops after some records; 0: it does not stop.
func scanning(r store.Range, leave int) func(store.Tx) (string, error) {
	return func(tx store.Tx) (string, error) {
		var all []string
		for rec, err := range tx.Scan(r) {
			if err != nil {
				return "", err
			}
			if all = append(all, fmt.Sprintf("%s=%s", rec.Key, rec.Value)); len(all) == leave {
				break
			}
		}
		return fmt.Sprint(all), nil
	}
}

func deletes(keys ...string) func(store.Tx) error {
	return func(tx store.Tx) error {
		for _, k := range keys {
			if err := tx.Delete([]byte(k)); err != nil {
				return err
			}
		}
		return nil
	}
}

func testSkews(t *testing.T, s store.Store) { eachSkew(t, []store.Store{s, s}) }

func testSharedSkews(t *testing.T, h *handles) { eachSkew(t, []store.Store{h.one(), h.one()}) }

func eachSkew(t *testing.T, all []store.Store) {
	wait := &patience{}
	for row := range strings.Lines(strings.TrimSpace(skews)) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		part, leave, _ := strings.Cut(cells[1], " leave ")
		n, _ := strconv.Atoi(leave)
		read, disturb := scanning(rangeOf(part), n), puts(cells[2])
		if key, gets := strings.CutPrefix(part, "get "); gets {
			read = getting(key)
		}
		if key, gone := strings.CutPrefix(cells[2], "-"); gone {
			disturb = deletes(key)
		}
		t.Run(cells[0], func(t *testing.T) {
			for round := range 2 * few(2) {
				wipe(t, all[0])
				update(t, all[0], puts("q/2=2", "q/4=4", "q/6=6"))
				settle(t, all[1])
				skew(t, all, wait, read, disturb, round%2 == 0)
			}
		})
	}
}

// skew runs the two updates of a pair, one inside the function of the other if the store allows that. midst selects
// which one is inside.
func skew(t *testing.T, all []store.Store, wait *patience, read func(store.Tx) (string, error),
	disturb func(store.Tx) error, midst bool) {
	var before string
	view(t, all[0], func(tx store.Tx) (err error) { before, err = read(tx); return err })
	begun, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	inner := func() { // it runs in the outer function: its first run starts the other update and waits for its end
		once.Do(func() {
			close(begun)
			wait.forIt(done)
		})
	}
	saw, disturbed := false, false
	reader := func(pause func()) {
		try(t, all[0], func(tx store.Tx) error {
			now, err := read(tx)
			pause()
			if saw = now == before; err != nil {
				return err
			} else if !saw {
				return nil
			}
			return tx.Put([]byte("saw"), nil)
		})
	}
	disturber := func(pause func()) {
		try(t, all[1], func(tx store.Tx) error {
			v, err := tx.Get([]byte("saw"))
			pause()
			if disturbed = v == nil; err != nil {
				return err
			} else if !disturbed {
				return nil
			}
			return disturb(tx)
		})
	}
	first, second := reader, disturber
	if !midst {
		first, second = disturber, reader
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		first(inner)
		once.Do(func() { close(begun) }) // its function did not run
	})
	wg.Go(func() { <-begun; second(func() {}); close(done) })
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if saw == disturbed {
		t.Fatalf("the reader saw nothing of the other one: %t, the other one saw nothing of the reader: %t", saw,
			disturbed)
	}
}

// patience waits for something that cannot happen in a store that runs all functions one after the other. It waits only
// briefly after two failures, so tests must pass in both cases.
type patience struct{ came, missed int }

func (p *patience) forIt(done <-chan struct{}) {
	long := 200 * time.Millisecond
	if p.missed >= 2 && p.came == 0 {
		long = time.Millisecond
	}
	select {
	case <-done:
		p.came++
	case <-time.After(long):
		p.missed++
	}
}

func keysOf(tx store.Tx, prefix string) (keys []string, err error) {
	for rec, err := range tx.Scan(store.Prefix([]byte(prefix))) {
		if err != nil {
			return nil, err
		}
		keys = append(keys, string(rec.Key))
	}
	return keys, nil
}

// testSharedDeletions deletes an own row in each update while another row exists. One row must remain, unless an update
// counts a deleted row. A deletion leaves nothing in a range that could be compared.
func testSharedDeletions(t *testing.T, h *handles) {
	all := h.three()
	for round := range few(12) {
		update(t, all[0], puts("row/0=", "row/1=", "row/2="))
		for _, s := range all {
			settle(t, s)
		}
		var wg sync.WaitGroup
		for i, s := range all {
			wg.Go(func() {
				try(t, s, func(tx store.Tx) error {
					rows, err := keysOf(tx, "row/")
					if err != nil {
						return err
					}
					if len(rows) < 2 {
						return nil
					}
					return tx.Delete(fmt.Appendf(nil, "row/%d", i))
				})
			})
		}
		wg.Wait()
		var left []string
		view(t, all[round%3], func(tx store.Tx) (err error) { left, err = keysOf(tx, "row/"); return err })
		if len(left) != 1 {
			t.Fatalf("round %d: the rows %q are left, not one", round, left)
		}
	}
}

// testDecidedLate checks that an update through one handle is known to each later update of another handle, whether
// that succeeds, fails or writes nothing, and to each view.
func testDecidedLate(t *testing.T, h *handles) {
	all := h.three()
	for n := range few(30) {
		want := strconv.Itoa(n)
		update(t, all[n%3], puts("n="+want))
		for i := range 2 {
			s, got := all[(n+1+i)%3], ""
			read := func(tx store.Tx) error {
				v, err := tx.Get([]byte("n"))
				got = string(v)
				return err
			}
			switch (n + i) % 4 {
			case 0:
				update(t, s, read)
			case 1:
				err := s.Update(context.Background(),
					func(tx store.Tx) error { return errors.Join(read(tx), tx.Delete([]byte("n")), errWanted) })
				if !errors.Is(err, errWanted) {
					t.Errorf("Update answers %v", err)
				}
			case 2:
				update(t, s,
					func(tx store.Tx) error { return errors.Join(read(tx), tx.Put([]byte("m"), []byte(want))) })
			default:
				view(t, s, read)
			}
			if got != want {
				t.Errorf("round %d, another handle's call %d was decided with n=%q", n, i, got)
			}
		}
	}
}

// testSharedHooks checks that all runs of a successful function except the last one are undone, in reverse order of the
// hooks, before the next run.
func testSharedHooks(t *testing.T, h *handles) {
	all := h.three()
	concurrently(all, func(i, w, n int) {
		var log []string
		runs := 0
		try(t, all[i], func(tx store.Tx) error {
			runs++
			log = append(log, "run")
			tx.OnAbort(func() { log = append(log, "first") })
			tx.OnAbort(func() { log = append(log, "second") })
			return add(tx, "n", 1)
		})
		want := slices.Repeat([]string{"run", "second", "first"}, runs)
		if want = want[:len(want)-2]; !slices.Equal(log, want) {
			t.Errorf("a function that ran %d times: %q", runs, log)
		}
	})
	want := fmt.Sprintf("n=%d", len(all)*callers*shifts())
	for _, s := range all {
		wantAll(t, s, want)
	}
}
