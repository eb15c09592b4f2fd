package etcd

import (
	"context"
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

// reachPatience is for how long answers may be missing before Reach says that etcd is away: an election takes a second
// or two, and a host that starts a hundred containers at once has no time for answers.
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
	if since, refused := s.refusedSince(); refused != nil {
		all.Err, all.Since = refused, since
	}
	if since, full := s.room.none(); full != nil && all.Err == nil {
		all.Err, all.Since = full, since
	}
	return all
}

// awayError is what a caller hears whose time was up.
func (s *Store) awayError() error {
	s.reach.mu.Lock()
	err := s.reach.err
	s.reach.mu.Unlock()
	if err == nil { // it answers: but what is written behind the gate may have no room
		_, err = s.room.none()
	}
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
	asked, at, seen := time.Now(), s.mirror.at(), s.seen.Load()
	resp, err := s.members.do(ctx, get(s.layout.last))
	if err != nil {
		return 0, err
	}
	rev, head := modOf(kvsOf(resp, 0)), resp.Header
	switch err := s.placed(head); {
	case err != nil:
		return 0, err
	case head.Revision < at || rev < seen: // etcd has less than it had: it was emptied, or a backup was put in its place
		if err := s.verify(ctx); err != nil {
			return 0, err
		}
		s.feed.again()
	case rev > seen:
		s.seen.CompareAndSwap(seen, rev)
	}
	s.reach.good()
	s.reach.seen(rev, asked, s.mirror.at())
	return rev, nil
}
