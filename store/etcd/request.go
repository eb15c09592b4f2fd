package etcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// request returns the transaction of etcd that commits b. With a closing value it returns the one that closes the gate
// for b.
func (s *Store) request(b *batch, m marker, n count, l limit, closing string) *pb.TxnRequest {
	keys := &s.layout
	r := &pb.TxnRequest{
		Compare: s.compare(b, m, n, l),
		Success: make([]*pb.RequestOp, 0, b.cost().ops+1),
		Failure: []*pb.RequestOp{get(keys.last), get(m.key), get(keys.gate), get(keys.meta),
			get(n.key(keys))},
	}
	last := put(keys.last, nil)
	last.GetRequestPut().PrevKv = true
	r.Success = append(r.Success, last, m.put())
	if n.host != "" {
		r.Success = append(r.Success, n.put(keys))
	}
	if b.locked || closing != "" {
		r.Success = append(r.Success, put(keys.gate, []byte(closing)))
	}
	if closing != "" {
		return r
	}
	if b.deletes > 0 {
		r.Success = append(r.Success, put(keys.gone, nil))
	}
	for _, w := range b.laid.writes {
		r.Success = append(r.Success, keys.op(w))
	}
	l.group(r)
	return r
}

// compare returns the conditions for the commit of b. Nothing that b has read was written since, and the gate is
// unchanged. The handle's last transaction is the one that it knows, and the store is the same. The store has also not
// gone back (trace). If b has read too much for single conditions, one says that nothing at all was written.
func (s *Store) compare(b *batch, m marker, n count, l limit) []*pb.Compare {
	keys := &s.layout
	all := make([]*pb.Compare, 0, b.cost().compares)
	all = append(all, modIs(m.key, m.mod), modIs(keys.gate, b.gate), modIs(keys.meta, b.meta),
		modAbove(keys.last, n.last-1))
	if n.host != "" {
		all = append(all, modIs(n.key(keys), n.mod))
	}
	if l.coarse(b) {
		return append(all, modBelow(keys.last, b.base+1))
	}
	for place, mod := range b.read {
		all = append(all, modIs(keys.prefix+place, mod))
	}
	for _, name := range b.laid.made {
		all = append(all, modIs(keys.bundles+name, 0))
	}
	for s := range b.ranges {
		all = append(all, unchanged(keys.prefix+s.from, keys.prefix+s.to, b.base))
	}
	if len(b.ranges) > 0 {
		all = append(all, modBelow(keys.gone, b.base+1))
	}
	return all
}

func put(key string, value []byte) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: value}}}
}

func del(key string) *pb.RequestOp {
	r := &pb.DeleteRangeRequest{Key: []byte(key)}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: r}}
}

// delAll deletes all keys under a prefix.
func delAll(prefix string) *pb.RequestOp {
	op := del(prefix)
	op.GetRequestDeleteRange().RangeEnd = []byte(end(prefix))
	return op
}

func get(key string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}
}

// getAll asks for all keys under a prefix.
func getAll(prefix string) *pb.RequestOp {
	op := get(prefix)
	op.GetRequestRange().RangeEnd = []byte(end(prefix))
	return op
}

// modIs is the condition that key was last written in the revision mod; 0: key does not exist.
func modIs(key string, mod int64) *pb.Compare { return modified(key, pb.Compare_EQUAL, mod) }

// modAbove is the condition that key was last written after the revision mod. It always holds if mod is negative.
func modAbove(key string, mod int64) *pb.Compare { return modified(key, pb.Compare_GREATER, mod) }

// modBelow is the condition that key was last written before the revision mod, or never.
func modBelow(key string, mod int64) *pb.Compare { return modified(key, pb.Compare_LESS, mod) }

func modified(key string, how pb.Compare_CompareResult, mod int64) *pb.Compare {
	return &pb.Compare{
		Key: []byte(key), Target: pb.Compare_MOD, Result: how,
		TargetUnion: &pb.Compare_ModRevision{ModRevision: mod},
	}
}

// unchanged is the condition that no key from one (included) to another (excluded) was written after base. It does not
// cover deletions.
func unchanged(from, to string, base int64) *pb.Compare {
	c := modBelow(from, base+1)
	c.RangeEnd = []byte(to)
	return c
}

// op returns the operation of a write.
func (l *layout) op(w *write) *pb.RequestOp {
	if w.sealed == nil {
		return del(l.prefix + string(w.key))
	}
	return put(l.prefix+string(w.key), w.sealed)
}

// written returns the writes of b in the form in which the watch reports them.
func (l *layout) written(b *batch, rev int64) (all []*kv) {
	for _, w := range b.laid.writes {
		kv := &kv{Key: []byte(l.prefix + string(w.key)), Value: w.sealed, ModRevision: rev}
		if w.sealed != nil {
			kv.Version = 1
		}
		all = append(all, kv)
	}
	return all
}

// kvsOf returns the keys in the answer of the nth operation.
func kvsOf(resp *pb.TxnResponse, n int) []*kv { return resp.Responses[n].GetResponseRange().GetKvs() }

// modOf returns the revision of the only key in an answer, or 0.
func modOf(kvs []*kv) int64 {
	if len(kvs) == 1 {
		return kvs[0].ModRevision
	}
	return 0
}
