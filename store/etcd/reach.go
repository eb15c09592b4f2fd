package etcd

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"berth/store"
)

// reach is what is known of how etcd is reached, and when all of it was last known.
type reach struct {
	mu      sync.Mutex
	away    cause // the last request had no answer
	foreign cause // what is there is another store
	// Whose quota is used up answers every question and refuses every write, until a person has made room and disarmed
	// its alarm: that is as good as away for whoever wants to write, and its answers do not tell.
	full   cause
	answer time.Time // when the last answer came
	fresh  time.Time
}

// cause is why etcd cannot be used, and since when. The zero cause is none.
type cause struct {
	err   error
	since time.Time
}

func (c *cause) set(err error) {
	switch {
	case err == nil:
		*c = cause{}
	case c.err == nil:
		*c = cause{err, time.Now()}
	default:
		c.err = err
	}
}

// good notes an answer of etcd.
func (r *reach) good() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.set(nil)
	r.answer = time.Now()
}

// bad notes that there was none.
func (r *reach) bad(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.set(err)
}

// isAway tells that the last request had no answer.
func (r *reach) isAway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away.err != nil
}

// read notes that the store could be read afresh, or why not.
func (r *reach) read(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, errForeign) {
		err = nil
	}
	r.foreign.set(err)
}

// wrote notes what became of an attempt to write: nil where something was written.
func (r *reach) wrote(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || errors.Is(err, store.ErrNoSpace) {
		r.full.set(err)
	}
}

// isFull tells that the last write had no room.
func (r *reach) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full.err != nil
}

// caughtUp notes that the mirror has all that there was at a time.
func (r *reach) caughtUp(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.fresh) {
		r.fresh = at
	}
}

// reachPatience is for how long answers may be missing before Reach says that etcd is away: an election takes a second
// or two, and a host that starts a hundred containers at once has no time for answers.
const reachPatience = 3 * time.Second

// Reach implements store.Shared.
func (s *Store) Reach() store.Reach {
	r := &s.reach
	r.mu.Lock()
	defer r.mu.Unlock()
	why := r.full
	if r.away.err != nil && time.Since(r.answer) > reachPatience {
		why = r.away
	}
	if r.foreign.err != nil {
		why = r.foreign
	}
	if back := s.trace.distrusted(); back != nil {
		why = cause{back, back.Since}
	}
	return store.Reach{Err: why.err, Since: why.since, Fresh: r.fresh}
}

// refused returns why the store must not be used, even if etcd answers; nil if it may be.
func (s *Store) refused() error {
	if back := s.trace.distrusted(); back != nil {
		return back
	}
	s.reach.mu.Lock()
	defer s.reach.mu.Unlock()
	return s.reach.foreign.err
}

// awayError is what a caller hears whose time was up.
func (s *Store) awayError() error {
	s.reach.mu.Lock()
	// Where etcd answers, what is written behind the gate may have no room.
	err := cmp.Or(s.reach.away.err, s.reach.full.err)
	s.reach.mu.Unlock()
	if err == nil {
		err = s.members.explain(context.DeadlineExceeded)
	}
	return err
}

// askLast asks for the revision of the last change of a record, as of now or later. 0: there was none yet.
func (s *Store) askLast(ctx context.Context) (int64, error) {
	if back := s.trace.distrusted(); back != nil {
		return 0, back
	}
	at, last := s.mirror.at(), s.trace.draw().last
	resp, err := s.members.do(ctx, get(s.layout.last))
	if err != nil {
		return 0, err
	}
	rev := modOf(kvsOf(resp, 0))
	if err := s.placed(resp.Header); err != nil {
		return 0, err
	}
	if resp.Header.Revision < at || rev < last { // it was emptied, or a backup was put in its place
		if err := s.verify(ctx); err != nil {
			return 0, err
		}
		s.feed.again()
	}
	s.trace.changed(rev)
	s.reach.good()
	return rev, nil
}
