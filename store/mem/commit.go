package mem

import (
	"bytes"
	"slices"
	"time"

	"berth/store"
)

// commit is a committed update.
type commit struct {
	at      time.Time
	changed []change // sorted by key
	state   *tree    // the state after it
}

// change is the change of one key. The slices are never modified; nil: no value.
type change struct {
	key, before, after []byte
}

// changes returns the changes of the written keys.
func changes(before, after *tree, wrote [][]byte) []change {
	slices.SortFunc(wrote, bytes.Compare)
	var all []change
	for _, key := range slices.CompactFunc(wrote, bytes.Equal) {
		was, had := before.Get(store.Record{Key: key})
		now, has := after.Get(store.Record{Key: key})
		if had || has {
			all = append(all, change{key, was.Value, now.Value})
		}
	}
	return all
}

// foreign copies the changes for a receiver, who owns the copy.
func (c *commit) foreign() []store.Foreign {
	all := make([]store.Foreign, 0, len(c.changed))
	for _, ch := range c.changed {
		all = append(all, store.Foreign{Key: bytes.Clone(ch.key), Before: bytes.Clone(ch.before),
			After: bytes.Clone(ch.after)})
	}
	return all
}

// records returns the changes for watchers.
func (c *commit) records() []store.Record {
	all := make([]store.Record, 0, len(c.changed))
	for _, ch := range c.changed {
		all = append(all, store.Record{Key: ch.key, Value: ch.after})
	}
	return all
}

// commit makes the writes of t part of the state. It first passes them to the other handles' apply functions. Then all
// handles see them at the same time; otherwise a view through one handle could be older than an earlier view through
// another. own is the handle that made them; nil: none.
func (s *Store) commit(t *tx, own *Store) {
	s.mu.Lock()
	if t.reads != nil { // it ran on an older state
		t.tree = t.onto(s.state.IsoCopy())
	}
	c := &commit{state: t.tree}
	if len(s.handles) > 1 || s.watches.Any() || own == nil {
		c.at, c.changed = time.Now(), changes(s.state, t.tree, t.wrote)
	}
	others := make([]*Store, 0, len(s.handles))
	for _, h := range s.handles {
		if h != own {
			h.late = append(h.late, c)
			others = append(others, h)
		}
	}
	if len(others) == 0 {
		s.land(c, nil)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	defer func() { // also if an apply panics
		s.mu.Lock()
		defer s.mu.Unlock()
		s.land(c, others)
	}()
	for _, h := range others {
		if !h.waits() {
			h.take()
		}
	}
}

// land sets the state to c and shows it to all open handles. handed are those whose apply got it. The others are the
// one that made it, and handles that joined meanwhile, which began with the state before. The caller holds the lock of
// common.
func (s *Store) land(c *commit, handed []*Store) {
	s.state = c.state
	for _, h := range s.handles {
		if !slices.Contains(handed, h) {
			h.taken = append(h.taken, c)
		}
		h.show()
	}
}

// take passes all commits of others to apply, unless the handle is cut off. The caller shows them afterwards, and has
// the turn.
func (s *Store) take() {
	s.taking.Lock()
	defer s.taking.Unlock()
	late, apply := s.nextLate()
	for _, c := range late {
		if apply != nil && len(c.changed) > 0 {
			apply(c.foreign())
		}
	}
}

// nextLate returns the commits that the handle lacks, and marks them as taken.
func (s *Store) nextLate() ([]*commit, func([]store.Foreign)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage != nil {
		return nil, nil
	}
	late := s.late
	s.taken, s.late = append(s.taken, late...), nil
	return late, s.apply
}

// show makes the taken commits visible to the handle. The caller holds the lock of common.
func (s *Store) show() {
	for _, c := range s.taken {
		s.seen = c.state
		if s.watches.Any() {
			s.watches.Publish(c.records())
		}
	}
	s.taken = nil
}

// catchUp takes the commits of others. It returns an error if there are some and the handle is cut off. The caller has
// the turn.
func (s *Store) catchUp() error {
	s.take()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show()
	if len(s.late) > 0 {
		return s.outage.err
	}
	return nil
}
