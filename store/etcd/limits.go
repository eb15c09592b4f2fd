package etcd

import (
	"errors"
	"slices"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	// maxOps is how many comparisons, and how many operations, a member of etcd takes in one transaction
	// (--max-txn-ops).
	maxOps = 128
	// maxBytes is what a batch takes of the 1.5 MiB that a request has at most (--max-request-bytes): a value of
	// store.MaxValue under a long key fits.
	maxBytes = 1<<20 + 64<<10
	// batchOps is how much several functions may write together: more makes the request slow and brings nothing.
	batchOps = 1024
)

// limits is how large a transaction may be. A member that was started with lower bounds says so, and they are halved.
type limits struct {
	ops, bytes atomic.Int64
}

// limit is the bounds at one moment.
type limit struct{ ops, bytes int }

func (l *limits) now() limit { return limit{int(l.ops.Load()), int(l.bytes.Load())} }

// lower halves the bound that an answer of etcd speaks of; false: it speaks of none, or of one that is low already.
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

// fits tells whether a transaction of that cost can be one of etcd's.
func (l limit) fits(c cost) bool {
	if c.compares > l.ops || c.bytes > l.bytes {
		return false
	}
	return c.ops < l.ops || c.ops < (l.ops/2-headOps)*l.each(c.compares)
}

// takesMore tells whether another function may join b that costs no more than any so far.
func (l limit) takesMore(b *batch) bool {
	c := b.cost()
	return len(b.calls) == 0 || len(b.wrote) < batchOps &&
		l.fits(cost{c.compares + b.most.compares, c.ops + b.most.ops, c.bytes + b.most.bytes})
}

// coarse tells that what b has read is too much to be compared: then it is compared that nothing has been written.
func (l limit) coarse(b *batch) bool { return b.cost().compares > l.ops }

// each is how many operations go in one group. etcd bounds the comparisons and the operations of a transaction, but an
// operation may be a transaction, too, whose bound is what the outer one leaves. The outer one has no more than half of
// the bound for groups.
func (l limit) each(compares int) int { return l.ops - max(compares, l.ops/2) }

// headOps is how many operations stay out of the groups: the answer is read from them.
const headOps = 2

// group puts operations into groups where they are more than etcd takes.
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
