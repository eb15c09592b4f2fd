package etcd

import (
	"errors"
	"strings"
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

// lower halves the bound that an answer of etcd speaks of; false: it speaks of none.
func (l *limits) lower(err error, was limit) bool {
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps) && was.ops > 8:
		l.ops.CompareAndSwap(int64(was.ops), int64(was.ops/2))
		return true
	case (errors.Is(err, rpctypes.ErrRequestTooLarge) || err != nil &&
		strings.Contains(err.Error(), "message larger than max")) && was.bytes > 8<<10:
		l.bytes.CompareAndSwap(int64(was.bytes), int64(was.bytes/2))
		return true
	}
	return false
}

// fit tells whether b can be one transaction, and a further function may join it.
func (l limit) fit(b *batch) bool {
	compares := b.compares()
	if compares > l.ops && len(b.calls) == 1 {
		compares = ownCompares + 1 // coarser ones
	}
	if compares > l.ops || b.bytes > l.bytes || len(b.calls) > 1 && len(b.wrote) > batchOps {
		return false
	}
	_, ok := l.width(compares, b.ops()+1)
	return ok
}

// width says how a transaction of so many comparisons and operations is laid out. etcd bounds the comparisons and the
// operations of a transaction, but an operation may be a transaction, too, whose bound is what the outer one leaves: so
// operations go in groups. 0: they fit as they are.
func (l limit) width(compares, ops int) (groups int, ok bool) {
	if max(compares, ops) <= l.ops {
		return 0, true
	}
	for groups = 1; groups < l.ops; groups++ {
		if each := l.ops - max(compares, groups+2); each > 0 && groups*each >= ops-2 {
			return groups, true
		}
	}
	return 0, false
}

// group puts all operations but the first two, which the answer is read from, into groups.
func group(r *pb.TxnRequest, groups int) {
	if groups == 0 {
		return
	}
	head, rest := r.Success[:2:2], r.Success[2:]
	each := (len(rest) + groups - 1) / groups
	for len(rest) > 0 {
		n := min(each, len(rest))
		head = append(head,
			&pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: &pb.TxnRequest{Success: rest[:n:n]}}})
		rest = rest[n:]
	}
	r.Success = head
}
