package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// marker is the key with which a handle finds out what became of a transaction. Each transaction of a handle compares
// that nobody has written it since the one before, and puts a number there that no other one puts.
type marker struct {
	leased
	n uint64 // the number that was drawn last, for this key or for one before it
}

// markerTTL is how many seconds a marker stays when its handle does not say that it is alive. A marker that is lost
// costs one look at everything that is stored; a transaction that was on the way with it cannot be committed any more.
const markerTTL = 3600

// mark makes a new marker for the handle. It may be called while a transaction with the one before is on its way.
func (s *Store) mark(ctx context.Context) error {
	l, err := s.grant(ctx, markerTTL, func(clientv3.LeaseID) (key, value string) {
		return s.layout.marker + drawn(8), number(0)
	})
	if err != nil {
		return err
	}
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	s.commit.m.leased = l // the numbers go on, so that none is drawn twice
	return nil
}

// draw returns the marker with a number for one transaction.
func (c *committer) draw() marker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m.n++
	return c.m
}

func (c *committer) marker() marker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m
}

// marked notes which revision has written the marker m, where that is still the one in use.
func (c *committer) marked(m marker, mod int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m.key == m.key {
		c.m.mod = mod
	}
}

// keptMarker notes when the marker m was kept alive, where that is still the one in use.
func (c *committer) keptMarker(m marker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m.key == m.key {
		c.m.kept = m.kept
	}
}

// ours tells whether the transaction with the number of m has put it there: kvs is the marker as etcd has it now.
func (m marker) ours(kvs []*kv) bool {
	return len(kvs) == 1 && string(kvs[0].Value) == number(m.n)
}

// put is the operation that puts the number of m there.
func (m marker) put() *pb.RequestOp {
	op := put(m.key, []byte(number(m.n)))
	op.GetRequestPut().Lease = int64(m.lease)
	return op
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// drawn returns n random bytes in hexadecimal digits.
func drawn(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
