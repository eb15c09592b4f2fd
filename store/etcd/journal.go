package etcd

import (
	"context"
	"sync"

	"berth/store"
)

// journal is what has become of the records that are remembered elsewhere (Config.Remember) since it was taken last.
type journal struct {
	mu sync.Mutex
	// by key; no value: it is gone. Nil: what has become of them is not known, and all are to be told
	records map[string][]byte
}

// Written tells what has become of the records that Config.Remember names, by this host and by others, since it was
// called last, and all of them the first time and where changes were missed. Nothing is told of what etcd is distrusted
// for. Where it is waited for in vain, the next call tells it.
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

// Forgotten has Written tell all there is the next time: what it told was lost.
func (s *Store) Forgotten() {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	s.journal.records = nil
}

// remembered is all that is to be remembered, as it is now. The caller has the turn.
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

// note notes what has become of a record.
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
