package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"berth/store"
)

const workers = 8

func rounds() int { return few(25) }

// crowd runs fn in several goroutines, several rounds each.
func crowd(fn func(worker, round int)) {
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for r := range rounds() {
				fn(w, r)
			}
		})
	}
	wg.Wait()
}

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

// testCounters loses an increment if two updates read the same value.
func testCounters(t *testing.T, s store.Store) {
	crowd(func(w, r int) {
		update(t, s, func(tx store.Tx) error {
			return add(tx, fmt.Sprintf("counter%d", (w+r)%3), 1)
		})
	})
	sum := 0
	view(t, s, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Prefix([]byte("counter"))) {
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(rec.Value))
			if err != nil {
				return err
			}
			sum += n
		}
		return nil
	})
	if sum != workers*rounds() {
		t.Errorf("%d increments are left of %d", sum, workers*rounds())
	}
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

// testWriteSkew has two doctors on call, each of whom may leave only while the other stays. Each update reads both and
// writes its own. A store that detects only conflicting writes lets both leave.
func testWriteSkew(t *testing.T, s store.Store) {
	for round := range 2 * rounds() {
		update(t, s, puts("call/0=on", "call/1=on"))
		var left atomic.Int32
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				gone := false
				err := s.Update(context.Background(), func(tx store.Tx) error {
					gone = false
					other, err := tx.Get(fmt.Appendf(nil, "call/%d", 1-i))
					if err != nil {
						return err
					}
					if string(other) != "on" {
						return nil
					}
					gone = true
					return tx.Put(fmt.Appendf(nil, "call/%d", i), []byte("off"))
				})
				if err != nil {
					t.Error(err)
				}
				if gone {
					left.Add(1)
				}
			})
		}
		wg.Wait()
		if left.Load() != 1 {
			t.Fatalf("round %d: %d of 2 left", round, left.Load())
		}
	}
}

// testPhantoms counts a range and adds the record that the count names. If the store missed a record that another
// update added meanwhile, it would be overwritten.
func testPhantoms(t *testing.T, s store.Store) {
	crowd(func(w, r int) {
		update(t, s, func(tx store.Tx) error {
			n := 0
			for _, err := range tx.Scan(store.Prefix([]byte("row/"))) {
				if err != nil {
					return err
				}
				n++
			}
			key := fmt.Appendf(nil, "row/%05d", n)
			if v, err := tx.Get(key); err != nil || v != nil {
				return fmt.Errorf("%s is there already (%v)", key, err)
			}
			return tx.Put(key, fmt.Appendf(nil, "%d.%d", w, r))
		})
	})
	seen := map[string]bool{}
	view(t, s, func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Prefix([]byte("row/"))) {
			if err != nil {
				return err
			}
			seen[string(rec.Value)] = true
		}
		return nil
	})
	if len(seen) != workers*rounds() {
		t.Errorf("%d of %d rows are left", len(seen), workers*rounds())
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
		total := 0
		view(t, s, func(tx store.Tx) error {
			for rec, err := range tx.Scan(store.Prefix([]byte("acc/"))) {
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
		if total != accounts*100 {
			t.Errorf("a view sees the total %d", total)
		}
	})
}
