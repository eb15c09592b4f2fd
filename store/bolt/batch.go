package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
)

// batch is the set of calls that get their answers together.
type batch struct {
	calls []*call
	at    int // calls before it have run
	from  int // calls before it are settled
	tx    *bbolt.Tx
	t     tx // the template of the calls' transactions
	dirty bool
	wrote int
	over  chan struct{} // closed when all calls have their answers
}

// batchWrites limits one bbolt transaction. Further writes go into the next one.
const batchWrites = 4 * store.MaxWrites

// run completes the current batch and answers all its calls. If a function ends its goroutine, run can be called again
// and continues with the next function.
func (c *committer) run() {
	b := c.current
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for b.from < len(b.calls) {
		c.runSome(b)
	}
	c.current = nil
	close(b.over)
	clear(b.calls)
	c.spare = b.calls[:0]
	b.calls = nil
}

// runSome runs as many functions as fit into one bbolt transaction, commits it and settles them.
func (c *committer) runSome(b *batch) {
	if b.tx == nil && b.calls[b.at].between != nil {
		c.runBetween(b)
		return
	}
	end := b.stretch()
	if c.broken != nil {
		c.settle(b, end, c.broken, true)
		return
	}
	if b.tx == nil {
		if err := c.begin(b); err != nil {
			c.s.cfg.Committed(0, err)
			c.settle(b, end, err, true)
			return
		}
	}
	for b.at < end && b.wrote < batchWrites {
		k := b.calls[b.at]
		b.at++
		if !k.state.CompareAndSwap(stateQueued, stateBegun) {
			continue
		}
		if err := c.runOne(b, k); err != nil { // the shared transaction is unusable
			c.discard(b)
			c.settle(b, b.at, err, true)
			return
		}
	}
	err := c.finish(b)
	c.settle(b, b.at, err, false)
}

// stretch returns the end of the functions that may run in one transaction: the next call that runs outside of any.
func (b *batch) stretch() int {
	for i := b.at; i < len(b.calls); i++ {
		if b.calls[i].between != nil {
			return i
		}
	}
	return len(b.calls)
}

// runBetween runs the function of the next call while no transaction is open.
func (c *committer) runBetween(b *batch) {
	k := b.calls[b.at]
	b.at++
	if k.state.CompareAndSwap(stateQueued, stateBegun) {
		k.err = k.between()
	}
	b.from = b.at
}

// begin opens the shared transaction, unless its writes would be lost.
func (c *committer) begin(b *batch) (err error) {
	if err := c.astray(); err != nil {
		return err
	}
	c.h = c.s.handle()
	btx, err := c.s.begin(c.h, true)
	if err != nil {
		return err
	}
	defer guard(&err, func(fault any) error {
		c.discard(b)
		return c.s.faultError(fault)
	})()
	b.tx = btx
	bucket := btx.Bucket(bucketData)
	bucket.FillPercent = fillPercent
	b.t = tx{bucket: bucket, cursor: bucket.Cursor(), w: &c.w}
	b.dirty, b.wrote = false, 0
	return nil
}

// runOne runs one function and adds its writes to the shared transaction. It fails only if that transaction is
// unusable.
func (c *committer) runOne(b *batch, k *call) error {
	k.tx = b.t
	k.bound = b.dirty
	c.w.reset()
	c.call(k)
	if !k.done {
		return nil
	}
	err := c.apply(b)
	if err != nil {
		return err
	}
	k.bound = k.bound || b.dirty
	b.wrote += k.tx.rules.Count
	return nil
}

// call runs the function of k. If it fails, its hooks run at once.
func (c *committer) call(k *call) {
	returned := false
	defer func() {
		k.tx.rules.Over = true
		switch p := recover(); {
		case p != nil && c.h.isFault(p):
			k.err = c.s.faultError(p)
		case p != nil:
			k.panics, k.panicked = true, p
			c.s.log.Errorf("a function handed to Update panicked: %v\n%s", p, debug.Stack())
		case !returned:
			k.err = errors.New("the function handed to Update ended its goroutine")
		}
		if k.err == nil && !k.panics {
			k.err = k.tx.rules.Failed
		}
		k.done = k.err == nil && !k.panics
		if !k.done {
			c.abort(k)
		}
	}()
	k.err = k.fn(&k.tx)
	returned = true
}

// abort runs the hooks of k in reverse order. It logs a panic of a hook and runs the others.
func (c *committer) abort(k *call) {
	hooks := k.tx.undo
	k.tx.undo = nil
	for i := len(hooks) - 1; i >= 0; i-- {
		func() {
			defer func() {
				if p := recover(); p != nil {
					c.s.log.Errorf("a function handed to OnAbort panicked: %v\n%s", p, debug.Stack())
				}
			}()
			hooks[i]()
		}()
	}
}

