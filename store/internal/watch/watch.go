// Package watch passes a backend's commits to its watchers. A reader that falls too far behind gets an error and is
// dropped, so it never delays a commit.
package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"berth/store"
)

// buffer is the maximum number of pending changes of a watcher before it gets ErrLagged.
const buffer = 8192

var (
	errUsed = errors.New("a watch can be read only once: call Watch again")
	// errStopped ends a watch whose context has ended; the reader does not see it.
	errStopped = errors.New("stopped")
)

// Set is the set of a store's watchers. The zero Set is empty.
type Set struct {
	count  atomic.Int32 // lets a commit without watchers avoid the lock
	mu     sync.Mutex
	closed error
	set    map[*watcher]struct{}
}

// watcher is one reader. It is in the set from the call of Watch until its end.
type watcher struct {
	prefix []byte
	all    *Set
	wake   chan struct{} // holds one token if there is something new
	stop   func() bool   // removes the context's AfterFunc

	mu      sync.Mutex
	pending []store.Change
	end     error // the end after pending: ErrLagged, ErrClosed, or errStopped
	used    bool
}

// Any reports whether there are watchers.
func (ws *Set) Any() bool { return ws.count.Load() > 0 }

// Watch implements store.Store.
func (ws *Set) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	w := &watcher{prefix: bytes.Clone(prefix), all: ws, wake: make(chan struct{}, 1)}
	ws.mu.Lock()
	if ws.closed != nil {
		w.end = ws.closed
	} else {
		if ws.set == nil {
			ws.set = map[*watcher]struct{}{}
		}
		ws.set[w] = struct{}{}
		ws.count.Add(1)
	}
	ws.mu.Unlock()
	// A watch that is never read must end, too.
	w.stop = context.AfterFunc(ctx, func() { w.finish(errStopped) })
	return w.read
}

// read is the iterator.
func (w *watcher) read(yield func(store.Change, error) bool) {
	w.mu.Lock()
	used := w.used
	w.used = true
	w.mu.Unlock()
	if used {
		yield(store.Change{}, errUsed)
		return
	}
	defer w.stop()
	defer w.finish(errStopped)
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

// finish ends the watch with err and discards pending changes.
func (w *watcher) finish(err error) {
	w.all.mu.Lock()
	if _, in := w.all.set[w]; in {
		delete(w.all.set, w)
		w.all.count.Add(-1)
	}
	w.all.mu.Unlock()
	w.endWith(err, true)
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

// Publish passes copies of a commit's changes to their watchers. A nil value is a deletion.
func (ws *Set) Publish(changes []store.Record) {
	if !ws.Any() {
		return
	}
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

// push returns false if the watcher has too many pending changes.
func (w *watcher) push(changes []store.Record) bool {
	wants := func(c store.Record) bool { return bytes.HasPrefix(c.Key, w.prefix) }
	first := slices.IndexFunc(changes, wants)
	if first < 0 {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range changes[first:] {
		if !wants(c) {
			continue
		}
		if len(w.pending) >= buffer {
			w.pending = nil
			w.end = fmt.Errorf("%w: more than %d changes came before they were read", store.ErrLagged, buffer)
			w.signal()
			return false
		}
		w.pending = append(w.pending, store.Change{Record: cloned(c)})
	}
	w.signal()
	return true
}

// cloned returns a copy of a record in one allocation.
func cloned(c store.Record) store.Record {
	both := append(append(make([]byte, 0, len(c.Key)+len(c.Value)), c.Key...), c.Value...)
	n := len(c.Key)
	one := store.Record{Key: both[:n:n]}
	if c.Value != nil {
		one.Value = both[n:]
	}
	return one
}

// Interrupt ends all current watches with err after their pending changes have been read.
func (ws *Set) Interrupt(err error) {
	ws.mu.Lock()
	all := ws.set
	ws.set = nil
	ws.count.Store(0)
	ws.mu.Unlock()
	for w := range all {
		w.endWith(err, false)
	}
}

// Close ends all current and later watches with err.
func (ws *Set) Close(err error) {
	ws.mu.Lock()
	ws.closed = err
	ws.mu.Unlock()
	ws.Interrupt(err)
}
