package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"berth/store"
)

// round runs as many calls as fit one transaction, commits it and answers them. It returns the calls that need another
// round.
func (s *Store) round(calls []*call) (again []*call) {
	if calls = s.inTime(calls); len(calls) == 0 {
		return nil
	}
	first := slices.MinFunc(calls, func(a, b *call) int { return a.deadline.Compare(b.deadline) })
	ctx, cancel := context.WithDeadline(s.ctx, first.deadline)
	defer cancel()
	b, rest, v := s.try(ctx, calls)
	switch {
	case !v.committed && v.err == nil:
		if v.rev != 0 {
			s.commit.floor.Store(max(s.commit.floor.Load(), v.rev))
			s.count.conflicts.Add(uint64(len(b.calls)))
		}
		most := slices.MaxFunc(b.calls, func(x, y *call) int { return cmp.Compare(x.runs, y.runs) })
		if most.runs > 1 {
			pause(s.ctx, most.runs)
		}
		return append(b.calls, rest...)
	case len(b.calls) > 1 && errors.Is(v.err, store.ErrTooLarge): // one function is too large: run each by itself
		for _, k := range b.calls {
			again = append(again, s.round([]*call{k})...)
		}
		return append(again, rest...)
	}
	for _, k := range b.calls {
		k.finish(v.answer(k))
	}
	return rest
}

// inTime returns the calls that have time for another run, and answers the others.
func (s *Store) inTime(calls []*call) []*call {
	late := time.Now().Add(s.leastTime())
	picked := calls[:0:0]
	for _, k := range calls {
		switch {
		case !k.deadline.Before(late):
			picked = append(picked, k)
		case !k.begin(): // its caller no longer waits
		case k.runs > 1:
			k.finish(fmt.Errorf("%w: the change was tried %d times; each time another host had changed the same data, "+
				"or etcd did not answer", store.ErrAway, k.runs))
		default:
			k.finish(s.awayError())
		}
	}
	return picked
}

// leastTime is the time that a call must have left to send a commit. With less, the outcome would often stay unknown.
func (s *Store) leastTime() time.Duration { return s.cfg.Timeout / 4 }

// lockAfter is how often a call runs before the gate is closed for it.
const lockAfter = 6

// try waits until functions may run, runs them and commits their writes, while it holds the turn.
func (s *Store) try(ctx context.Context, calls []*call) (b *batch, rest []*call, v verdict) {
	locked, err := s.ready(ctx, calls)
	if err == nil && s.turn.take(ctx) != nil {
		err = s.awayError()
	}
	if err != nil {
		return s.begin(calls), nil, verdict{err: err}
	}
	defer s.turn.give()
	b, rest = s.fill(calls, locked)
	v = s.commitBatch(ctx, b)
	if err := cmp.Or(v.err, v.full); err != nil || v.committed && len(b.wrote) > 0 {
		s.reach.wrote(err)
	}
	switch {
	case !v.committed:
		b.abort(s.log)
	case v.rev != 0:
		rest = append(b.takeOld(v.rev, s.log), rest...)
	}
	if locked != 0 && (!v.committed || len(b.wrote) == 0) {
		s.unlock(locked)
	}
	return b, rest, v
}

// begin returns a batch of all calls that still want an answer, before it runs them.
func (s *Store) begin(calls []*call) *batch {
	b := &batch{}
	for _, k := range calls {
		if k.begin() {
			b.calls = append(b.calls, k)
		}
	}
	return b
}

// ready waits until a function may run: etcd answers, and the mirror has reached what this handle knows to be
// committed. If others came before one of the calls too often, it closes the gate, in the revision locked.
func (s *Store) ready(ctx context.Context, calls []*call) (locked int64, err error) {
	if err := s.commit.doubted(ctx); err != nil {
		return 0, err
	}
	if s.reach.isAway() { // unlike a commit, this question leaves no doubt if it gets no answer
		if _, err := s.askLast(ctx); err != nil {
			s.reach.bad(err)
			return 0, err
		}
	}
	deadline, _ := ctx.Deadline()
	if s.mirror.wait(ctx, s.commit.floor.Load()) != nil || time.Until(deadline) < s.leastTime() {
		return 0, s.awayError()
	}
	if slices.ContainsFunc(calls, func(k *call) bool { return k.runs >= lockAfter }) {
		return s.lock(ctx)
	}
	return 0, nil
}

// fill runs functions until the batch is full. They run on one goroutine, which ends with the batch, or when a function
// ends it.
func (s *Store) fill(calls []*call, locked int64) (b *batch, rest []*call) {
	b = newBatch(&s.mirror, s.cfg.Bundle)
	if locked != 0 {
		b.gate, b.locked = locked, true
	}
	limit, at := s.sizes.now(), 0
	more := func() bool { return at < len(calls) && limit.takesMore(b) }
	for more() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for more() {
				k := calls[at]
				at++
				if k.begin() {
					b.run(k, s.log)
				}
			}
		}()
		<-done
	}
	return b, calls[at:]
}

// verdict is the result of a batch.
type verdict struct {
	committed bool
	err       error // nothing was written, or nobody knows; the functions do not run again
	away      error // the reason why nobody knows
	full      error // it is committed, but there may be no room for the next one: the reason
	// the revision that the mirror must reach before a new run or, after a commit, before calls that wrote nothing run
	// again
	rev int64
}

// answer returns what k's caller gets; nil: the function's own answer. The outcome of a call that wrote nothing is
// never unknown.
func (v verdict) answer(k *call) error {
	if v.away != nil && !k.wrote {
		return v.away
	}
	return v.err
}

// commitBatch commits b to the store.
func (s *Store) commitBatch(ctx context.Context, b *batch) verdict {
	if len(b.wrote) == 0 {
		return s.confirm(ctx, b)
	}
	begun := time.Now()
	var v verdict
	limit := s.sizes.now()
	b.laid = b.lay(min(bundleBytes, limit.bytes))
	takes := b.cost()
	if limit.coarse(b) {
		takes.compares = ownCompares + 1
	}
	if limit.fits(takes) {
		v = s.sendBatch(ctx, b, limit, "")
	} else {
		v = s.writeLarge(ctx, b, limit)
	}
	if v.committed {
		s.cfg.Committed(time.Since(begun))
	}
	return v
}

// confirm checks that the state of a batch that wrote nothing is as new as its calls.
func (s *Store) confirm(ctx context.Context, b *batch) verdict {
	if !slices.ContainsFunc(b.calls, func(k *call) bool { return !k.fresh(b) }) {
		return verdict{committed: true}
	}
	rev, err := s.askLast(ctx)
	switch {
	case err != nil:
		s.reach.bad(err)
		return verdict{err: err}
	case rev > b.base:
		s.commit.floor.Store(max(s.commit.floor.Load(), rev))
		return verdict{committed: true, rev: rev}
	}
	return verdict{committed: true}
}

// pause waits before the nth try, for a random time, so that colliding handles do not collide again.
func pause(ctx context.Context, n int) {
	sleep(ctx, rand.N(time.Millisecond<<min(n, 10)))
}
