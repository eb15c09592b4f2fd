package etcd

import (
	"context"
	"errors"
	"time"
)

// pulse does regular work: it checks whether etcd answers and how fresh the mirror is, keeps the handle's leases alive,
// and learns the outcome of a transaction.
type pulse struct {
	s    *Store
	wake chan struct{}
	lost bool // the last pulse had no answer
}

const (
	pulseEvery = time.Second            // while all is well
	pulseQuick = 200 * time.Millisecond // otherwise
)

func (p *pulse) hurry() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pulse) run() {
	for p.s.ctx.Err() == nil {
		next := pulseEvery
		if p.s.inDoubt() || p.s.reach.isAway() || p.s.mirror.shut.Load() != nil {
			next = pulseQuick
		}
		select {
		case <-time.After(next):
		case <-p.wake:
		case <-p.s.ctx.Done():
			return
		}
		p.once()
	}
}

func (p *pulse) once() {
	s := p.s
	if s.trace.distrusted() != nil {
		return // nothing must be written there
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	asked := time.Now()
	rev, err := s.askLast(ctx)
	if err == nil {
		err = s.verify(ctx)
	}
	if isBack(err) {
		return
	}
	p.note(err)
	if err != nil {
		return
	}
	s.keepLeases(ctx) // first, because without space the rest uses up all the time
	s.clear(ctx)
	if s.reach.isFull() && s.mark(ctx) == nil { // writes are possible again
		s.reach.wrote(nil)
		s.log.Info("the shared store has room again")
	}
	if shut := s.mirror.shut.Load(); shut != nil {
		s.rollForward(ctx, shut)
		return
	}
	// Briefly: while the gate is closed the mirror stays behind, and only the next pulse opens it.
	soon, done := context.WithTimeout(ctx, min(pulseEvery, s.cfg.Timeout))
	defer done()
	switch {
	case s.mirror.wait(soon, rev) == nil:
		s.reach.caughtUp(asked)
	case s.ctx.Err() == nil && s.mirror.shut.Load() == nil:
		s.feed.restart() // the watch seems to exist and reports nothing
	}
}

// note records whether etcd has answered, and logs a change.
func (p *pulse) note(err error) {
	switch {
	case err != nil && p.s.ctx.Err() != nil: // the handle is being closed
	case err != nil:
		p.s.reach.bad(err)
		if !p.lost {
			p.s.log.Warn(err)
		}
		p.lost = true
	case p.lost:
		p.s.log.Info("the shared store is within reach again")
		p.lost = false
	}
}

func (s *Store) inDoubt() bool {
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	return s.commit.doubt != nil
}

// clear learns the outcome of a transaction without an answer. If it was committed, the watch reports it like the
// writes of others.
func (s *Store) clear(ctx context.Context) {
	c := &s.commit
	c.mu.Lock()
	d := c.doubt
	c.mu.Unlock()
	if d == nil {
		return
	}
	rev, committed, err := s.settle(ctx, d.m, false)
	switch {
	case errors.Is(err, errGone):
		if s.mark(ctx) != nil {
			return
		}
		s.feed.again()
		s.log.Warn("etcd did not answer a commit, and Berth can no longer find out whether it was written; Berth " +
			"reads everything again")
	case err != nil:
		s.reach.wrote(err) // etcd may answer and have no space for a write
		return
	default:
		s.log.Infof("the outcome of the unanswered commit is known: it was %s",
			map[bool]string{true: "written", false: "not written, and never will be"}[committed])
		if committed {
			s.answered.Store(max(s.answered.Load(), rev))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubt = nil
	close(d.over)
}
