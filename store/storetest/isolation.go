package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"berth/store"
)

const workers = 8

func rounds() int { return few(25) }

// crowd runs fn in several goroutines, several rounds each.
func crowd(fn func(worker, round int)) { each(1, workers, rounds(), func(_, w, n int) { fn(w, n) }) }

// testAtomicity writes pairs while some functions fail or panic in between. No reader may see half of a pair.
func testAtomicity(t *testing.T, s store.Store) {
	update(t, s, puts("left=0", "right=0"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := s.View(context.Background(), func(tx store.Tx) error { return wantPair(t, tx) }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	crowd(func(w, r int) {
		token := fmt.Appendf(nil, "%d.%d", w, r)
		p := panics(func() {
			err := s.Update(context.Background(), func(tx store.Tx) error {
				if err := wantPair(t, tx); err != nil {
					return err
				}
				if err := tx.Put([]byte("left"), token); err != nil {
					return err
				}
				switch (w + r) % 5 {
				case 1:
					return errWanted
				case 3:
					panic(errWanted)
				}
				return tx.Put([]byte("right"), token)
			})
			if (w+r)%5 == 1 && err != errWanted || (w+r)%5 != 1 && err != nil {
				t.Errorf("worker %d, round %d: %v", w, r, err)
			}
		})
		if (w+r)%5 == 3 != (p == errWanted) {
			t.Errorf("worker %d, round %d: the panic %v", w, r, p)
		}
	})
	close(stop)
	readers.Wait()
}

func wantPair(t *testing.T, tx store.Tx) error {
	left, err := tx.Get([]byte("left"))
	if err != nil {
		return err
	}
	right, err := tx.Get([]byte("right"))
	if err == nil && string(left) != string(right) {
		t.Errorf("half of an update is seen: left %s, right %s", left, right)
	}
	return err
}

func testCounters(t *testing.T, s store.Store) { counters(t, []store.Store{s}, workers, rounds()) }

func testSharedCounters(t *testing.T, h *handles) { counters(t, h.three(), callers, shifts()) }

// counters loses an increment if two updates read the same value.
func counters[S store.Store](t *testing.T, all []S, callers, rounds int) {
	each(len(all), callers, rounds, func(i, w, n int) {
		try(t, all[i], func(tx store.Tx) error { return add(tx, fmt.Sprintf("counter%d", (w+n)%2), 1) })
	})
	for i, s := range all {
		if got, want := sum(t, s, "counter"), len(all)*callers*rounds; got != want {
			t.Errorf("handle %d counts %d increments of %d", i, got, want)
		}
	}
}

// sum adds up the numbers of the records with a prefix.
func sum(t *testing.T, s store.Store, prefix string) (total int) {
	t.Helper()
	view(t, s, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Prefix([]byte(prefix))) {
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(rec.Value))
			if err != nil {
				return err
			}
			total += n
		}
		return nil
	})
	return total
}

func add(tx store.Tx, key string, d int) error {
	v, err := tx.Get([]byte(key))
	if err != nil {
		return err
	}
	n := 0
	if v != nil {
		if n, err = strconv.Atoi(string(v)); err != nil {
			return err
		}
	}
	return tx.Put([]byte(key), []byte(strconv.Itoa(n+d)))
}

func testPhantoms(t *testing.T, s store.Store) { phantoms(t, []store.Store{s}, workers, rounds()) }

func testSharedPhantoms(t *testing.T, h *handles) { phantoms(t, h.three(), callers, shifts()) }

// phantoms counts a range and adds the record that the count names. If the store missed a record that another update
// added meanwhile, it would be overwritten.
func phantoms[S store.Store](t *testing.T, all []S, callers, rounds int) {
	each(len(all), callers, rounds, func(i, w, n int) {
		try(t, all[i], func(tx store.Tx) error {
			rows, err := keysOf(tx, "row/")
			if err != nil {
				return err
			}
			key := fmt.Appendf(nil, "row/%05d", len(rows))
			if v, err := tx.Get(key); err != nil || v != nil {
				return fmt.Errorf("%s is there already (%v)", key, err)
			}
			return tx.Put(key, nil)
		})
	})
	var rows []string
	view(t, all[0], func(tx store.Tx) (err error) { rows, err = keysOf(tx, "row/"); return err })
	if want := len(all) * callers * rounds; len(rows) != want {
		t.Errorf("%d of %d rows are left", len(rows), want)
	}
}

// testUpdateInView runs an update inside a view. The view stays with its state; a later one sees the new state.
func testUpdateInView(t *testing.T, s store.Store) {
	update(t, s, puts("a=old", "b=old"))
	view(t, s, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil || string(rec.Value) != "old" {
				t.Errorf("%s=%s under the view, %v", rec.Key, rec.Value, err)
			}
			update(t, s, puts("a=new", "aa=new", "b=new", "c=new"))
		}
		wantList(t, tx, store.Range{Reverse: true}, "b=old a=old")
		wantAll(t, s, "a=new aa=new b=new c=new")
		return nil
	})
}

// testViewIsOneState moves amounts between accounts. Every view must see the same total, however long it lasts.
func testViewIsOneState(t *testing.T, s store.Store) {
	const accounts = 16
	update(t, s, func(tx store.Tx) error {
		for i := range accounts {
			if err := add(tx, fmt.Sprintf("acc/%02d", i), 100); err != nil {
				return err
			}
		}
		return nil
	})
	crowd(func(w, r int) {
		update(t, s, func(tx store.Tx) error {
			if err := add(tx, fmt.Sprintf("acc/%02d", (w*7+r)%accounts), -1); err != nil {
				return err
			}
			return add(tx, fmt.Sprintf("acc/%02d", (w+r*3)%accounts), 1)
		})
		if total := sum(t, s, "acc/"); total != accounts*100 {
			t.Errorf("a view sees the total %d", total)
		}
	})
}
