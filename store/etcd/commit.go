package etcd

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// round runs the functions of as many calls as fit one transaction, commits it and answers them. It returns the calls that
// are to be run in another round.
func (c *committer) round(calls []*call) (again []*call) {
	if calls = c.begin(calls); len(calls) == 0 {
		return nil
	}
	deadline := calls[0].deadline
	for _, k := range calls {
		if k.deadline.Before(deadline) {
			deadline = k.deadline
		}
	}
	ctx, cancel := context.WithDeadline(c.s.ctx, deadline)
	defer cancel()
	if err := c.ready(ctx); err != nil {
		for _, k := range calls {
			k.finish(err)
		}
		return nil
	}
	c.s.turn.Lock()
	unlock := c.s.turn.Unlock
	defer func() { unlock() }()
	b, rest := c.fill(calls)
	v := c.commit(ctx, b)
	switch {
	case v.committed:
		c.answer(b, nil)
		return rest
	case v.err != nil:
		b.abort(c.s.log)
		c.answer(b, v.err)
		return rest
	}
	b.abort(c.s.log)
	c.s.turn.Unlock()
	unlock = func() {}
	c.floor = max(c.floor, v.rev)
	return append(c.retry(b.calls, v), rest...)
}

// ready waits until a function may run: the mirror has come to what this handle has committed, and etcd is there.
func (c *committer) ready(ctx context.Context) error {
	c.mu.Lock()
	var err error
	if c.doubt != nil {
		err = c.refusal()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if c.s.reach.away() { // a request that is not answered leaves doubt, a question does not
		if _, err := c.s.askLast(ctx); err != nil {
			return err
		}
	}
	if c.s.mirror.wait(ctx, c.floor) != nil {
		return c.s.awayError()
	}
	return nil
}

// fill runs functions until the batch is full. Each of them runs on one goroutine, which ends with the batch, or when a
// function ends it.
func (c *committer) fill(calls []*call) (b *batch, rest []*call) {
	b = newBatch(&c.s.mirror)
	limit := c.s.limits()
	at := 0
	for full := false; at < len(calls) && !full; {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for at < len(calls) && !full {
				k := calls[at]
				at++
				k.runs++
				b.run(k, c.s.log)
				full = !limit.fit(b)
			}
		}()
		<-done
		full = !limit.fit(b)
	}
	if len(b.calls) > 1 && !limit.fit(b) {
		at--
		b.dropLast(c.s.log).runs--
	}
	return b, calls[at:]
}

// answer answers all calls of a batch. One that has failed by itself keeps its own error.
func (c *committer) answer(b *batch, err error) {
	for _, k := range b.calls {
		k.finish(err)
	}
}

// verdict is what became of a batch.
type verdict struct {
	committed bool
	err       error // nothing of it is there, or nobody knows: it is not tried again
	rev       int64 // otherwise: the mirror must come to this revision before it is tried again
}

// commit makes b part of the store.
func (c *committer) commit(ctx context.Context, b *batch) verdict {
	if len(b.wrote) == 0 {
		return c.confirm(ctx, b)
	}
	return c.write(ctx, b)
}

// confirm looks whether the state from which a batch that wrote nothing has its answers is as new as its calls.
func (c *committer) confirm(ctx context.Context, b *batch) verdict {
	if !slices.ContainsFunc(b.calls, func(k *call) bool { return b.base < k.since || k.since == 0 }) {
		return verdict{committed: true}
	}
	rev, err := c.s.askLast(ctx)
	if err != nil {
		return verdict{err: err}
	}
	if rev <= b.base {
		return verdict{committed: true}
	}
	for _, k := range b.calls {
		k.since = rev
	}
	return verdict{rev: rev}
}

// retry prepares calls for another run, unless their time is up.
func (c *committer) retry(calls []*call, v verdict) []*call {
	c.s.count.conflicts.Add(uint64(len(calls)))
	most := 0
	for _, k := range calls {
		most = max(most, k.runs)
	}
	now := time.Now()
	left := calls[:0:0]
	for _, k := range calls {
		if k.deadline.Before(now) {
			k.finish(fmt.Errorf("%w: others wrote the same records %d times in turn", c.s.awayError(), k.runs))
			continue
		}
		left = append(left, k)
	}
	if most > 1 {
		pause(c.s.ctx, most)
	}
	return left
}

// request is the transaction of etcd that commits b, with the number n in the handle's marker.
func (c *committer) request(b *batch, m marker) *pb.TxnRequest {
	l := &c.s.layout
	r := &pb.TxnRequest{
		Compare: make([]*pb.Compare, 0, b.compares()),
		Success: make([]*pb.RequestOp, 0, b.ops()),
		Failure: []*pb.RequestOp{get(l.last), get(l.marker + m.session)},
	}
	r.Compare = append(r.Compare, modIs(l.marker+m.session, m.mod), modIs(l.gate, b.gate))
	for key, mod := range b.read {
		r.Compare = append(r.Compare, modIs(l.data+key, mod))
	}
	for _, s := range b.ranges {
		r.Compare = append(r.Compare, l.unchanged(s, b.base))
	}
	if len(b.ranges) > 0 {
		r.Compare = append(r.Compare, modBelow(l.gone, "", b.base+1))
	}
	last := put(l.last, nil)
	last.GetRequestPut().PrevKv = true
	mark := put(l.marker+m.session, []byte(number(m.n+1)))
	mark.GetRequestPut().Lease = m.lease
	r.Success = append(r.Success, last, mark)
	if b.deletes > 0 {
		r.Success = append(r.Success, put(l.gone, nil))
	}
	for _, w := range b.sorted() {
		if w.value == nil {
			r.Success = append(r.Success, del(l.data+string(w.key), ""))
		} else {
			r.Success = append(r.Success, put(l.data+string(w.key), w.sealed))
		}
	}
	return r
}

// sorted is what is to be written, in the order of the keys.
func (b *batch) sorted() []*write {
	all := make([]*write, 0, len(b.wrote))
	for _, w := range b.wrote {
		all = append(all, w)
	}
	slices.SortFunc(all, func(x, y *write) int { return bytes.Compare(x.key, y.key) })
	return all
}
