package etcd

import (
	"context"
	"sync"

	"berth/store"
)

// journal has the changes since the last call of Written to the records that the host remembers (Config.Remember).
type journal struct {
	mu sync.Mutex
	// by key; no value: deleted. nil: unknown, so that all must be reported
	records map[string][]byte
}

// Written returns the changes to the records that Config.Remember selects, by this host and others, since the last
// call. The first time, and after missed changes, it returns all of them. It reports nothing from a store that is not
// trusted. If ctx ends first, the next call reports them.
func (s *Store) Written(ctx context.Context) (store.Written, error) {
	if err := s.turn.take(ctx); err != nil {
		return store.Written{}, err
	}
	defer s.turn.give()
	trace, known := s.trace.at()
	if !known || s.cfg.Remember == nil {
		return store.Written{}, nil
	}
	j := &s.journal
	j.mu.Lock()
	w := store.Written{Trace: trace, Whole: j.records == nil, Records: j.records}
	j.records = map[string][]byte{}
	j.mu.Unlock()
	if w.Whole {
		w.Records = s.remembered()
	}
	return w, nil
}

// Forgotten makes the next Written return everything, because its last answer was lost.
func (s *Store) Forgotten() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.records = nil
}

// remembered returns all records to remember, as they are now. The caller holds the turn.
func (s *Store) remembered() map[string][]byte {
	all := map[string][]byte{}
	s.mirror.copied().Scan(func(r rec) bool {
		if r.bad == nil && s.cfg.Remember(r.key) {
			all[string(r.key)] = r.value
		}
		return true
	})
	if s.own != nil {
		for key, w := range s.own.wrote {
			if s.cfg.Remember(w.key) && w.value != nil {
				all[key] = w.value
			} else {
				delete(all, key)
			}
		}
	}
	return all
}

// note notes a change of a record.
func (s *Store) note(key, value []byte) {
	if s.cfg.Remember == nil || !s.cfg.Remember(key) {
		return
	}
	j := &s.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.records != nil {
		j.records[string(key)] = value
	}
}
