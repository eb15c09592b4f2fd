package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/store"
)

// reach is what is known of how etcd is reached.
type reach struct {
	mu     sync.Mutex
	err    error     // why the last request had no answer
	since  time.Time // when the first of those began that had none
	answer time.Time // when the last one came
	fresh  time.Time
	asked  time.Time // the mirror is as fresh as this once it has come to rev
	rev    int64
}

// good notes an answer of etcd.
func (r *reach) good() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.since, r.answer = nil, time.Time{}, time.Now()
}

// bad notes that there was none.
func (r *reach) bad(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.since = time.Now()
	}
	r.err = err
}

// away tells that the last request had no answer.
func (r *reach) away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err != nil
}

// seen notes that the last change was that of rev at a moment behind asked; the mirror is at at.
func (r *reach) seen(rev int64, asked time.Time, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.caughtUp(at)
	if at >= rev && asked.After(r.fresh) {
		r.fresh = asked
	} else if r.asked.IsZero() {
		r.rev, r.asked = rev, asked
	}
}

func (r *reach) caughtUp(at int64) {
	if !r.asked.IsZero() && at >= r.rev {
		if r.asked.After(r.fresh) {
			r.fresh = r.asked
		}
		r.asked = time.Time{}
	}
}

// reachPatience is for how long answers may be missing before Reach says that etcd is away: an election takes a second or
// two, and a host that starts a hundred containers at once has no time for answers.
const reachPatience = 3 * time.Second

// Reach implements store.Shared.
func (s *Store) Reach() store.Reach {
	r := &s.reach
	r.mu.Lock()
	defer r.mu.Unlock()
	r.caughtUp(s.mirror.at())
	all := store.Reach{Fresh: r.fresh}
	if r.err != nil && time.Since(r.answer) > reachPatience {
		all.Err, all.Since = r.err, r.since
	}
	if refused := s.refused(); refused != nil {
		all.Err = refused
	}
	return all
}

// awayError is what a caller hears whose time was up.
func (s *Store) awayError() error {
	s.reach.mu.Lock()
	err := s.reach.err
	s.reach.mu.Unlock()
	if err == nil {
		err = s.members.explain(context.DeadlineExceeded)
	}
	return err
}

// pulse does what is to be done from time to time: it looks whether etcd is there and how fresh the mirror is, keeps the
// handle's leases, and finds out what became of a transaction.
type pulse struct {
	s    *Store
	wake chan struct{}
	lost bool // the last beat had no answer
}

const (
	beat      = time.Second            // while all is well
	beatQuick = 200 * time.Millisecond // while it is not
)

func (p *pulse) hurry() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *pulse) run() {
	for p.s.ctx.Err() == nil {
		next := beat
		if p.s.inDoubt() || p.s.reach.away() || p.s.mirror.closed() != nil {
			next = beatQuick
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
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	rev, err := s.askLast(ctx)
	p.note(err)
	if err != nil {
		return
	}
	s.clear(ctx)
	s.keepLeases(ctx)
	if shut := s.mirror.closed(); shut != nil {
		s.rollForward(ctx, shut)
		return
	}
	if s.mirror.wait(ctx, rev) != nil && s.ctx.Err() == nil && s.mirror.closed() == nil {
		s.feed.restart() // the watch is said to be there and tells nothing
	}
}

// note notes whether etcd has answered, and logs it where that is new.
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

// clear finds out what became of a transaction without an answer. If it was committed, the watch tells of it, as it does
// of what others write.
func (s *Store) clear(ctx context.Context) {
	c := &s.commit
	c.mu.Lock()
	d := c.doubt
	c.mu.Unlock()
	if d == nil {
		return
	}
	now, committed, err := s.settle(ctx, d.m)
	switch {
	case errors.Is(err, errGone):
		if s.mark(ctx) != nil {
			return
		}
		s.feed.again()
		s.log.Warn("a commit that was not answered can not be told from one that did not happen any more; everything is read afresh")
	case err != nil:
		return
	default:
		c.setMarker(func(m *marker) { *m = now })
		s.log.Infof("the commit that was not answered is known: it is %s", map[bool]string{true: "there", false: "not there, and never will be"}[committed])
		if committed {
			s.answered.Store(max(s.answered.Load(), now.mod))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubt = nil
	close(d.over)
}
