package etcd

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"berth/store"
)

// reload reads everything afresh, because the watch has missed something, and tells the follower what is different.
func (s *Store) reload() error {
	if err := s.turn.take(s.ctx); err != nil {
		return err
	}
	defer s.turn.give()
	n, err := s.loadTrusting()
	s.refuse(err)
	if err != nil {
		return err
	}
	before := s.mirror.copied()
	for _, rev := range slices.Sorted(maps.Keys(s.own)) { // the follower knows these, also those that etcd has lost
		for _, w := range s.own[rev].wrote {
			if w.value == nil {
				before.Delete(rec{key: w.key})
			} else {
				before.Set(rec{key: w.key, value: w.value})
			}
		}
	}
	clear(s.own)
	s.trace.loadedFrom(n)
	s.Forgotten()
	all := differences(before, n.tree)
	s.mirror.set(n)
	s.feed.rev, s.feed.held = n.rev, nil
	// A backup that was put in etcd's place may have fewer revisions.
	s.seen.Store(0)
	s.answered.Store(min(s.answered.Load(), n.rev))
	s.commit.floor.Store(min(s.commit.floor.Load(), n.rev))
	s.watches.Interrupt(fmt.Errorf("%w: the connection to etcd was lost for so long that changes were missed",
		store.ErrLagged))
	s.tell(all)
	return nil
}

// loadTrusting reads everything. A store that is trusted again has lost the handle's marker with the rest.
func (s *Store) loadTrusting() (*snapshot, error) {
	begun, undo := s.trace.trusting()
	if begun {
		if err := s.mark(s.ctx); err != nil {
			undo()
			return nil, err
		}
	}
	n, err := s.load(s.ctx)
	if err != nil {
		undo()
	}
	return n, err
}

// set has a snapshot take the place of everything.
func (m *mirror) set(n *snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tree, m.meta, m.gate, m.shut = n.tree, n.metaMod, n.gate, nil
	m.present, m.held, m.bundles = n.present, n.held, n.bundles
	m.come(n.rev)
}

// differences lists what is different in after, in the order of the keys.
func differences(before, after *tree) []change {
	var all []change
	a, b := before.Iter(), after.Iter()
	defer a.Release()
	defer b.Release()
	inA, inB := a.First(), b.First()
	for inA || inB {
		var order int // of a's item and b's; one that has none left comes last
		switch {
		case !inA:
			order = 1
		case !inB:
			order = -1
		default:
			order = bytes.Compare(a.Item().key, b.Item().key)
		}
		switch {
		case order < 0:
			all = append(all, change{key: a.Item().key, before: a.Item().value})
		case order > 0:
			all = append(all, change{key: b.Item().key, after: b.Item().value})
		case !bytes.Equal(a.Item().value, b.Item().value):
			all = append(all, change{key: b.Item().key, before: a.Item().value, after: b.Item().value})
		}
		if order <= 0 {
			inA = a.Next()
		}
		if order >= 0 {
			inB = b.Next()
		}
	}
	return all
}
