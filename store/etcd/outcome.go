package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"berth/store"
)

// doubt is a transaction whose outcome is unknown.
type doubt struct {
	m     marker // as it was before, with the transaction's number
	why   error
	since time.Time
	over  chan struct{} // closed when the outcome is known
}

func (d *doubt) refusal() error {
	return fmt.Errorf("%w: the outcome of an earlier write is not known yet (%v)", store.ErrAway, d.why)
}

// sendBatch sends the transaction that commits b, or closes the gate for it, and learns its outcome.
func (s *Store) sendBatch(ctx context.Context, b *batch, l limit, closing string) verdict {
	m := s.commit.draw()
	n := s.trace.draw()
	first, cancel := s.attempt(ctx)
	defer cancel()
	resp, unsent, err := s.members.txnOnce(first, s.request(b, m, n, l, closing))
	switch {
	case err == nil && s.placed(resp.Header) != nil:
		return verdict{err: s.refused()}
	case err == nil && resp.Succeeded:
		s.reach.good()
		before := int64(0)
		if prev := resp.Responses[0].GetResponsePut().GetPrevKv(); prev != nil {
			before = prev.ModRevision
		}
		if b.locked || closing != "" {
			before = resp.Header.Revision // the watch also reports that the gate has moved
		}
		return s.committed(b, m, n, resp.Header.Revision, before)
	case err == nil:
		s.reach.good()
		return s.refuted(ctx, b, m, n, resp)
	case s.sizes.lower(err, l):
		return verdict{}
	case errors.Is(err, rpctypes.ErrNoSpace), !unsent && isSilence(err):
		return s.resolve(ctx, b, m, n, err)
	}
	err = s.members.explain(err)
	if errors.Is(err, store.ErrAway) {
		s.reach.bad(err)
	}
	return verdict{err: err}
}

// attempt limits the time of a commit. The rest is for learning its outcome.
func (s *Store) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(deadline)*3/5)
}

// committed records that b was committed in rev, by the transaction with m's number and n's count. before is the
// revision of the last change before it.
func (s *Store) committed(b *batch, m marker, n count, rev, before int64) verdict {
	s.commit.marked(m, rev)
	s.trace.counted(n, rev)
	s.count.commits.Add(1)
	var changes []store.Record
	watched := s.watches.Any()
	for _, k := range b.calls {
		if k.wrote {
			s.count.updates.Add(1)
		}
		if watched {
			changes = append(changes, k.tx.changes()...)
		}
	}
	for _, w := range b.wrote {
		s.note(w.key, w.value)
	}
	s.commit.floor.Store(rev)
	s.answered.Store(rev)
	s.own = &ownCommit{rev, b.wrote, changes}
	if before <= b.base { // nobody has changed anything since the state that the functions saw
		s.publish(rev, rev, s.layout.written(b, rev))
		return verdict{committed: true}
	}
	return verdict{committed: true, rev: rev}
}

// refuted finds the reason why a comparison of b failed.
func (s *Store) refuted(ctx context.Context, b *batch, m marker, n count, resp *pb.TxnResponse) verdict {
	last, kvs, gate := modOf(kvsOf(resp, 0)), kvsOf(resp, 1), modOf(kvsOf(resp, 2))
	switch {
	case m.ours(kvs): // the client has sent it twice
		return s.committed(b, m, n, kvs[0].ModRevision, kvs[0].ModRevision)
	case modOf(kvsOf(resp, 3)) != b.meta: // another store has replaced this one
		s.feed.again()
	case modOf(kvs) != m.mod:
		if err := s.verify(ctx); err != nil {
			return verdict{err: err}
		}
		if err := s.mark(ctx); err != nil {
			return verdict{err: err}
		}
	case gate != b.gate:
		return verdict{rev: max(last, gate)}
	// another handle of the host has counted, or etcd went back
	case modOf(kvsOf(resp, 4)) != n.mod && n.host != "", last < n.last:
		if err := s.verify(ctx); err != nil {
			return verdict{err: err}
		}
	case last <= b.base: // a change that does not update last: somebody else writes under the prefix
		s.feed.again()
	}
	return verdict{rev: last}
}

// resolve learns the outcome of a transaction that etcd did not answer, or refused for lack of space. If etcd's quota
// runs out after it has accepted a transaction, it may commit the transaction and nevertheless refuse it. But it
// decides before it answers. So a read shows the outcome, and needs no space.
func (s *Store) resolve(ctx context.Context, b *batch, m marker, n count, why error) verdict {
	s.count.unknown.Add(1)
	text, full := s.members.explain(why), errors.Is(why, rpctypes.ErrNoSpace)
	rev, committed, err := s.settle(ctx, m, full)
	switch {
	case err != nil:
		s.reach.bad(text)
		s.commit.mu.Lock()
		s.commit.doubt = &doubt{m: m, why: text, since: time.Now(), over: make(chan struct{})}
		s.commit.mu.Unlock()
		s.pulse.hurry()
		unknown := fmt.Errorf("%w: etcd did not report whether it made the write (%v): Berth is finding out; if etcd "+
			"made the write, it stays", store.ErrUnknown, said{why})
		return verdict{err: unknown, away: text}
	case committed:
		v := s.committed(b, m, n, rev, rev)
		if full {
			v.full = text
		}
		return v
	}
	if err := s.verify(ctx); isBack(err) { // it may have been committed before that
		return verdict{err: fmt.Errorf("%w: %w", store.ErrUnknown, err), away: err}
	}
	if full {
		s.reach.bad(text)
		return verdict{err: text}
	}
	return verdict{}
}

var errGone = errors.New("the handle's marker has expired")

// settle decides whether the transaction with m's number was committed. If etcd has that number, it was, and settle
// returns the revision. Otherwise settle puts another number, so that it never can be. With look, etcd has decided
// already, and settle puts nothing. If the marker is gone, the transaction can no longer be committed, but nobody knows
// whether it was: errGone.
func (s *Store) settle(ctx context.Context, m marker, look bool) (rev int64, committed bool, err error) {
	r := &pb.TxnRequest{Success: []*pb.RequestOp{get(m.key)}}
	if !look {
		void := m // under the compared name: the handle may have a new marker by now
		void.n = s.commit.draw().n
		r = &pb.TxnRequest{Compare: []*pb.Compare{modIs(m.key, m.mod)}, Success: []*pb.RequestOp{void.put()},
			Failure: r.Success}
	}
	resp, err := s.members.txn(ctx, r)
	if err != nil {
		return 0, false, err
	}
	rev = resp.Header.Revision
	if look || !resp.Succeeded {
		kvs := kvsOf(resp, 0)
		if len(kvs) == 0 {
			return 0, false, errGone
		}
		rev, committed = kvs[0].ModRevision, m.ours(kvs) // otherwise an earlier attempt to settle it has succeeded
	}
	s.commit.marked(m, rev)
	return rev, committed, nil
}
