package mem

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/store"
	"berth/store/internal/record"
)

func open(t *testing.T) *Store {
	t.Helper()
	s := New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// put puts the given keys, each with the value v.
func put(t *testing.T, s *Store, v string, keys ...string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for _, k := range keys {
			if err := tx.Put([]byte(k), []byte(v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, tx store.Tx, r store.Range) string {
	t.Helper()
	var all []string
	for rec, err := range tx.Scan(r) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s=%s", rec.Key, rec.Value))
	}
	return strings.Join(all, " ")
}

func TestID(t *testing.T) {
	a, b := open(t), open(t)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(a.ID()) || a.ID() == b.ID() {
		t.Errorf("the ids are %q and %q", a.ID(), b.ID())
	}
}

// A View stays with the state that it began with while updates come and go, and an update may run inside of it.
func TestViewStandsStill(t *testing.T) {
	s := open(t)
	put(t, s, "old", "a", "b")
	err := s.View(t.Context(), func(tx store.Tx) error {
		n := 0
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			put(t, s, "new", "a", "aa", "b", "c")
			if n++; string(rec.Value) != "old" {
				t.Errorf("%s changed under the view", rec.Key)
			}
		}
		if got := list(t, tx, store.Range{Reverse: true}); n != 2 || got != "b=old a=old" {
			t.Errorf("the view sees %d records, then %s", n, got)
		}
		return s.View(t.Context(), func(tx store.Tx) error {
			if got := list(t, tx, store.Range{}); got != "a=new aa=new b=new c=new" {
				t.Errorf("a later view sees %s", got)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A scan goes on unharmed while its function writes beside its range, however many nodes that moves.
func TestScanBesideWrites(t *testing.T) {
	s := open(t)
	var keys []string
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("m%03d", i))
	}
	put(t, s, "v", keys...)
	for _, reverse := range []bool{false, true} {
		err := s.Update(t.Context(), func(tx store.Tx) error {
			var got []string
			for rec, err := range tx.Scan(store.Range{From: []byte("m"), To: []byte("n"), Reverse: reverse}) {
				if err != nil {
					return err
				}
				got = append(got, string(rec.Key))
				for _, side := range []string{"a", "z"} {
					if err := tx.Put(fmt.Appendf(nil, "%s%s", side, rec.Key), nil); err != nil {
						return err
					}
				}
			}
			if reverse {
				slices.Reverse(got)
			}
			if !slices.Equal(got, keys) {
				t.Errorf("reverse=%t: the scan yields %q", reverse, got)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a function is handed has no room behind it that another record lies in.
func TestHandedOutSlices(t *testing.T) {
	s := open(t)
	put(t, s, "1", "a", "b")
	err := s.View(t.Context(), func(tx store.Tx) error {
		v, err := tx.Get([]byte("a"))
		_ = append(v, "more"...)
		for rec := range tx.Scan(store.Range{}) {
			_, _ = append(rec.Key, "more"...), append(rec.Value, "more"...)
		}
		if got := list(t, tx, store.Range{}); got != "a=1 b=1" {
			t.Errorf("the records became %s", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An update whose context ends while another one has its turn drops out without having run.
func TestWaitingUpdateDropsOut(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Update(t.Context(), func(store.Tx) error {
		answer := make(chan error)
		go func() {
			answer <- s.Update(ctx, func(store.Tx) error { t.Error("it ran"); return nil })
		}()
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Errorf("the update that waited: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A hook that panics keeps neither the others from running nor the next update from its turn; nor does a function that
// ends its goroutine.
func TestHooksThatPanic(t *testing.T) {
	s := open(t)
	ran := 0
	func() {
		defer func() {
			if p := recover(); p != "in a hook" {
				t.Errorf("the caller saw the panic %v", p)
			}
		}()
		_ = s.Update(t.Context(), func(tx store.Tx) error {
			tx.OnAbort(func() { ran++ })
			tx.OnAbort(func() { panic("in a hook") })
			tx.OnAbort(func() { ran++ })
			return errors.New("wanted")
		})
	}()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Update(t.Context(), func(tx store.Tx) error {
			tx.OnAbort(func() { ran++ })
			runtime.Goexit()
			return nil
		})
	})
	wg.Wait()
	put(t, s, "1", "a")
	if ran != 3 {
		t.Errorf("%d of 3 hooks ran", ran)
	}
}

// Keys that a file would refuse are refused here, and fail the update though its function does not look.
func TestLongKey(t *testing.T) {
	s := open(t)
	err := s.Update(t.Context(), func(tx store.Tx) error {
		_ = tx.Put([]byte(strings.Repeat("k", record.MaxKey+1)), nil)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a key of %d bytes: %v", record.MaxKey+1, err)
	}
	put(t, s, "1", strings.Repeat("k", record.MaxKey))
}
