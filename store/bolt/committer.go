package bolt

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"berth/store"
)

// committer runs the functions of all callers of Update, as many as wait at a time in one bbolt transaction.
//
// There is no goroutine while nothing is to do. A caller that finds the store idle and nobody else waiting takes the
// lead and runs its own function itself, which spares the single caller two switches. Everybody else's functions are
// run by a goroutine that lives as long as there is something to do, so no function ever runs on the goroutine of a
// stranger.
type committer struct {
	s *Store

	mu      sync.Mutex
	queue   []*call
	next    *batch // what the queue will become
	leading bool
	closed  bool
	broken  error // why writes are refused until the store is opened again
	rest    sync.Cond

	// What follows belongs to the leader.
	h       *handle // the file of the open transaction, or of the last one
	missing bool    // the file was not in its place when that was last looked at
	full    error   // the last commit that wrote had no room
	tried   time.Time
	current *batch
	spare   []*call
	w       writes
	changes []store.Record // for those who watch
	lastN   int            // how many functions the last batch had

	wedged bool // bbolt's locks may be held for ever: its Close would hang
}

// call is one caller of Update.
type call struct {
	ctx context.Context
	fn  func(store.Tx) error
	// between, instead of fn, is run while no transaction is open, also when writes are refused.
	between func() error

	state atomic.Int32
	tx    tx

	err      error
	panicked any
	panics   bool
	bound    bool // its outcome depends on the commit: it wrote, or it ran after somebody who did
	done     bool // the function succeeded
}

const (
	stateQueued = iota
	stateBegun
	stateDropped
)

func (c *committer) init(s *Store) {
	c.s = s
	c.rest.L = &c.mu
}

func (c *committer) update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.join(ctx, &call{ctx: ctx, fn: fn})
}

// quietly runs fn while nothing else is run and no transaction is open.
func (c *committer) quietly(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.join(ctx, &call{ctx: ctx, between: fn})
}

// join queues a call, and returns when it has its answer.
func (c *committer) join(ctx context.Context, k *call) error {
	c.mu.Lock()
	if err := c.refusal(k); err != nil {
		c.mu.Unlock()
		return err
	}
	c.queue = append(c.queue, k)
	b := c.joined()
	lead := !c.leading
	c.leading = true
	c.mu.Unlock()
	if lead {
		if c.alone() {
			return k.answer()
		}
	}
	select {
	case <-b.over:
	case <-ctx.Done():
		if k.state.CompareAndSwap(stateQueued, stateDropped) {
			return ctx.Err()
		}
		<-b.over
	}
	return k.answer()
}

// joined returns the batch that the queue will become.
func (c *committer) joined() *batch {
	if c.next == nil {
		c.next = &batch{over: make(chan struct{})}
	}
	return c.next
}

// refusal says why a call cannot begin.
func (c *committer) refusal(k *call) error {
	if c.closed {
		return fmt.Errorf("%w: %s", store.ErrClosed, c.s.files.db)
	}
	if k.between != nil {
		return nil
	}
	return c.broken
}

// alone runs the batch on the caller's goroutine when it is the only one in it; otherwise it gives the lead away.
func (c *committer) alone() bool {
	runtime.Gosched() // whoever is on the way comes in first
	c.mu.Lock()
	if len(c.queue) != 1 {
		c.mu.Unlock()
		go c.lead()
		return false
	}
	c.take()
	c.mu.Unlock()
	finished := false
	defer func() {
		if !finished { // the function ended this goroutine
			go c.lead()
		}
	}()
	c.run()
	finished = true
	c.mu.Lock()
	more := len(c.queue) > 0
	if !more {
		c.stand()
	}
	c.mu.Unlock()
	if more {
		go c.lead()
	}
	return true
}

// lead runs batches until nobody waits.
func (c *committer) lead() {
	finished := false
	defer func() {
		if !finished { // a function ended this goroutine: another one goes on behind it
			go c.lead()
		}
	}()
	if c.current != nil {
		c.run()
	}
	for c.gather() {
		c.run()
	}
	finished = true
}

// yields is how often the leader lets others run before it takes the queue; more brought no larger batches.
const yields = 4

// gather takes the queue once those who are about to join have joined. It answers false, having given up the lead, when
// there is none.
//
// The callers that were answered a moment ago are about to come again: taking the first of them alone would make every
// second batch a batch of one. Yielding lets them run; no clock is asked.
func (c *committer) gather() bool {
	for range yields {
		runtime.Gosched()
		c.mu.Lock()
		n := len(c.queue)
		c.mu.Unlock()
		if n > 0 && n >= c.lastN {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.stand()
		return false
	}
	c.take()
	return true
}

// take makes the queue the current batch. The caller holds mu.
func (c *committer) take() {
	b := c.next
	b.calls = c.queue
	c.queue, c.spare, c.next = c.spare[:0], nil, nil
	c.current = b
	c.lastN = len(b.calls)
}

// stand gives up the lead. The caller holds mu.
func (c *committer) stand() {
	c.leading = false
	c.rest.Broadcast()
}

// close waits until the queue is empty and refuses what comes later.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.leading {
		c.rest.Wait()
	}
}

// answer is what the caller hears.
func (k *call) answer() error {
	if k.panics {
		panic(k.panicked)
	}
	return k.err
}
