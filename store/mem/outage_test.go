package mem

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"berth/store"
)

var errCable = errors.New("the cable was pulled")

func wantAway(t *testing.T, s *Store) {
	t.Helper()
	err := s.Update(t.Context(), func(store.Tx) error { t.Error("a function ran out of reach"); return nil })
	if !errors.Is(err, store.ErrAway) || !errors.Is(err, errCable) {
		t.Errorf("an update out of reach: %v", err)
	}
}

// Out of reach, a handle does not change; healed, it has heard of everything, in order.
func TestCut(t *testing.T) {
	all := joined(t, 2)
	h := follow(t, all[1])
	all[1].Announce("b", []byte("1"))
	put(t, all[0], "1", "a")
	all[1].Cut(errCable)
	all[1].Announce("c", []byte("2"))
	all[0].Announce("a", nil)
	put(t, all[0], "2", "a", "b")
	remove(t, all[0], "b")
	wantAway(t, all[1])
	wantState(t, all[1], "a=1")
	wantState(t, all[0], "a=2")
	wantPresent(t, all[0], "a=")
	wantPresent(t, all[1], "b=1")
	h.want(t, "[a:->1]")
	r := all[1].Reach()
	if !errors.Is(r.Err, store.ErrAway) || !errors.Is(r.Err, errCable) || r.Since.IsZero() || r.Fresh.After(r.Since) {
		t.Errorf("out of reach: %+v", r)
	}
	all[1].Cut(errors.New("another reason")) // the handle is already away
	if again := all[1].Reach(); again.Err.Error() != r.Err.Error() || !again.Since.Equal(r.Since) {
		t.Errorf("cut twice: %+v", again)
	}
	all[1].Heal()
	h.want(t, "[a:1>2 b:->2] [b:2>-]")
	wantState(t, all[1], "a=2")
	wantPresent(t, all[0], "a= b=1 c=2")
	put(t, all[1], "3", "a")
	put(t, all[0], "4", "a")
	h.want(t, "[a:3>4]")
	if r := all[1].Reach(); r.Err != nil || !r.Since.IsZero() {
		t.Errorf("healed: %+v", r)
	}
}

