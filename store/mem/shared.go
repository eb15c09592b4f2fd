package mem

import (
	"bytes"
	"context"
	"errors"
	"time"

	"berth/store"
	"berth/store/internal/record"
)

var errFollowed = errors.New("mem: a handle can be followed only once: join another one")

// Follow implements store.Shared. A commit is passed to apply before its Update returns, on the goroutine of that
// caller. load and apply must not call the store.
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
	_ = s.catchUp() // if the handle is cut off, it loads the known state, and the rest comes later
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

// presence is an announced name.
type presence struct {
	by    *Store
	value []byte
}

// Announce implements store.Shared. The name disappears when the handle is closed or cut off, and returns when the
// handle is reachable again.
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

// withdraw removes the names and sessions of this handle. The caller holds the lock of common.
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
