package bolt

import (
	"context"
	"time"

	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
)

// After a full disk has refused a write, only another write shows whether there is space again. An empty update
// succeeds on a full disk, and so does one that finds a free page in the file.

// roomBytes is the size of that write: more than the commit of any request, and less than a growth of the file.
const roomBytes = 64 << 10

// roomEvery is the minimum interval of these writes.
const roomEvery = time.Second

var keyRoom = []byte("room")

// Writable returns why the store currently refuses writes, or nil. The error wraps store.ErrNoSpace, store.ErrAstray or
// store.ErrUnknown.
func (s *Store) Writable(ctx context.Context) error {
	if err := s.Update(ctx, func(store.Tx) error { return nil }); err != nil {
		return err
	}
	return s.commit.quietly(ctx, s.commit.tryRoom)
}

// tryRoom makes a test write if the last write found a full disk, and deletes it again. Its pages are then free for
// others.
func (c *committer) tryRoom() error {
	now := c.s.cfg.Now()
	if age := now.Sub(c.tried); c.full == nil || age >= 0 && age < roomEvery {
		return c.full
	}
	c.tried = now
	sealed := record.AppendSealed(nil, keyRoom, make([]byte, roomBytes)) // a crash may leave it there
	err := c.writeMeta(func(b *bbolt.Bucket) error { return b.Put(keyRoom, sealed) })
	if err == nil {
		err = c.writeMeta(func(b *bbolt.Bucket) error { return b.Delete(keyRoom) })
	}
	return err
}

// writeMeta commits a change of the meta bucket by itself.
func (c *committer) writeMeta(change func(*bbolt.Bucket) error) error {
	var b batch
	if err := c.begin(&b); err != nil {
		return err
	}
	if err := change(b.tx.Bucket(bucketMeta)); err != nil {
		c.discard(&b)
		return err
	}
	b.dirty = true
	return c.finish(&b)
}
