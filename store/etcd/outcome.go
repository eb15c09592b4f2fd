package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/store"
)

// marker is the key with which a handle finds out what became of a transaction. Each transaction compares that nobody has
// written it since the one before, and puts the next number there.
type marker struct {
	session string // drawn, the key's name
	lease   int64  // of etcd, so that a handle that dies leaves nothing for ever
	mod     int64  // the revision that wrote it last
	n       uint64 // what that wrote
}

// markerTTL is how many seconds a marker stays when its handle does not say that it is alive. A marker that is lost costs
// one look at everything that is stored; a transaction that was on the way with it cannot be committed any more.
const markerTTL = 3600

// doubt is a transaction whose outcome is not known.
type doubt struct {
	m     marker // as it was before
	why   error
	since time.Time
	over  chan struct{} // closed when it is known
}

func (d *doubt) refusal() error {
	return fmt.Errorf("%w: what became of an earlier write is not known yet (%v)", store.ErrAway, d.why)
}

// send sends a transaction so that etcd sees it once at most. Without an answer, unsent says that it has not seen it.
func (s *Store) send(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, unsent bool, err error) {
	for {
		resp, unsent, err = s.sendOnce(ctx, r)
		if err == nil || !unsent || !isAway(err) {
			return resp, unsent, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, true, err
		}
	}
}

func (s *Store) sendOnce(ctx context.Context, r *pb.TxnRequest) (resp *pb.TxnResponse, unsent bool, err error) {
	c, at, err := s.members.client(ctx)
	if err != nil {
		return nil, true, err
	}
	ctx, sent := withSent(ctx)
	resp, err = pb.NewKVClient(c.ActiveConnection()).Txn(ctx, r)
	if err != nil {
		err = rpctypes.Error(err)
		if isAway(err) {
			s.members.fail(at)
		}
		return nil, !sent.Load(), err
	}
	return resp, false, nil
}

// ours tells whether the transaction that was to put n there has: the marker as etcd has it now says so.
func (m marker) ours(kvs []*kv) bool {
	return len(kvs) == 1 && string(kvs[0].Value) == number(m.n+1)
}

// writeLarge commits a batch that does not: it goes through the gate.
func (c *committer) writeLarge(ctx context.Context, b *batch, l limit) verdict {
	g, parts, err := c.stage(ctx, b, c.marker(), l.bytes)
	switch {
	case c.s.sizes.lower(err, l):
		c.s.unstage(ctx, g)
		return verdict{}
	case err != nil:
		return verdict{err: err}
	}
	v := c.sendBatch(ctx, b, l, g.String())
	if !v.committed {
		if !errors.Is(v.err, store.ErrUnknown) {
			c.s.unstage(ctx, g)
		}
		return v
	}
	err = c.s.step("closed")
	if err == nil {
		err = c.s.finish(c.s.ctx, c.floor.Load(), g, parts)
	}
	if err != nil {
		c.s.log.Warnf("a large update is committed but cannot be finished yet (%v): the first host that reaches etcd goes on with it", err)
	}
	return v
}

// sendBatch sends the transaction that commits b, or closes the gate for it, and finds out what became of it.
func (c *committer) sendBatch(ctx context.Context, b *batch, l limit, closing string) verdict {
	m := c.marker()
	first, cancel := c.attempt(ctx)
	defer cancel()
	resp, unsent, err := c.s.send(first, c.request(b, m, l, closing))
	switch {
	case err == nil && resp.Succeeded:
		c.s.reach.good()
		before := int64(0)
		if prev := resp.Responses[0].GetResponsePut().GetPrevKv(); prev != nil {
			before = prev.ModRevision
		}
		if b.locked || closing != "" {
			before = resp.Header.Revision // the gate has moved, too: the watch tells
		}
		return c.committed(b, resp.Header.Revision, before)
	case err == nil:
		c.s.reach.good()
		return c.refuted(ctx, b, m, resp)
	case c.s.sizes.lower(err, l):
		return verdict{}
	case unsent || !isAway(err):
		err = c.s.members.explain(err)
		if errors.Is(err, store.ErrAway) {
			c.s.reach.bad(err)
		}
		return verdict{err: err}
	}
	return c.resolve(ctx, b, m, err)
}

// attempt is the time in which a commit is to be answered. What is left afterwards is for finding out what became of it.
func (c *committer) attempt(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(deadline)*3/5)
}

// committed notes that b is part of the store as of rev. before is the revision of the last change before it.
func (c *committer) committed(b *batch, rev, before int64) verdict {
	c.setMarker(func(m *marker) { m.mod, m.n = rev, m.n+1 })
	c.s.count.commits.Add(1)
	for _, k := range b.calls {
		if k.wrote {
			c.s.count.updates.Add(1)
		}
	}
	var changes []store.Record
	if c.s.watches.Any() {
		for _, k := range b.calls {
			changes = append(changes, k.tx.changes()...)
		}
	}
	c.floor.Store(rev)
	c.s.answered.Store(rev)
	if before <= b.base { // nobody has changed anything since the state that the functions have seen
		c.s.advance(b, rev)
		c.s.watches.Publish(changes)
	} else {
		c.s.own[rev] = ownCommit{b.wrote, changes}
	}
	return verdict{committed: true}
}

