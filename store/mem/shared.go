package mem

import (
	"bytes"
	"context"
	"errors"
	"time"

	"berth/store"
	"berth/store/internal/record"
)

var errFollowed = errors.New("mem: a handle is followed once only: join another one")

// Follow implements store.Shared. A commit is handed to apply before the Update that made it answers, on the goroutine
// of its caller; neither load nor apply may call the store.
func (s *Store) Follow(ctx context.Context, load func(store.Tx) error, apply func([]store.Foreign)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := s.await(ctx); err != nil {
		return err
	}
	defer s.leave()
	if s.followed() {
		return errFollowed
	}
	_ = s.catchUp() // out of reach, what is known is loaded, and the rest comes later
	t := &tx{tree: s.copied(), rules: record.Rules{ReadOnly: true}}
	defer func() { t.rules.Over = true }()
	if err := load(t); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply = apply
	return nil
}

func (s *Store) followed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apply != nil
}

// Reach implements store.Shared.
func (s *Store) Reach() store.Reach {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.outage != nil:
		return store.Reach{Err: s.outage.err, Since: s.outage.since, Fresh: s.outage.since}
	case len(s.late) > 0:
		return store.Reach{Fresh: s.late[0].at}
	}
	return store.Reach{Fresh: time.Now()}
}

// presence is a name that stands among those present.
type presence struct {
	by    *Store
	value []byte
}

// Announce implements store.Shared. The name is gone as soon as the handle is closed or out of reach; when it is within
// reach again, so is the name.
func (s *Store) Announce(name string, value []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.announced[name] = bytes.Clone(value)
	if s.outage == nil {
		s.present[name] = presence{s, s.announced[name]}
	}
}

// Present implements store.Shared.
func (s *Store) Present() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.present
	if s.outage != nil {
		from = s.outage.present
	}
	all := make(map[string][]byte, len(from))
	for name, p := range from {
		all[name] = bytes.Clone(p.value)
	}
	return all
}

// withdraw has nothing of this handle stand among those present, and no session of it. The caller holds the lock of
// common.
func (s *Store) withdraw() {
	for name, p := range s.present {
		if p.by == s {
			delete(s.present, name)
		}
	}
	for name, one := range s.held {
		if one.by == s {
			delete(s.held, name)
		}
	}
}
