package mem

import (
	"context"
	"fmt"
	"maps"
	"time"

	"berth/store"
)

// outage is a time out of reach.
type outage struct {
	err     error
	since   time.Time
	present map[string]presence // as it was known when it began
	held    map[string]*session // likewise
}

// loss is an outcome that the caller is not to learn.
type loss struct {
	committed bool
	cut       error // why the handle is out of reach from then on; nil: it is not
}

// Cut puts the handle out of reach, because of err, until Heal: Updates answer an error that wraps store.ErrAway and
// err, those that wait for their turn included, Views see the state as it is now, and apply, which does not run when
// Cut returns, is handed nothing. An Update whose function runs already goes on. It must not be called by apply.
func (s *Store) Cut(err error) {
	s.mu.Lock()
	s.cutOff(err)
	s.mu.Unlock()
	s.taking.Lock() // what is being handed over ends first
	defer s.taking.Unlock()
}

// cutOff is Cut for a caller who holds the lock of common.
func (s *Store) cutOff(err error) {
	if s.outage != nil {
		return
	}
	s.outage = &outage{fmt.Errorf("%w: %w", store.ErrAway, err), time.Now(), maps.Clone(s.present),
		maps.Clone(s.held)}
	close(s.cut)
	s.withdraw()
}

// Heal puts the handle within reach again. What was committed meanwhile has been handed to apply when it returns. It
// waits for the update that runs.
func (s *Store) Heal() {
	_ = s.await(context.Background()) // which does not end
	defer s.leave()
	s.mu.Lock()
	if s.outage != nil && !s.closed {
		s.outage, s.cut = nil, make(chan struct{})
		for name, value := range s.announced {
			s.present[name] = presence{s, value}
		}
	}
	s.mu.Unlock()
	_ = s.catchUp() // cut again already, there is another Heal
}

// LoseNext has the next Update of this handle that writes something answer store.ErrUnknown, after its hooks have run.
// When it was committed nonetheless, what it wrote has come by Follow when Update returns.
func (s *Store) LoseNext(committed bool) { s.setLoss(&loss{committed: committed}) }

// CutNext is LoseNext that puts the handle out of reach, too, because of err: what was written comes by Follow with
// Heal.
func (s *Store) CutNext(committed bool, err error) { s.setLoss(&loss{committed, err}) }

func (s *Store) setLoss(l *loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = l
}

// lost is what is to become of the outcome at hand; nil: its caller hears of it.
func (s *Store) lost() *loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lose
	s.lose = nil
	return l
}

var errLost = fmt.Errorf("%w: it got lost on the way back", store.ErrUnknown)

// answerLost takes back what the function of t did, and commits what it wrote nonetheless where l says so.
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

// awaitReach takes the turn within reach of the state.
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

// within tells why the handle is out of reach, or hands out what is closed when it gets there.
func (s *Store) within() (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage != nil {
		return nil, s.outage.err
	}
	return s.cut, nil
}
