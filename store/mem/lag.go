package mem

import (
	"bytes"
	"context"
	"slices"

	"berth/store"
)

// Lag makes the handle take the commits of others only when it is used; false restores the immediate way. An Update
// then runs its function on the known, older state. If it writes, and others have changed neither what it read nor what
// it writes, it commits. Otherwise it is undone, and the function runs again on the current state. Stores that compare
// at the commit over a network work in this way.
func (s *Store) Lag(lags bool) {
	_ = s.await(context.Background()) // this context does not end
	defer s.leave()
	s.mu.Lock()
	s.lags = lags
	s.mu.Unlock()
	if !lags {
		_ = s.catchUp() // if the handle is cut off, Heal does it
	}
}

// waits reports whether the handle lags.
func (s *Store) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lags
}

// behind reports whether a reachable handle lacks commits.
func (s *Store) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lags && s.outage == nil && len(s.late) > 0
}

// updateLate is Update on the known state. done is false, and everything is undone, if the result must not be committed
// or returned.
func (s *Store) updateLate(fn func(store.Tx) error) (done bool, err error) {
	t := &tx{tree: s.copied(), reads: &reads{}}
	defer t.end()
	if t.run(fn) != nil || len(t.wrote) == 0 || s.missed(t) {
		return false, nil
	}
	if l := s.lost(); l != nil {
		return true, s.answerLost(t, l)
	}
	if err := s.catchUp(); err != nil {
		return true, err
	}
	return true, s.finish(t)
}

// missed reports whether commits of others concern t.
func (s *Store) missed(t *tx) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.late {
		for _, ch := range c.changed {
			if t.reads.has(ch.key) ||
				slices.ContainsFunc(t.wrote, func(key []byte) bool { return bytes.Equal(key, ch.key) }) {
				return true
			}
		}
	}
	return false
}

// onto makes the writes of t in another state.
func (t *tx) onto(state *tree) *tree {
	for _, key := range t.wrote {
		if r, ok := t.tree.Get(store.Record{Key: key}); ok {
			state.Set(r)
		} else {
			state.Delete(store.Record{Key: key})
		}
	}
	return state
}

// reads records what a function has read. A nil one records nothing.
type reads struct {
	keys   map[string]struct{}
	ranges []store.Range
}

func (r *reads) get(key []byte) {
	if r == nil {
		return
	}
	if r.keys == nil {
		r.keys = map[string]struct{}{}
	}
	r.keys[string(key)] = struct{}{}
}

// scan records a whole range, however much of it was read.
func (r *reads) scan(all store.Range) {
	if r != nil {
		r.ranges = append(r.ranges, store.Range{From: bytes.Clone(all.From), To: bytes.Clone(all.To)})
	}
}

func (r *reads) has(key []byte) bool {
	if _, ok := r.keys[string(key)]; ok {
		return true
	}
	return slices.ContainsFunc(r.ranges, func(in store.Range) bool {
		return bytes.Compare(key, in.From) >= 0 && (in.To == nil || bytes.Compare(key, in.To) < 0)
	})
}

// awaitCaughtUp waits for the turn and takes the commits of others.
func (s *Store) awaitCaughtUp(ctx context.Context) error {
	if err := s.await(ctx); err != nil {
		return err
	}
	defer s.leave()
	_ = s.catchUp() // if the handle is cut off, the view shows the known state
	return nil
}