// An update that waits for its turn is answered when its handle is cut, and continues if the handle is healed at
// once.
func TestCutWhileWaiting(t *testing.T) {
	all := joined(t, 2)
	err := all[0].Update(t.Context(), func(store.Tx) error {
		answer := make(chan error)
		go func() { answer <- all[1].Update(t.Context(), func(store.Tx) error { t.Error("it ran"); return nil }) }()
		all[1].Cut(errCable)
		if err := <-answer; !errors.Is(err, store.ErrAway) {
			t.Errorf("the update that waited: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An update whose function runs when its handle is cut is committed.
func TestCutUnderWay(t *testing.T) {
	all := joined(t, 2)
	err := all[1].Update(t.Context(), func(tx store.Tx) error {
		all[1].Cut(errCable)
		return tx.Put([]byte("a"), []byte("1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		wantState(t, s, "a=1")
	}
}

// A handle that is followed while it is out of reach loads what it knows and gets the rest later.
func TestFollowOutOfReach(t *testing.T) {
	all := joined(t, 2)
	put(t, all[0], "1", "a")
	all[1].Cut(errCable)
	put(t, all[0], "2", "a")
	h := &told{}
	err := all[1].Follow(t.Context(), func(tx store.Tx) error {
		if got := list(t, tx, store.Range{}); got != "a=1" {
			t.Errorf("load sees %s", got)
		}
		return nil
	}, h.apply)
	if err != nil {
		t.Fatal(err)
	}
	h.want(t, "")
	all[1].Heal()
	h.want(t, "[a:1>2]")
}

// A lost outcome is first undone by its hooks, and arrives through apply if it was committed.
func TestLoseNext(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, cut := range []error{nil, errCable} {
			t.Run(fmt.Sprintf("committed=%t,cut=%t", committed, cut != nil), func(t *testing.T) {
				all := joined(t, 2)
				var order []string
				note := func([]store.Foreign) { order = append(order, "apply") }
				if err := all[1].Follow(t.Context(), func(store.Tx) error { return nil }, note); err != nil {
					t.Fatal(err)
				}
				other := follow(t, all[0])
				if cut == nil {
					all[1].LoseNext(committed)
				} else {
					all[1].CutNext(committed, cut)
				}
				if err := all[1].Update(t.Context(), func(store.Tx) error { return nil }); err != nil {
					t.Errorf("an update that writes nothing: %v", err)
				}
				err := all[1].Update(t.Context(), func(tx store.Tx) error {
					tx.OnAbort(func() { order = append(order, "first") })
					tx.OnAbort(func() { order = append(order, "second") })
					return tx.Put([]byte("a"), []byte("1"))
				})
				if !errors.Is(err, store.ErrUnknown) || cut != nil && !errors.Is(err, cut) {
					t.Errorf("the update whose outcome was lost: %v", err)
				}
				if cut != nil {
					if !slices.Equal(order, []string{"second", "first"}) {
						t.Errorf("out of reach came %v", order)
					}
					wantState(t, all[1], "")
					wantAway(t, all[1])
					all[1].Heal()
				}
				want, state, heard := []string{"second", "first", "apply"}, "a=1", "[a:->1]"
				if !committed {
					want, state, heard = want[:2], "", ""
				}
				if !slices.Equal(order, want) {
					t.Errorf("there came %v, want %v", order, want)
				}
				other.want(t, heard)
				for _, s := range all {
					wantState(t, s, state)
				}
				put(t, all[1], "2", "a") // the next update is answered
				wantState(t, all[0], "a=2")
			})
		}
	}
}

// A handle that lags runs a function on what it knew, undoes it, takes in what came, and runs it again.
func TestLag(t *testing.T) {
	all := joined(t, 2)
	h := follow(t, all[1])
	all[1].Lag(true)
	put(t, all[0], "1", "a")
	h.want(t, "")
	var runs []string
	err := all[1].Update(t.Context(), func(tx store.Tx) error {
		runs = append(runs, list(t, tx, store.Range{}))
		tx.OnAbort(func() { h.want(t, ""); runs = append(runs, "taken back") })
		return tx.Put([]byte("b"), []byte("1"))
	})
	if err != nil || !slices.Equal(runs, []string{"", "taken back", "a=1"}) {
		t.Errorf("the function ran over %q (%v)", runs, err)
	}
	h.want(t, "[a:->1]")
	put(t, all[0], "2", "a")
	wantState(t, all[1], "a=2 b=1")
	h.want(t, "[a:1>2]")
	put(t, all[0], "3", "a")
	if r := all[1].Reach(); r.Err != nil || r.Fresh.IsZero() {
		t.Errorf("behind: %+v", r)
	}
	all[1].Lag(false)
	h.want(t, "[a:2>3]")
}

// What a lagging handle has read and written before it knew of others is committed if they did not touch it.
func TestLagCommits(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(store.Tx)
		runs int
	}{
		{"another key", func(tx store.Tx) { _, _ = tx.Get([]byte("b")) }, 1},
		{"another range", func(tx store.Tx) { list(t, tx, store.Prefix([]byte("b"))) }, 1},
		{"the key", func(tx store.Tx) { _, _ = tx.Get([]byte("a")) }, 2},
		{"its range", func(tx store.Tx) { list(t, tx, store.Range{To: []byte("b")}) }, 2},
		{"a key that it writes",
			func(tx store.Tx) { _ = tx.Put([]byte("a"), nil); _ = tx.Put([]byte("a"), []byte("new")) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := joined(t, 2)
			h := follow(t, all[1])
			other := follow(t, all[0])
			all[1].Lag(true)
			put(t, all[0], "new", "a")
			runs := 0
			err := all[1].Update(t.Context(), func(tx store.Tx) error {
				runs++
				c.read(tx)
				return tx.Put([]byte("b"), []byte("1"))
			})
			if err != nil || runs != c.runs {
				t.Errorf("the function ran %d times (%v)", runs, err)
			}
			h.want(t, "[a:->new]")
			for _, s := range all {
				wantState(t, s, "a=new b=1")
			}
			put(t, all[1], "2", "b")
			if c.name != "a key that it writes" {
				other.want(t, "[b:->1] [b:1>2]")
			}
		})
	}
}

// A handle that is repeatedly cut and healed while all write counts right, and no write is lost.
func TestCutUnderLoad(t *testing.T) {
	all := joined(t, 3)
	all[2].Lag(true)
	shadow := map[string]string{}
	var mu sync.Mutex
	err := all[2].Follow(t.Context(), func(store.Tx) error { return nil }, func(foreign []store.Foreign) {
		mu.Lock()
		defer mu.Unlock()
		for _, f := range foreign {
			if shadow[string(f.Key)] != string(f.Before) {
				t.Errorf("%s was %q, apply is told %q", f.Key, shadow[string(f.Key)], f.Before)
			}
			shadow[string(f.Key)] = string(f.After)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const each = 300
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			for done := 0; done < each; {
				err := s.Update(t.Context(), func(tx store.Tx) error { return addOne(tx, i == 2, &mu, shadow) })
				switch {
				case err == nil:
					done++
				case !errors.Is(err, store.ErrAway):
					t.Error(err)
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				all[2].Cut(errCable)
				all[2].Heal()
			}
		}
	})
	wg.Wait()
	close(stop)
	cutter.Wait()
	want := fmt.Sprintf("n=%d", 3*each)
	for _, s := range all {
		wantState(t, s, want)
	}
	if got := "n=" + shadow["n"]; got != want {
		t.Errorf("the shadow holds %s, want %s", got, want)
	}
}

// addOne increments n, and n in shadow as well.
func addOne(tx store.Tx, shadowed bool, mu *sync.Mutex, shadow map[string]string) error {
	v, err := tx.Get([]byte("n"))
	if err != nil {
		return err
	}
	n := 0
	_, _ = fmt.Sscan(string(v), &n)
	next := fmt.Sprint(n + 1)
	if shadowed {
		mu.Lock()
		defer mu.Unlock()
		before := shadow["n"]
		if before != string(v) {
			return fmt.Errorf("the store holds %s, the shadow %s", v, before)
		}
		shadow["n"] = next
		tx.OnAbort(func() { mu.Lock(); defer mu.Unlock(); shadow["n"] = before })
	}
	return tx.Put([]byte("n"), []byte(next))
}
