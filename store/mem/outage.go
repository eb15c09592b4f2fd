package mem

import (
	"context"
	"fmt"
	"maps"
	"time"

	"berth/store"
)

// outage is a time in which the handle is cut off.
type outage struct {
	err     error
	since   time.Time
	present map[string]presence // as known at the beginning
	held    map[string]*session // as known at the beginning
}

// loss is an outcome that is hidden from the caller.
type loss struct {
	committed bool
	cut       error // why the handle is cut off afterwards; nil: it is not
}

// Cut makes the handle unreachable until Heal. Updates return an error that wraps store.ErrAway and err, even those
// that wait for their turn. Views see the current state. apply gets nothing more, and does not run when Cut returns. An
// Update whose function is running continues. Do not call Cut from apply.
func (s *Store) Cut(err error) {
	s.mu.Lock()
	s.cutOff(err)
	s.mu.Unlock()
	s.taking.Lock() // waits for a running apply
	defer s.taking.Unlock()
}

// cutOff is Cut for a caller with the lock of common.
func (s *Store) cutOff(err error) {
	if s.outage != nil {
		return
	}
	s.outage = &outage{fmt.Errorf("%w: %w", store.ErrAway, err), time.Now(), maps.Clone(s.present),
		maps.Clone(s.held)}
	close(s.cut)
	s.withdraw()
}

// Heal makes the handle reachable again. It passes the commits of the meantime to apply before it returns. It waits for
// a running update.
func (s *Store) Heal() {
	_ = s.await(context.Background()) // this context does not end
	defer s.leave()
	s.mu.Lock()
	if s.outage != nil && !s.closed {
		s.outage, s.cut = nil, make(chan struct{})
		for name, value := range s.announced {
			s.present[name] = presence{s, value}
		}
	}
	s.mu.Unlock()
	_ = s.catchUp() // if it was cut off again, another Heal follows
}

// LoseNext makes the next writing Update of this handle return store.ErrUnknown after its hooks have run. If committed
// is set, its writes come through Follow before Update returns.
func (s *Store) LoseNext(committed bool) { s.setLoss(&loss{committed: committed}) }

// CutNext is LoseNext that also cuts the handle off with err. The writes come through Follow with Heal.
func (s *Store) CutNext(committed bool, err error) { s.setLoss(&loss{committed, err}) }

func (s *Store) setLoss(l *loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = l
}

// lost returns and clears what LoseNext has set; nil: the caller gets the outcome.
func (s *Store) lost() *loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lose
	s.lose = nil
	return l
}

var errLost = fmt.Errorf("%w: the answer got lost", store.ErrUnknown)

// answerLost undoes the function of t, and commits its writes if l says so.
func (s *Store) answerLost(t *tx, l *loss) error {
	err := errLost
	if l.cut != nil {
		err = fmt.Errorf("%w: %w", errLost, l.cut)
		s.mu.Lock()
		s.cutOff(l.cut)
		s.mu.Unlock()
	}
	t.end()
	if l.committed {
		s.commit(t, nil)
	}
	return err
}

// awaitReach waits for the turn, unless the handle is cut off.
func (s *Store) awaitReach(ctx context.Context) error {
	for {
		cut, err := s.within()
		if err != nil {
			return err
		}
		select {
		case s.turn <- struct{}{}:
		case <-cut:
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		if _, err = s.within(); err == nil {
			err = ctx.Err() // both were ready
		}
		if err != nil {
			s.leave()
		}
		return err
	}
}

// within returns why the handle is cut off, or a channel that is closed when it gets cut off.
func (s *Store) within() (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage != nil {
		return nil, s.outage.err
	}
	return s.cut, nil
}
