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

// committer runs the functions of all callers of Update. Those that wait at the same time share one bbolt transaction.
//
// It has no goroutine while it is idle. A caller that is alone becomes the leader and runs its own function, which
// saves it two goroutine switches. The functions of other callers run on a goroutine that lasts while there is work. So
// no function runs on the goroutine of another caller.
type committer struct {
	s *Store

	mu      sync.Mutex
	queue   []*call
	next    *batch // the batch of the queued calls
	leading bool
	closed  bool
	broken  error // why writes are refused until the store is reopened
	rest    sync.Cond

	// The following belongs to the leader.
	h       *handle // the file of the open or the last transaction
	missing bool    // the file was not at its path at the last check
	full    error   // the error of the last writing commit, if the disk was full
	tried   time.Time
	current *batch
	spare   []*call
	w       writes
	changes []store.Record // for watchers
	lastN   int            // number of functions in the last batch

	wedged bool // bbolt's locks may be held for ever, so its Close would hang
}

// call is one call of Update.
type call struct {
	ctx context.Context
	fn  func(store.Tx) error
	// between runs instead of fn while no transaction is open, even if writes are refused.
	between func() error

	state atomic.Int32
	tx    tx

	err      error
	panicked any
	panics   bool
	bound    bool // it depends on the commit: it wrote, or ran after a call that did
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

// quietly runs fn while nothing else runs and no transaction is open.
func (c *committer) quietly(ctx context.Context, fn func() error) error {
	return c.join(&call{ctx: ctx, between: fn})
}

// join queues a call, and returns when it has its answer.
func (c *committer) join(k *call) error {
	if err := k.ctx.Err(); err != nil {
		return err
	}
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
	case <-k.ctx.Done():
		if k.state.CompareAndSwap(stateQueued, stateDropped) {
			return k.ctx.Err()
		}
		<-b.over
	}
	return k.answer()
}

// joined returns the batch of the queued calls.
func (c *committer) joined() *batch {
	if c.next == nil {
		c.next = &batch{over: make(chan struct{})}
	}
	return c.next
}

// refusal returns why a call cannot begin, or nil.
func (c *committer) refusal(k *call) error {
	if c.closed {
		return fmt.Errorf("%w: %s", store.ErrClosed, c.s.files.db)
	}
	if k.between != nil {
		return nil
	}
	return c.broken
}

// alone runs the batch on the caller's goroutine if the caller is alone. Otherwise it passes the lead to a goroutine.
func (c *committer) alone() bool {
	runtime.Gosched() // callers on their way join first
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

// lead runs batches until no call waits.
func (c *committer) lead() {
	finished := false
	defer func() {
		if !finished { // a function ended this goroutine; another one continues with the next function
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

// yields is how often the leader yields before it takes the queue. More did not make batches larger.
const yields = 4

// gather takes the queue after callers on their way have joined. If the queue is empty, it gives up the lead and
// returns false.
//
// Callers that just got an answer usually call again. If the leader took the first of them alone, every second batch
// would have one call. It yields to let them run, without a timer.
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

// close waits until the queue is empty, and refuses later calls.
func (c *committer) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for c.leading {
		c.rest.Wait()
	}
}

// answer returns the result to the caller.
func (k *call) answer() error {
	if k.panics {
		panic(k.panicked)
	}
	return k.err
}
