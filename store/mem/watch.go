package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"berth/store"
)

// watchBuffer is how many changes a watcher may be behind before it is told that it lagged.
const watchBuffer = 8192

var errWatchUsed = errors.New("mem: a watch can be read once only: call Watch again")

// watcher is one reader. It is among its handle's watchers from the call of Watch until it ended; the lock of common guards
// what it holds.
type watcher struct {
	s      *Store
	prefix []byte
	wake   chan struct{} // holds one token when there is something new

	pending []store.Change
	end     error // what comes after pending, and is the last
	used    bool
}

func (s *Store) watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	w := &watcher{s: s, prefix: bytes.Clone(prefix), wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		w.finish(errClosed)
	} else {
		s.watchers[w] = struct{}{}
	}
	// A watch that is never read must not stay for ever either.
	forget := context.AfterFunc(ctx, w.leave)
	return func(yield func(store.Change, error) bool) {
		if err := w.begin(); err != nil {
			yield(store.Change{}, err)
			return
		}
		defer forget()
		defer w.leave()
		w.read(ctx, yield)
	}
}

// begin refuses a second reader.
func (w *watcher) begin() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.used {
		return errWatchUsed
	}
	w.used = true
	return nil
}

func (w *watcher) read(ctx context.Context, yield func(store.Change, error) bool) {
	for ctx.Err() == nil {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		got, end := w.take()
		for _, c := range got {
			if ctx.Err() != nil || !yield(c, nil) {
				return
			}
		}
		if end != nil {
			yield(store.Change{}, end)
			return
		}
	}
}

// take returns what has come since it was called last.
func (w *watcher) take() ([]store.Change, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	got := w.pending
	w.pending = nil
	return got, w.end
}

func (w *watcher) leave() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watchers, w)
	w.pending = nil
}

// finish has the watch end with err once what is pending has been read. The caller holds the store's lock.
func (w *watcher) finish(err error) {
	w.end = err
	delete(w.s.watchers, w)
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// publish hands the changes of one commit to those who watch their keys. The caller holds the store's lock.
func (s *Store) publish(changed []change) {
	for w := range s.watchers {
		w.push(changed)
	}
}

// push copies the changes, because they belong to the receiver. One that has fallen too far behind loses what it has not
// read, and is told so.
func (w *watcher) push(changed []change) {
	for _, c := range changed {
		if !bytes.HasPrefix(c.key, w.prefix) {
			continue
		}
		if len(w.pending) >= watchBuffer {
			w.pending = nil
			w.finish(fmt.Errorf("%w: more than %d changes came before they were read", store.ErrLagged, watchBuffer))
			return
		}
		w.pending = append(w.pending, store.Change{Record: store.Record{Key: bytes.Clone(c.key), Value: bytes.Clone(c.after)}})
		w.signal()
	}
}

// endWatches ends all watches.
func (s *Store) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watchers {
		w.finish(errClosed)
	}
}
