package mem

import (
	"context"

	"berth/store"
)

// session is a session that lasts until its handle is cut off or closed, or another session takes its name.
type session struct {
	by       *Store
	name, id string
}

// Hold implements store.Shared.
func (s *Store) Hold(ctx context.Context, name string) (store.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(); err != nil {
		return nil, err
	}
	one := &session{s, name, newID()}
	s.held[name] = one
	return one, nil
}

// Held implements store.Shared.
func (s *Store) Held() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.held
	if s.outage != nil {
		from = s.outage.held
	}
	all := make(map[string]string, len(from))
	for name, one := range from {
		all[name] = one.id
	}
	return all
}

// reached returns why the handle does not reach the state, or nil. The caller holds the lock of common.
func (s *Store) reached() error {
	switch {
	case s.closed:
		return errClosed
	case s.outage != nil:
		return s.outage.err
	}
	return nil
}

// ID implements store.Session.
func (one *session) ID() string { return one.id }

// Keep implements store.Session.
func (one *session) Keep(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := one.by
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.reached(); err != nil {
		return err
	}
	if s.held[one.name] != one {
		return store.ErrEnded
	}
	return nil
}

// End implements store.Session.
func (one *session) End(context.Context) {
	s := one.by
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reached() == nil && s.held[one.name] == one {
		delete(s.held, one.name)
	}
}