// refuted says why a comparison of b did not hold.
func (c *committer) refuted(ctx context.Context, b *batch, m marker, resp *pb.TxnResponse) verdict {
	last, gate := modOf(resp.Responses[0]), modOf(resp.Responses[2])
	kvs := resp.Responses[1].GetResponseRange().GetKvs()
	switch {
	case m.ours(kvs): // the client has sent it twice
		return c.committed(b, kvs[0].ModRevision, kvs[0].ModRevision)
	case modOf(resp.Responses[3]) != b.meta: // another store has taken the place of this one
		c.s.feed.again()
	case len(kvs) == 0 || kvs[0].ModRevision != m.mod:
		if err := c.s.mark(ctx); err != nil {
			return verdict{err: err}
		}
	case gate != b.gate:
		return verdict{rev: max(last, gate)}
	case last <= b.base: // something was changed that does not say so: somebody else writes under the prefix
		c.s.feed.again()
	}
	return verdict{rev: last}
}

// resolve finds out what became of a transaction that was not answered.
func (c *committer) resolve(ctx context.Context, b *batch, m marker, why error) verdict {
	c.s.count.unknown.Add(1)
	now, committed, err := c.s.settle(ctx, m)
	switch {
	case err != nil:
		err = c.s.members.explain(why)
		c.s.reach.bad(err)
		c.mu.Lock()
		c.doubt = &doubt{m: m, why: err, since: time.Now(), over: make(chan struct{})}
		c.mu.Unlock()
		c.s.pulse.hurry()
		unknown := fmt.Errorf("%w: etcd did not answer a commit (%v): it is being found out; what turns out to be written stays written", store.ErrUnknown, said{why})
		return verdict{err: unknown, away: err}
	case committed:
		return c.committed(b, now.mod, now.mod)
	}
	c.setMarker(func(m *marker) { *m = now })
	return verdict{}
}

// settle has it decided whether the transaction that followed m was committed: either etcd shows the number that it put,
// or settle puts another one there, and then it never will be.
func (s *Store) settle(ctx context.Context, m marker) (now marker, committed bool, err error) {
	key := s.layout.marker + m.session
	r := &pb.TxnRequest{Compare: []*pb.Compare{modIs(key, m.mod)}, Success: []*pb.RequestOp{put(key, []byte(number(m.n+2)))}, Failure: []*pb.RequestOp{get(key)}}
	r.Success[0].GetRequestPut().Lease = m.lease
	var resp *pb.TxnResponse
	err = s.members.ask(ctx, func(ctx context.Context, cl *clientv3.Client) (err error) {
		resp, err = pb.NewKVClient(cl.ActiveConnection()).Txn(ctx, r)
		return rpctypes.Error(err)
	})
	if err != nil {
		return m, false, err
	}
	if resp.Succeeded {
		m.mod, m.n = resp.Header.Revision, m.n+2
		return m, false, nil
	}
	kvs := resp.Responses[0].GetResponseRange().GetKvs()
	switch {
	case m.ours(kvs):
		m.mod, m.n = kvs[0].ModRevision, m.n+1
		return m, true, nil
	case len(kvs) == 1: // an earlier try of this has succeeded
		m.mod, m.n = kvs[0].ModRevision, m.n+2
		return m, false, nil
	}
	m.mod = 0 // the marker is gone: nothing can be committed with it any more, but what was before nobody knows
	return m, false, errGone
}

var errGone = errors.New("the handle's marker has expired")

// mark makes a new marker for the handle.
func (s *Store) mark(ctx context.Context) error {
	m := marker{session: drawn(8), n: 0}
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		l, err := c.Grant(ctx, markerTTL)
		if err != nil {
			return err
		}
		p, err := c.Put(ctx, s.layout.marker+m.session, number(0), clientv3.WithLease(l.ID))
		if err != nil {
			return err
		}
		m.lease, m.mod = int64(l.ID), p.Header.Revision
		s.commit.setMarker(func(now *marker) { *now = m })
		return nil
	})
}

func (c *committer) marker() marker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m
}

func (c *committer) setMarker(set func(*marker)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set(&c.m)
}

// drawn returns n random bytes in hexadecimal digits.
func drawn(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// askLast asks for the revision of the last change of a record, as of now or later. 0: there was none yet.
func (s *Store) askLast(ctx context.Context) (rev int64, err error) {
	asked, at, seen := time.Now(), s.mirror.at(), s.seen.Load()
	var now int64
	err = s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		g, err := c.Get(ctx, s.layout.last)
		if err != nil {
			return err
		}
		rev, now = 0, g.Header.Revision
		if len(g.Kvs) == 1 {
			rev = g.Kvs[0].ModRevision
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if now < at || rev < seen { // etcd has less than it had: it was emptied, or a backup was put in its place
		s.feed.again()
	} else if rev > seen {
		s.seen.CompareAndSwap(seen, rev)
	}
	s.reach.good()
	s.reach.seen(rev, asked, s.mirror.at())
	return rev, nil
}
