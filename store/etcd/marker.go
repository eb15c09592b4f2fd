package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// marker is the key by which a handle learns the outcome of a transaction. Each transaction of a handle compares that
// the marker has not changed since the last one, and puts a unique number there.
type marker struct {
	leased
	n uint64 // the last number, of this key or an earlier one
}

// markerTTL is how many seconds a marker lasts without a keepalive. After its loss the handle reads everything again. A
// transaction with the lost marker can no longer commit.
const markerTTL = 3600

// mark creates a new marker for the handle. A transaction with the old one may be in flight.
func (s *Store) mark(ctx context.Context) error {
	l, err := s.grant(ctx, markerTTL, func(clientv3.LeaseID) (key, value string) {
		return s.layout.marker + drawn(8), number(0)
	})
	if err != nil {
		return err
	}
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	s.commit.m.leased = l // the numbers continue, so each is drawn once
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

// marked notes the revision that wrote the marker m, if m is still in use.
func (c *committer) marked(m marker, mod int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m.key == m.key {
		c.m.mod = mod
	}
}

// keptMarker notes a keepalive of the marker m, if m is still in use.
func (c *committer) keptMarker(m marker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m.key == m.key {
		c.m.kept = m.kept
	}
}

// ours reports whether the transaction with m's number was committed. kvs is the marker as it is in etcd.
func (m marker) ours(kvs []*kv) bool {
	return len(kvs) == 1 && string(kvs[0].Value) == number(m.n)
}

// put returns the operation that puts m's number.
func (m marker) put() *pb.RequestOp {
	op := put(m.key, []byte(number(m.n)))
	op.GetRequestPut().Lease = int64(m.lease)
	return op
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// drawn returns n random bytes as hexadecimal digits.
func drawn(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
