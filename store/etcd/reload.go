package etcd

import (
	"bytes"
	"fmt"
	"slices"

	"berth/store"
)

// reload reads everything afresh, because the watch has missed something, and tells the follower what is different.
func (s *Store) reload() error {
	if err := s.turn.take(s.ctx); err != nil {
		return err
	}
	defer s.turn.give()
	n, err := s.load(s.ctx)
	if err == nil && s.trace.distrusted() != nil { // the handle's marker may be lost with the rest
		err = s.mark(s.ctx)
	}
	s.reach.read(err)
	if err != nil {
		return err
	}
	before := s.mirror.copied()
	if s.own != nil { // the follower knows this, also where etcd has lost it
		for _, w := range s.own.wrote {
			if w.value == nil {
				before.Delete(rec{key: w.key})
			} else {
				before.Set(rec{key: w.key, value: w.value})
			}
		}
	}
	s.own = nil
	s.trace.loadedFrom(n)
	s.Forgotten()
	all := differences(before, n.tree)
	s.mirror.set(n.image)
	s.feed.rev, s.feed.held = n.rev, nil
	// A backup that was put in etcd's place may have fewer revisions.
	s.answered.Store(min(s.answered.Load(), n.rev))
	s.commit.floor.Store(min(s.commit.floor.Load(), n.rev))
	s.watches.Interrupt(fmt.Errorf("%w: the connection to etcd was lost for so long that changes were missed",
		store.ErrLagged))
	s.tell(all)
	return nil
}

// differences lists what is different in after, in the order of the keys.
func differences(before, after *tree) []change {
	var all []change
	before.Scan(func(r rec) bool {
		if now, _ := after.Get(r); now.value == nil || !bytes.Equal(now.value, r.value) {
			all = append(all, change{key: r.key, before: r.value, after: now.value})
		}
		return true
	})
	after.Scan(func(r rec) bool {
		if _, found := before.Get(r); !found {
			all = append(all, change{key: r.key, after: r.value})
		}
		return true
	})
	slices.SortFunc(all, byKey)
	return all
}
