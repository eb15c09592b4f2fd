package mem

import (
	"bytes"
	"context"
	"slices"

	"berth/store"
)

// Lag has the handle take in what others commit only when it is asked for something, or, with false, at once again. An
// Update then runs its function over the state as it was known. Where it writes something, and others have changed
// neither what it read nor what it writes, that is committed; else it is taken back, and the function runs again over
// the state as it is. So do stores over a network that compare when they commit.
func (s *Store) Lag(lags bool) {
	_ = s.await(context.Background()) // which does not end
	defer s.leave()
	s.mu.Lock()
	s.lags = lags
	s.mu.Unlock()
	if !lags {
		_ = s.catchUp() // out of reach, Heal does it
	}
}

// waits tells whether commits of others are left until somebody asks.
func (s *Store) waits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lags
}

// behind tells whether a handle within reach has yet to take something in.
func (s *Store) behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lags && s.outage == nil && len(s.late) > 0
}

// updateLate is Update over the state as it was known; done is false, and everything taken back, where that must not be
// committed or is no answer.
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

// missed tells whether what others have committed bears on t.
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

// reads is what a function has read. A nil one notes nothing.
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

// scan notes all of a range, however much of it was looked at.
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

// awaitCaughtUp waits for the turn, and takes in what others have committed.
func (s *Store) awaitCaughtUp(ctx context.Context) error {
	if err := s.await(ctx); err != nil {
		return err
	}
	defer s.leave()
	_ = s.catchUp() // out of reach, the view is of what is known
	return nil
}
