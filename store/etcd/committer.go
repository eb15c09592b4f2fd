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

// committer has the functions of all callers of Update run, as many as wait at a time in one transaction of etcd. One
// goroutine does so, one transaction after the other.
type committer struct {
	s    *Store
	wake chan struct{} // holds one token when the queue is not empty, or the committer is to end
	done chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	queue  []*call
	closed bool
	doubt  *doubt // the outcome of a transaction is not known
	m      marker

	// What follows belongs to the goroutine.
	lastN  int          // how many functions the last batch had
	stages int          // how many large transactions were staged
	floor  atomic.Int64 // the mirror must have come to this revision before the next function runs
}

// call is one caller of Update.
type call struct {
	fn       func(store.Tx) error
	deadline time.Time
	state    atomic.Int32
	over     chan struct{} // closed when it has its answer
	tx       tx

	err      error
	panicked any
	panics   bool
	wrote    bool // the function succeeded, having written something
	runs     int
	since    int64 // a revision that is newer than the call; 0: none is known
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

// refusal says why no update can begin. The caller holds mu.
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

// doubted waits until no outcome is in doubt, and says why no function can be run.
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

// gather takes the queue once those who are about to join have joined: the callers that were answered a moment ago are
// about to come again, beside those who wait already, and taking the first of them alone would make every second batch
// a small one. No clock is asked.
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

// begin tells whether k still wants to be run. From then on it is answered by its batch.
func (k *call) begin() bool {
	return k.state.CompareAndSwap(stateQueued, stateBegun) || k.state.Load() == stateBegun
}

// finish gives k its answer. A function that failed, or panicked, has its own answer where err is nil.
func (k *call) finish(err error) {
	if err != nil {
		k.err, k.panics = err, false
	}
	k.tx = tx{rules: record.Rules{Over: true}} // its caller may hold on to it
	close(k.over)
}

// answer is what the caller hears.
func (k *call) answer() error {
	if k.panics {
		panic(k.panicked)
	}
	return k.err
}

// close waits until the queue is empty and refuses what comes later.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.done
}