// apply copies the buffer to the shared transaction, sorted by key.
func (c *committer) apply(b *batch) (err error) {
	if len(c.w.order) == 0 {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = c.s.faultError(p)
		}
	}()
	watched := c.s.watches.Any()
	for _, i := range c.w.order {
		w := c.w.list[i]
		if w.sealed == nil {
			if found, _ := b.t.cursor.Seek(w.key); found == nil || !bytes.Equal(found, w.key) {
				continue
			}
			err = b.t.bucket.Delete(w.key)
		} else {
			err = b.t.bucket.Put(w.key, w.sealed)
		}
		if err != nil {
			return fmt.Errorf("write %s to the state %s: %w", record.Quote(w.key), c.s.files.db, err)
		}
		b.dirty = true
		if watched {
			c.changes = append(c.changes, w.change())
		}
	}
	return nil
}

// finish ends the shared transaction: it commits the writes, or discards an empty transaction.
func (c *committer) finish(b *batch) error {
	if !b.dirty {
		c.discard(b)
		return nil
	}
	begun := time.Now()
	err := c.commitBatch(b)
	c.s.cfg.Committed(time.Since(begun), err)
	return err
}

func (c *committer) commitBatch(b *batch) error {
	id := b.tx.ID()
	err := c.commitTx(b.tx)
	b.tx = nil
	if err != nil {
		return c.commitFailed(id, err)
	}
	if c.full != nil {
		c.full = nil
		c.s.log.Infof("there is room for %s again", c.s.files.db)
	}
	// Writes to a file that was removed meanwhile last only as long as this process, so they are not acknowledged.
	if err := c.astray(); err != nil {
		return c.stop(fmt.Errorf("%w: the state's file was removed or replaced during a write (%w); after that, "+
			"restart the daemon, because only a new read of the file shows its contents", store.ErrUnknown, err))
	}
	return nil
}

// commitTx commits. A panic in bbolt, for example about an unreadable page, is a failed commit.
func (c *committer) commitTx(btx *bbolt.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the commit broke off: %v", p)
			c.rollback(btx)
		}
	}()
	return btx.Commit()
}

func (c *committer) discard(b *batch) {
	c.rollback(b.tx)
	b.tx = nil
}

func (c *committer) rollback(btx *bbolt.Tx) {
	defer func() {
		if p := recover(); p != nil {
			_ = c.breakOff(fmt.Errorf("a transaction cannot be rolled back: %v", p))
			c.wedged = true
		}
	}()
	_ = btx.Rollback() // it fails only if the transaction is over
}

// commitFailed finds the meaning of a failed commit. bbolt writes data pages, syncs, writes one meta page and syncs
// again. If the disk was full and no meta page has changed, nothing was committed. bbolt has read its free list again,
// and the next transaction starts from the state before. After any other error the content of the disk is unknown, and
// the kernel may have dropped what it could not write. So writes are not retried.
func (c *committer) commitFailed(id int, err error) error {
	if isNoSpace(err) && c.h.committedBefore(uint64(id)) {
		full := fmt.Errorf("%w: the state %s was not changed (%v): make room on its disk; then Berth continues by "+
			"itself", store.ErrNoSpace, c.s.files.db, err)
		if c.full == nil {
			c.s.log.Error(full)
		}
		c.full = full
		return full
	}
	return c.breakOff(err)
}

func (c *committer) breakOff(err error) error {
	return c.stop(fmt.Errorf("%w: writing the state %s failed (%v): Berth refuses writes until the daemon restarts, "+
		"because only a new read of the file shows its contents; check its disk first", store.ErrUnknown,
		c.s.files.db, err))
}

// stop refuses all writes from now on, with the first error that it gets.
func (c *committer) stop(broken error) error {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = broken
	}
	c.mu.Unlock()
	c.s.log.Error(broken)
	return broken
}

// settle gives the calls from b.from to end their outcome. With err, it undoes those that depended on the commit in
// reverse order; every undoes all.
func (c *committer) settle(b *batch, end int, err error, every bool) {
	if err != nil {
		for i := end - 1; i >= b.from; i-- {
			k := b.calls[i]
			if k.bound || every {
				c.abort(k)
				k.err = err
			}
		}
	} else if len(c.changes) > 0 {
		c.s.watches.Publish(c.changes)
	}
	clear(c.changes)
	c.changes = c.changes[:0]
	c.w.reset()
	c.w.mem.recycle()
	b.at, b.from = end, end
}
