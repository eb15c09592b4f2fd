package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"berth/store"
)

// watchBuffer is how many changes a watcher may be behind before it is told that it lagged.
const watchBuffer = 8192

var errWatchUsed = errors.New("bolt: a watch can be read once only: call Watch again")

// watches is the set of all watchers. The committer publishes to it, in the order of its commits.
type watches struct {
	count  atomic.Int32 // so that a commit that nobody watches takes no lock
	mu     sync.Mutex
	closed bool
	set    map[*watcher]struct{}
}

// watcher is one reader. It is in the set from the call of Watch until it ended.
type watcher struct {
	prefix []byte
	all    *watches
	wake   chan struct{} // holds one token when there is something new
	stop   func() bool   // forgets the hook on the context

	mu      sync.Mutex
	pending []store.Change
	end     error // nothing comes after pending: ErrLagged, ErrClosed, or errStopped
	used    bool
}

// errStopped ends a watch whose context has ended; the reader does not see it.
var errStopped = errors.New("stopped")

func (ws *watches) any() bool { return ws.count.Load() > 0 }

func (ws *watches) add(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	w := &watcher{prefix: bytes.Clone(prefix), all: ws, wake: make(chan struct{}, 1)}
	ws.mu.Lock()
	if ws.closed {
		w.end = store.ErrClosed
	} else {
		if ws.set == nil {
			ws.set = map[*watcher]struct{}{}
		}
		ws.set[w] = struct{}{}
		ws.count.Add(1)
	}
	ws.mu.Unlock()
	// A watch that is never read must not stay for ever either.
	w.stop = context.AfterFunc(ctx, func() { w.finish(errStopped, true) })
	return w.read
}

// read is the iterator.
func (w *watcher) read(yield func(store.Change, error) bool) {
	w.mu.Lock()
	used := w.used
	w.used = true
	w.mu.Unlock()
	if used {
		yield(store.Change{}, errWatchUsed)
		return
	}
	defer w.stop()
	defer w.finish(errStopped, true)
	for {
		w.mu.Lock()
		got, end := w.pending, w.end
		w.pending = nil
		w.mu.Unlock()
		for i, c := range got {
			if i%64 == 63 && w.stopped() {
				return
			}
			if !yield(c, nil) {
				return
			}
		}
		switch {
		case end == nil && len(got) == 0:
			<-w.wake
		case errors.Is(end, errStopped):
			return
		case end != nil:
			yield(store.Change{}, end)
			return
		}
	}
}

func (w *watcher) stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Is(w.end, errStopped)
}

// finish ends the watch with err; drop throws away what was not read yet.
func (w *watcher) finish(err error, drop bool) {
	w.all.mu.Lock()
	if _, in := w.all.set[w]; in {
		delete(w.all.set, w)
		w.all.count.Add(-1)
	}
	w.all.mu.Unlock()
	w.endWith(err, drop)
}

func (w *watcher) endWith(err error, drop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil || errors.Is(err, errStopped) {
		w.end = err
	}
	if drop {
		w.pending = nil
	}
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// publish hands the changes of one commit to whoever watches them. It copies them: their memory is used again.
func (ws *watches) publish(changes []write) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.set {
		if w.push(changes) {
			continue
		}
		delete(ws.set, w)
		ws.count.Add(-1)
	}
}

// push answers false when the watcher has fallen too far behind.
func (w *watcher) push(changes []write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes {
		if !bytes.HasPrefix(c.key, w.prefix) {
			continue
		}
		if len(w.pending) >= watchBuffer {
			w.pending = nil
			w.end = fmt.Errorf("%w: more than %d changes came before they were read", store.ErrLagged, watchBuffer)
			w.signal()
			return false
		}
		r := store.Record{Key: bytes.Clone(c.key)}
		if c.sealed != nil {
			r.Value = append(make([]byte, 0, len(c.sealed)-sealSize), c.sealed[sealSize:]...)
		}
		w.pending = append(w.pending, store.Change{Record: r})
	}
	if len(w.pending) > 0 {
		w.signal()
	}
	return true
}

// close ends all watches, and those that come later.
func (ws *watches) close() {
	ws.mu.Lock()
	all := ws.set
	ws.set, ws.closed = nil, true
	ws.count.Store(0)
	ws.mu.Unlock()
	for w := range all {
		w.endWith(store.ErrClosed, false)
	}
}
