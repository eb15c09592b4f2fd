package etcd

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"berth/store"
)

// A function that decides by an index which follows the store, and reads nothing, never decides by a state from
// before its call, even though it shares its transaction with others that are committed.
func TestDecidedByIndex(t *testing.T) {
	t.Parallel()
	a := open(t, patient())
	cfg := patient()
	cfg.Prefix = a.cfg.Prefix
	other := open(t, cfg)
	seen := "none"
	err := a.Follow(t.Context(), func(store.Tx) error { return nil }, func(all []store.Foreign) {
		for _, f := range all {
			if string(f.Key) == "x" {
				seen = string(f.After)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		want := strconv.Itoa(i)
		if err := other.Update(t.Context(), putting("x", want)); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				if err := a.Update(t.Context(), putting(fmt.Sprintf("w%d", n), want)); err != nil {
					t.Error(err)
				}
			})
			wg.Go(func() {
				full := errors.New("full")
				told := ""
				err := a.Update(t.Context(), func(store.Tx) error {
					told = seen
					return full
				})
				if !errors.Is(err, full) || told != want {
					t.Errorf("it was decided by %s, after %s was committed: %v", told, want, err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}
