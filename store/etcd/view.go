package etcd

import (
	"context"
	"errors"
	"time"

	"berth/store"
	"berth/store/internal/record"
)

// viewPatience is how long a View waits for etcd to confirm that the mirror is fresh.
const viewPatience = 500 * time.Millisecond

// View implements store.Store. It is linearizable while etcd answers. During an outage, fn sees the last known state
// with this handle's own answered updates. Reach tells how old that is.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := s.freshen(ctx); err != nil {
		return err
	}
	return s.read(fn)
}

// read runs fn over the present mirror.
func (s *Store) read(fn func(store.Tx) error) error {
	t := &tx{tree: s.mirror.copied(), rules: record.Rules{ReadOnly: true}}
	defer func() { t.rules.Over = true }()
	return fn(t)
}

// freshen brings the mirror up to date.
func (s *Store) freshen(ctx context.Context) error {
	if !s.reach.isAway() { // otherwise, and if the watch is late, the mirror must do
		soon, cancel := context.WithTimeout(ctx, min(viewPatience, s.cfg.Timeout))
		asked := time.Now()
		rev, err := s.askLast(soon)
		switch {
		case err == nil && s.mirror.wait(soon, rev) == nil:
			s.reach.caughtUp(asked)
		case err != nil && ctx.Err() == nil:
			s.reach.bad(err)
		}
		cancel()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	own, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err := s.mirror.wait(own, s.answered.Load())
	if err != nil && ctx.Err() == nil {
		return errors.Join(s.awayError(), errors.New("Berth cannot read its last write yet"))
	}
	return err
}

// enter counts a View, so that Close can wait for it.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.running.Add(1)
	return nil
}
