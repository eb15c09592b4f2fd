package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"berth/store"
)

var errWanted = errors.New("wanted")

func testFailing(t *testing.T, s store.Store) {
	update(t, s, puts("a=1", "b=2"))
	err := s.Update(context.Background(), func(tx store.Tx) error {
		if err := errors.Join(tx.Put([]byte("a"), []byte("x")), tx.Delete([]byte("b")),
			tx.Put([]byte("c"), nil)); err != nil {
			t.Error(err)
		}
		return errWanted
	})
	if err != errWanted {
		t.Errorf("Update answers %v, not its function's error as it is", err)
	}
	wantAll(t, s, "a=1 b=2")
}

// panics runs fn and returns the value of its panic.
func panics(fn func()) (p any) {
	defer func() { p = recover() }()
	fn()
	return nil
}

func testPanicking(t *testing.T, s store.Store) {
	update(t, s, puts("a=1"))
	var hooks []string
	p := panics(func() {
		_ = s.Update(context.Background(), func(tx store.Tx) error {
			tx.OnAbort(func() { hooks = append(hooks, "hook") })
			if err := tx.Put([]byte("a"), []byte("x")); err != nil {
				t.Error(err)
			}
			panic("on purpose")
		})
	})
	if p != "on purpose" || len(hooks) != 1 {
		t.Errorf("the caller saw the panic %v, its hooks ran %d times", p, len(hooks))
	}
	p = panics(func() {
		_ = s.Update(context.Background(), func(store.Tx) error {
			var none *store.Range
			_ = none.Limit
			return nil
		})
	})
	if p == nil {
		t.Error("a nil pointer in a function passed unseen")
	}
	wantAll(t, s, "a=1")
	update(t, s, puts("b=2"))
	wantAll(t, s, "a=1 b=2")
}

func testViewPanicking(t *testing.T, s store.Store) {
	update(t, s, puts("a=1"))
	for range 3 {
		if p := panics(func() {
			_ = s.View(context.Background(),
				func(store.Tx) error { panic("in a view") })
		}); p != "in a view" {
			t.Errorf("the caller saw the panic %v", p)
		}
	}
	update(t, s, puts("b=2"))
	wantAll(t, s, "a=1 b=2")
}

// testOnAbort checks that hooks run when a function fails: in reverse order, before another update sees the state, and
// never after success.
func testOnAbort(t *testing.T, s store.Store) {
	var order []int
	err := s.Update(context.Background(), func(tx store.Tx) error {
		order = nil
		for i := range 3 {
			tx.OnAbort(func() { order = append(order, i) })
		}
		return errWanted
	})
	if err != errWanted || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("the hooks ran in the order %v (%v)", order, err)
	}
	runs, undone := 0, 0 // the earlier runs of a function that runs again are undone
	update(t, s, func(tx store.Tx) error {
		runs++
		tx.OnAbort(func() { undone++ })
		return tx.Put([]byte("a"), []byte("1"))
	})
	if undone != runs-1 {
		t.Errorf("of %d runs of a function that succeeded, %d were taken back", runs, undone)
	}
	// shadow is an index in memory that functions change and hooks restore. The store is serial, so they run one at a
	// time here; the lock keeps the test correct in any case.
	var mu sync.Mutex
	shadow := 0
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			err := s.Update(context.Background(), func(tx store.Tx) error {
				mu.Lock()
				shadow++
				mu.Unlock()
				tx.OnAbort(func() { mu.Lock(); shadow--; mu.Unlock() })
				if i%3 == 0 {
					return errWanted
				}
				return tx.Put(fmt.Appendf(nil, "n%02d", i), nil)
			})
			if i%3 == 0 && err != errWanted || i%3 != 0 && err != nil {
				t.Errorf("update %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	stored := 0
	view(t, s, func(tx store.Tx) error {
		for range tx.Scan(store.Prefix([]byte("n"))) {
			stored++
		}
		return nil
	})
	if stored != 26 || shadow != stored {
		t.Errorf("%d records, and the shadow counts %d", stored, shadow)
	}
}
