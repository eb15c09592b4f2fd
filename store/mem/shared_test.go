package mem

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"berth/store"
)

// joined opens n handles on one state.
func joined(t *testing.T, n int) []*Store {
	t.Helper()
	all := []*Store{open(t)}
	for len(all) < n {
		s := all[0].Join()
		t.Cleanup(func() {
			if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
		})
		all = append(all, s)
	}
	return all
}

// told records what a handle's apply got, each commit in brackets.
type told struct {
	mu  sync.Mutex
	log []string
}

func (h *told) apply(foreign []store.Foreign) {
	var all []string
	for _, f := range foreign {
		all = append(all, fmt.Sprintf("%s:%s>%s", f.Key, word(f.Before), word(f.After)))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, fmt.Sprint(all))
}

// word formats a value; a missing value differs from an empty one.
func word(v []byte) string {
	if v == nil {
		return "-"
	}
	return string(v)
}

func (h *told) want(t *testing.T, want string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := strings.Join(h.log, " "); got != want {
		t.Errorf("apply was handed\n     %s\nwant %s", got, want)
	}
	h.log = nil
}

// follow makes a new told follow s.
func follow(t *testing.T, s *Store) *told {
	t.Helper()
	h := &told{}
	if err := s.Follow(t.Context(), func(store.Tx) error { return nil }, h.apply); err != nil {
		t.Fatal(err)
	}
	return h
}

func wantState(t *testing.T, s *Store, want string) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) error {
		if got := list(t, tx, store.Range{}); got != want {
			t.Errorf("a view sees %q, want %q", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, s *Store, keys ...string) {
	t.Helper()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		for _, k := range keys {
			if err := tx.Delete([]byte(k)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A handle that joins while a commit is on its way to the others has that commit as well, and does not undo it
// with its own writes.
func TestJoinMeanwhile(t *testing.T) {
	all := joined(t, 2)
	var late *Store
	apply := func([]store.Foreign) {
		if late != nil {
			return
		}
		late = all[0].Join()
		t.Cleanup(func() { _ = late.Close() })
	}
	if err := all[1].Follow(t.Context(), func(store.Tx) error { return nil }, apply); err != nil {
		t.Fatal(err)
	}
	put(t, all[0], "1", "a")
	wantState(t, late, "a=1")
	h := follow(t, late)
	put(t, late, "2", "b")
	for _, s := range []*Store{all[0], all[1], late} {
		wantState(t, s, "a=1 b=2")
	}
	put(t, all[0], "3", "a")
	h.want(t, "[a:1>3]")
}

// A closed handle leaves the others unchanged, and hears nothing more. Another handle can be opened from it.
func TestCloseOneHandle(t *testing.T) {
	all := joined(t, 2)
	a := follow(t, all[0])
	put(t, all[1], "1", "a")
	if err := all[0].Close(); err != nil {
		t.Fatal(err)
	}
	put(t, all[1], "2", "a")
	a.want(t, "[a:->1]")
	again := all[0].Join()
	defer again.Close()
	h := follow(t, again)
	wantState(t, again, "a=2")
	put(t, all[1], "3", "a")
	h.want(t, "[a:2>3]")
	if len(again.handles) != 2 {
		t.Errorf("%d handles are kept", len(again.handles))
	}
}

func wantPresent(t *testing.T, s *Store, want string) {
	t.Helper()
	var got []string
	for _, name := range []string{"a", "b", "c"} {
		if v, ok := s.Present()[name]; ok {
			got = append(got, name+"="+string(v))
		}
	}
	if all := strings.Join(got, " "); all != want {
		t.Errorf("present are %q, want %q", all, want)
	}
}

// If apply panics, the caller that committed gets the panic, and all handles see the commit.
func TestApplyThatPanics(t *testing.T) {
	all := joined(t, 3)
	if err := all[1].Follow(t.Context(), func(store.Tx) error { return nil },
		func([]store.Foreign) { panic("in apply") }); err != nil {
		t.Fatal(err)
	}
	c := follow(t, all[2])
	func() {
		defer func() {
			if p := recover(); p != "in apply" {
				t.Errorf("the caller saw the panic %v", p)
			}
		}()
		put(t, all[0], "1", "a")
	}()
	err := all[2].Update(t.Context(), func(tx store.Tx) error {
		if v, _ := tx.Get([]byte("a")); !bytes.Equal(v, []byte("1")) {
			t.Errorf("the other handle reads %q", v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, "[a:->1]")
	wantState(t, all[1], "a=1")
}
