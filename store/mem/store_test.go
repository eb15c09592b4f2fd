package mem

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"berth/store"
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

// A hook that panics stops neither the other hooks nor the next update. Nor does a function that ends its
// goroutine.
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
