package etcd

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"berth/store"
)

// reach is the state of the connection to etcd, and the time when the mirror was last complete.
type reach struct {
	mu      sync.Mutex
	away    cause // the last request had no answer
	foreign cause // another store is there
	// When its quota is used up, etcd answers every question and refuses every write, until a person frees space and
	// disarms its alarm. For a writer that is an outage that the answers do not show.
	full   cause
	answer time.Time // the time of the last answer
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

// good records an answer of etcd.
func (r *reach) good() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.set(nil)
	r.answer = time.Now()
}

// bad records a missing answer.
func (r *reach) bad(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.set(err)
}

// isAway reports whether the last request had no answer.
func (r *reach) isAway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away.err != nil
}

// read records that the store was read again, or why not.
func (r *reach) read(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, errForeign) {
		err = nil
	}
	r.foreign.set(err)
}

// wrote records the result of an attempt to write; nil: something was written.
func (r *reach) wrote(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || errors.Is(err, store.ErrNoSpace) {
		r.full.set(err)
	}
}

// isFull reports whether etcd had no space for the last write.
func (r *reach) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full.err != nil
}

// caughtUp records that the mirror was complete at a time.
func (r *reach) caughtUp(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.After(r.fresh) {
		r.fresh = at
	}
}

// reachPatience is how long answers may be missing before Reach reports an outage. An election takes a second or two.
// On a host that starts a hundred containers, answers are late as well.
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

// refused returns why the store must not be used even if etcd answers, or nil.
func (s *Store) refused() error {
	if back := s.trace.distrusted(); back != nil {
		return back
	}
	s.reach.mu.Lock()
	defer s.reach.mu.Unlock()
	return s.reach.foreign.err
}

// awayError is the error for a caller whose time is up.
func (s *Store) awayError() error {
	s.reach.mu.Lock()
	// etcd may answer and have no space for writes behind the gate.
	err := cmp.Or(s.reach.away.err, s.reach.full.err)
	s.reach.mu.Unlock()
	if err == nil {
		err = s.members.explain(context.DeadlineExceeded)
	}
	return err
}

// askLast asks for the revision of the last change of a record, as of now or later; 0: there was no change yet.
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
	if resp.Header.Revision < at || rev < last { // it was emptied, or replaced by a backup
		if err := s.verify(ctx); err != nil {
			return 0, err
		}
		s.feed.again()
	}
	s.trace.changed(rev)
	s.reach.good()
	return rev, nil
}
