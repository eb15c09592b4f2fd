package etcd

import (
	"errors"
	"slices"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	// maxOps is the number of comparisons, and of operations, that a member takes in one transaction (--max-txn-ops).
	maxOps = 128
	// maxBytes is the part of a request's 1.5 MiB (--max-request-bytes) for a batch. A value of store.MaxValue with a
	// long key fits.
	maxBytes = 1<<20 + 64<<10
	// batchOps limits the writes of several functions together. More would only slow the request down.
	batchOps = 1024
)

// limits holds the maximum size of transactions. They are halved when a member refuses a transaction because it has
// lower limits.
type limits struct {
	ops, bytes atomic.Int64
}

// limit is the limits at one moment.
type limit struct{ ops, bytes int }

func (l *limits) now() limit { return limit{int(l.ops.Load()), int(l.bytes.Load())} }

// lower halves the limit that etcd says was exceeded. It returns false if none was, or if the limit is low already.
func (l *limits) lower(err error, was limit) bool {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps) && was.ops > 8:
		l.ops.CompareAndSwap(int64(was.ops), int64(was.ops/2))
		return true
	case isTooMuch(err) && !errors.Is(err, rpctypes.ErrTooManyOps) && was.bytes > 8<<10:
		l.bytes.CompareAndSwap(int64(was.bytes), int64(was.bytes/2))
		return true
	}
	return false
}

// fits reports whether a transaction of that cost fits etcd's limits.
func (l limit) fits(c cost) bool {
	if c.compares > l.ops || c.bytes > l.bytes {
		return false
	}
	return c.ops < l.ops || c.ops < (l.ops/2-headOps)*l.each(c.compares)
}

// takesMore reports whether b can take one more function as large as the largest so far.
func (l limit) takesMore(b *batch) bool {
	c := b.cost()
	return len(b.calls) == 0 || len(b.wrote) < batchOps &&
		l.fits(cost{c.compares + b.most.compares, c.ops + b.most.ops, c.bytes + b.most.bytes})
}

// coarse reports whether b has read too much to compare each read. It then compares that nothing at all was written.
func (l limit) coarse(b *batch) bool { return b.cost().compares > l.ops }

// each returns the number of operations per group. etcd limits the comparisons and operations of a transaction. But an
// operation may itself be a transaction, whose limit is what the outer one leaves. The outer one uses at most half for
// groups.
func (l limit) each(compares int) int { return l.ops - max(compares, l.ops/2) }

// headOps is the number of operations outside of groups, because their answers are read.
const headOps = 2

// group puts operations into groups if they are more than etcd takes.
func (l limit) group(r *pb.TxnRequest) {
	if len(r.Success) <= l.ops {
		return
	}
	head := r.Success[:headOps:headOps]
	for ops := range slices.Chunk(r.Success[headOps:], max(l.each(len(r.Compare)), 1)) {
		inner := &pb.TxnRequest{Success: ops}
		head = append(head, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: inner}})
	}
	r.Success = head
}
