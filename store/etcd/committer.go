package etcd

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"berth/store"
	"berth/store/internal/record"
)

// committer runs the functions of all callers of Update, as many as wait at a time in one transaction of etcd. One
// goroutine does so, one transaction after the other.
type committer struct {
	s    *Store
	wake chan struct{} // has a token if the queue is not empty, or the committer must end
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	queue  []*call
	closed bool
	doubt  *doubt // a transaction whose outcome is unknown
	m      marker

	// The rest belongs to the goroutine.
	lastN  int          // number of functions in the last batch
	stages int          // number of large transactions that were staged
	floor  atomic.Int64 // the revision that the mirror must reach before the next function runs
}

// call is one caller of Update.
type call struct {
	fn       func(store.Tx) error
	deadline time.Time
	state    atomic.Int32
	over     chan struct{} // closed when it is answered
	tx       tx

	err      error
	panicked any
	panics   bool
	wrote    bool // the function succeeded and wrote something
	runs     int
	since    int64 // a revision that is newer than the call; 0: unknown
}

const (
	stateQueued = iota
	stateBegun
	stateDropped
)

func (c *committer) init(s *Store) {
	c.s = s
	c.wake, c.done = make(chan struct{}, 1), make(chan struct{})
	go c.lead()
}

func (c *committer) update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k := &call{fn: fn, deadline: time.Now().Add(c.s.cfg.Timeout), over: make(chan struct{})}
	c.mu.Lock()
	if err := c.refusal(); err != nil {
		c.mu.Unlock()
		return err
	}
	c.queue = append(c.queue, k)
	c.mu.Unlock()
	c.signal()
	patience, cancel := context.WithDeadline(ctx, k.deadline)
	defer cancel()
	select {
	case <-k.over:
	case <-patience.Done():
		switch {
		case !k.state.CompareAndSwap(stateQueued, stateDropped):
			<-k.over
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			return c.s.awayError()
		}
	}
	return k.answer()
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// refusal returns why no update can begin. The caller holds mu.
func (c *committer) refusal() error {
	if c.closed {
		return errClosed
	}
	if err := c.s.refused(); err != nil {
		return err
	}
	if c.doubt != nil && time.Since(c.doubt.since) > reachPatience {
		return c.doubt.refusal()
	}
	return nil
}

// doubted waits until no outcome is in doubt. It returns an error if functions cannot run.
func (c *committer) doubted(ctx context.Context) error {
	if err := c.s.refused(); err != nil {
		return err
	}
	c.mu.Lock()
	d := c.doubt
	c.mu.Unlock()
	if d != nil {
		select {
		case <-d.over:
		case <-ctx.Done():
			return d.refusal()
		}
	}
	return c.s.refused()
}

// lead runs batches until the committer is closed and nobody waits.
func (c *committer) lead() {
	defer close(c.done)
	for {
		calls, more := c.gather()
		for len(calls) > 0 {
			calls = c.s.round(calls)
		}
		if !more {
			return
		}
	}
}

// yields is how often the leader lets others run before it takes the queue.
const yields = 16

// gather takes the queue after the callers that were just answered have had time to come again. Without that every
// second batch would be small. It uses no clock.
func (c *committer) gather() (calls []*call, more bool) {
	for {
		expected := c.lastN + c.waiting()
		for range yields {
			runtime.Gosched()
			if n := c.waiting(); n > 0 && n >= expected {
				break
			}
		}
		c.mu.Lock()
		calls, c.queue = c.queue, nil
		closed := c.closed
		c.mu.Unlock()
		c.lastN = len(calls)
		if len(calls) > 0 || closed {
			return calls, !closed || len(calls) > 0
		}
		<-c.wake
	}
}

func (c *committer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// begin reports whether k still wants to run. After that its batch answers it.
func (k *call) begin() bool {
	return k.state.CompareAndSwap(stateQueued, stateBegun) || k.state.Load() == stateBegun
}

// finish answers k. With a nil err, a function that failed or panicked gets its own answer.
func (k *call) finish(err error) {
	if err != nil {
		k.err, k.panics = err, false
	}
	k.tx = tx{rules: record.Rules{Over: true}} // its caller may keep it
	close(k.over)
}

// answer returns what the caller gets.
func (k *call) answer() error {
	if k.panics {
		panic(k.panicked)
	}
	return k.err
}

// close waits until the queue is empty, and refuses later calls.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.done
}
