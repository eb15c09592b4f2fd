package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"berth/store"
)

func testContext(t *testing.T, s store.Store) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	never := func(store.Tx) error { t.Error("the function ran though its context had ended"); return nil }
	if err := s.Update(ended, never); !errors.Is(err, context.Canceled) {
		t.Errorf("Update: %v", err)
	}
	if err := s.View(ended, never); !errors.Is(err, context.Canceled) {
		t.Errorf("View: %v", err)
	}
	// A context that ends after the function began has no effect: the commit is awaited.
	late, cancel := context.WithCancel(context.Background())
	err := s.Update(late, func(tx store.Tx) error {
		cancel()
		return tx.Put([]byte("a"), []byte("1"))
	})
	if err != nil {
		t.Errorf("Update whose context ended on the way: %v", err)
	}
	wantAll(t, s, "a=1")
	// An update that waits for another one returns as soon as its context ends.
	update(t, s, func(store.Tx) error {
		waits, cancel := context.WithCancel(context.Background())
		if err := s.Update(onceAwaited{waits, cancel}, never); !errors.Is(err, context.Canceled) {
			t.Errorf("the update that waited: %v", err)
		}
		return nil
	})
	update(t, s, puts("b=2"))
	wantAll(t, s, "a=1 b=2")
}

// onceAwaited is a context that ends as soon as its end is awaited.
type onceAwaited struct {
	context.Context
	end func()
}

func (c onceAwaited) Done() <-chan struct{} {
	c.end()
	return c.Context.Done()
}

func testClose(t *testing.T, s store.Store) {
	update(t, s, puts("a=1"))
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	never := func(store.Tx) error { t.Error("a function ran on a closed store"); return nil }
	if err := s.Update(context.Background(), never); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Update: %v", err)
	}
	if err := s.View(context.Background(), never); !errors.Is(err, store.ErrClosed) {
		t.Errorf("View: %v", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	n := 0
	for _, err := range s.Watch(context.Background(), nil) {
		if n++; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Watch: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("Watch of a closed store yields %d times", n)
	}
}

// testCloseWaits closes the store under many callers. Each update returns nil or ErrClosed, and Close returns
// only when no function is running.
func testCloseWaits(t *testing.T, s store.Store) {
	var mu sync.Mutex
	running, closed := 0, false
	inside := func() func() {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			t.Error("a function runs after Close")
		}
		running++
		return func() { mu.Lock(); running--; mu.Unlock() }
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, workers)
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				fn := func(tx store.Tx) error {
					defer inside()()
					_, err := tx.Get([]byte("a"))
					return err
				}
				var err error
				if w%2 == 0 {
					err = s.Update(context.Background(), func(tx store.Tx) error {
						return errors.Join(fn(tx), tx.Put(fmt.Appendf(nil, "%d", w), nil))
					})
				} else {
					err = s.View(context.Background(), fn)
				}
				if i == 3 {
					started <- struct{}{}
				}
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range workers {
		<-started
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	mu.Lock()
	closed = true
	if running != 0 {
		t.Errorf("%d functions still run after Close", running)
	}
	mu.Unlock()
	wg.Wait()
}

// testEnds uses everything once. No goroutine may stay.
func testEnds(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	unread := s.Watch(ctx, nil)
	_ = unread
	left := s.Watch(context.Background(), nil)
	crowd(func(w, r int) {
		update(t, s, func(tx store.Tx) error { return add(tx, fmt.Sprint("n", w), 1) })
		_ = panics(func() { _ = s.Update(ctx, func(store.Tx) error { panic("on purpose") }) })
	})
	for range left {
		break
	}
	cancel()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}
