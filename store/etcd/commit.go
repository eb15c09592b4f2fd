package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"berth/store"
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
	locked, err := c.ready(ctx, calls)
	if err != nil {
		for _, k := range calls {
			k.finish(err)
		}
		return nil
	}
	b, rest, v := c.try(ctx, calls, locked)
	if locked != 0 && !v.committed || len(b.wrote) == 0 {
		c.s.unlock(locked)
	}
	if !v.committed && v.err == nil {
		c.floor = max(c.floor, v.rev)
		return append(c.retry(b.calls), rest...)
	}
	for _, k := range b.calls {
		k.finish(v.answer(k))
	}
	return rest
}

// try runs functions and commits what they have written, in one turn.
func (c *committer) try(ctx context.Context, calls []*call, locked int64) (b *batch, rest []*call, v verdict) {
	c.s.turn.Lock()
	defer c.s.turn.Unlock()
	b, rest = c.fill(calls, locked)
	if v = c.commit(ctx, b); !v.committed {
		b.abort(c.s.log)
	}
	return b, rest, v
}

// lockAfter is how often a call is run before the gate is closed for it.
const lockAfter = 6

// ready waits until a function may run: the mirror has come to what this handle has committed, and etcd is there.
// Where others have come before a call too often, the gate is closed for it: locked is the revision of that.
func (c *committer) ready(ctx context.Context, calls []*call) (locked int64, err error) {
	c.mu.Lock()
	if c.doubt != nil {
		err = c.refusal()
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if c.s.reach.away() { // a request that is not answered leaves doubt, a question does not
		if _, err := c.s.askLast(ctx); err != nil {
			return 0, err
		}
	}
	if c.s.mirror.wait(ctx, c.floor) != nil {
		return 0, c.s.awayError()
	}
	if !slices.ContainsFunc(calls, func(k *call) bool { return k.runs >= lockAfter }) {
		return 0, nil
	}
	locked, last, err := c.s.lock(ctx)
	if err == nil && locked != 0 && c.s.mirror.wait(ctx, last) != nil {
		c.s.unlock(locked)
		err = c.s.awayError()
	}
	return locked, err
}

// fill runs functions until the batch is full. Each of them runs on one goroutine, which ends with the batch, or when a
// function ends it.
func (c *committer) fill(calls []*call, locked int64) (b *batch, rest []*call) {
	b = newBatch(&c.s.mirror)
	if locked != 0 {
		b.gate, b.locked = locked, true
	}
	limit := c.s.sizes.now()
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

// verdict is what became of a batch.
type verdict struct {
	committed bool
	err       error // nothing of it is there, or nobody knows: it is not tried again
	rev       int64 // otherwise: the mirror must come to this revision before it is tried again
}

// answer is what k hears of it; nil: its function's own answer. Of what wrote nothing the outcome is never unknown.
func (v verdict) answer(k *call) error {
	if errors.Is(v.err, store.ErrUnknown) && !k.wrote {
		return fmt.Errorf("%w: %v", store.ErrAway, v.err)
	}
	return v.err
}

// commit makes b part of the store.
func (c *committer) commit(ctx context.Context, b *batch) verdict {
	limit := c.s.sizes.now()
	switch {
	case len(b.wrote) == 0:
		return c.confirm(ctx, b)
	case limit.fit(b):
		return c.write(ctx, b, limit)
	}
	return c.writeLarge(ctx, b, limit)
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
func (c *committer) retry(calls []*call) []*call {
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

// request is the transaction of etcd that commits b, or with a closing value that closes the gate for it.
func (c *committer) request(b *batch, m marker, l limit, closing string) *pb.TxnRequest {
	keys := &c.s.layout
	r := &pb.TxnRequest{
		Compare: c.compare(b, m, l),
		Success: make([]*pb.RequestOp, 0, b.ops()+1),
		Failure: []*pb.RequestOp{get(keys.last), get(keys.marker + m.session), get(keys.gate)},
	}
	last, mark := put(keys.last, nil), put(keys.marker+m.session, []byte(number(m.n+1)))
	last.GetRequestPut().PrevKv = true
	mark.GetRequestPut().Lease = m.lease
	r.Success = append(r.Success, last, mark)
	if b.locked || closing != "" {
		r.Success = append(r.Success, put(keys.gate, []byte(closing)))
	}
	if closing != "" {
		return r
	}
	if b.deletes > 0 {
		r.Success = append(r.Success, put(keys.gone, nil))
	}
	for _, w := range b.sorted() {
		r.Success = append(r.Success, keys.op(w))
	}
	groups, _ := l.width(len(r.Compare), len(r.Success))
	group(r, groups)
	return r
}

// compare is what etcd compares: that nothing b has read has been written since, that the gate is as it was, and that the
// handle's last transaction was the one that it knows. What is too much for that is coarser: that nothing has been written.
func (c *committer) compare(b *batch, m marker, l limit) []*pb.Compare {
	keys := &c.s.layout
	all := make([]*pb.Compare, 0, b.compares())
	all = append(all, modIs(keys.marker+m.session, m.mod), modIs(keys.gate, b.gate))
	if b.compares() > l.ops {
		return append(all, modBelow(keys.last, "", b.base+1))
	}
	for key, mod := range b.read {
		all = append(all, modIs(keys.data+key, mod))
	}
	for _, s := range b.ranges {
		all = append(all, keys.unchanged(s, b.base))
	}
	if len(b.ranges) > 0 {
		all = append(all, modBelow(keys.gone, "", b.base+1))
	}
	return all
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
