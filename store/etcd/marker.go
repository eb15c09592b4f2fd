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
	session string // drawn, the key's name
	lease   int64  // of etcd, so that a handle that dies leaves nothing for ever
	mod     int64  // the revision that wrote it last
	n       uint64 // the number that was drawn last, for this key or for one before it
}

// markerTTL is how many seconds a marker stays when its handle does not say that it is alive. A marker that is lost
// costs one look at everything that is stored; a transaction that was on the way with it cannot be committed any more.
const markerTTL = 3600

// mark makes a new marker for the handle. It may be called while a transaction with the one before is on its way.
func (s *Store) mark(ctx context.Context) error {
	return s.members.ask(ctx, func(ctx context.Context, c *clientv3.Client) error {
		m := marker{session: drawn(8)} // by each try: what one of them has sent in vain may come late
		l, err := c.Grant(ctx, markerTTL)
		if err != nil {
			return err
		}
		p, err := c.Put(ctx, s.layout.marker+m.session, number(0), clientv3.WithLease(l.ID))
		if err != nil {
			return err
		}
		m.lease, m.mod = int64(l.ID), p.Header.Revision
		s.commit.mu.Lock()
		defer s.commit.mu.Unlock()
		m.n = s.commit.m.n // so that no number is drawn twice
		s.commit.m = m
		return nil
	})
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
	if c.m.session == m.session {
		c.m.mod = mod
	}
}

// ours tells whether the transaction with the number of m has put it there: kvs is the marker as etcd has it now.
func (m marker) ours(kvs []*kv) bool {
	return len(kvs) == 1 && string(kvs[0].Value) == number(m.n)
}

// put is the operation that puts the number of m there.
func (m marker) put(l *layout) *pb.RequestOp {
	op := put(l.marker+m.session, []byte(number(m.n)))
	op.GetRequestPut().Lease = m.lease
	return op
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// drawn returns n random bytes in hexadecimal digits.
func drawn(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}
