package mem

import (
	"bytes"
	"slices"
	"time"

	"berth/store"
)

// commit is one update that has become part of the state.
type commit struct {
	at      time.Time
	changed []change // in the order of the keys
	state   *tree    // with it
}

// change is what became of one key. No slice is ever written to; nil: there is none.
type change struct {
	key, before, after []byte
}

// changes lists what became of the keys that were written.
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

// foreign copies the changes for a receiver, because they belong to him.
func (c *commit) foreign() []store.Foreign {
	all := make([]store.Foreign, 0, len(c.changed))
	for _, ch := range c.changed {
		all = append(all, store.Foreign{Key: bytes.Clone(ch.key), Before: bytes.Clone(ch.before),
			After: bytes.Clone(ch.after)})
	}
	return all
}

// records are the changes for those who watch.
func (c *commit) records() []store.Record {
	all := make([]store.Record, 0, len(c.changed))
	for _, ch := range c.changed {
		all = append(all, store.Record{Key: ch.key, Value: ch.after})
	}
	return all
}

// commit makes what t has written the state. First it is handed to the other handles that are there to hear of it; then
// all of them see it in one moment, or a view through one could be older than an earlier one through another. own is
// the handle that need not be told; nil: none.
func (s *Store) commit(t *tx, own *Store) {
	s.mu.Lock()
	if t.reads != nil { // it ran over an older state
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
	defer func() { // also when an apply panics
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

// land makes c the state, and has the open handles see it: those that were handed it, and the one that made it. So does
// one that has joined since: it began with the state before. The caller holds the lock of common.
func (s *Store) land(c *commit, handed []*Store) {
	s.state = c.state
	for _, h := range s.handles {
		if !slices.Contains(handed, h) {
			h.taken = append(h.taken, c)
		}
		h.show()
	}
}

// take hands apply all that others have committed, and nothing where the handle is out of reach. It is shown
// afterwards. The caller has the turn.
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

// nextLate is what the handle has yet to take in, and takes in now.
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

// show has the handle see what it has taken in. The caller holds the lock of common.
func (s *Store) show() {
	for _, c := range s.taken {
		s.seen = c.state
		if s.watches.Any() {
			s.watches.Publish(c.records())
		}
	}
	s.taken = nil
}

// catchUp takes in what others have committed. The error is why it cannot: there is something, and the handle is out of
// reach. The caller has the turn.
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
