package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"berth/store"
	"berth/store/internal/record"
)

// Model is an obviously correct store.Store: a map under a lock, copied for each update. It keeps nothing and is slow.
// It is the oracle of the suite, and a store for tests that need no file.
type Model struct {
	turn     chan struct{} // has a token while an update runs
	mu       sync.RWMutex
	data     map[string]string
	watchers []*modelWatch
	closed   bool
	views    sync.WaitGroup // running views
}

var _ store.Store = (*Model)(nil)

// NewModel returns an empty Model.
func NewModel() *Model { return &Model{turn: make(chan struct{}, 1), data: map[string]string{}} }

// View implements store.Store.
func (m *Model) View(ctx context.Context, fn func(store.Tx) error) error {
	m.mu.RLock()
	tx, err := &modelTx{data: m.data}, m.may(ctx)
	if err == nil {
		m.views.Add(1)
		defer m.views.Done()
	}
	m.mu.RUnlock() // an update replaces the map, so the view keeps its own
	if err != nil {
		return err
	}
	defer func() { tx.over = true }()
	return fn(tx)
}

func (m *Model) may(ctx context.Context) error {
	if m.closed {
		return store.ErrClosed
	}
	return ctx.Err()
}

// Update implements store.Store.
func (m *Model) Update(ctx context.Context, fn func(store.Tx) error) error {
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.RLock()
	tx, err := &modelTx{data: maps.Clone(m.data), writable: true}, m.may(ctx)
	m.mu.RUnlock()
	if err != nil {
		return err
	}
	done := false
	defer func() {
		tx.over = true
		if !done {
			for _, undo := range slices.Backward(tx.undo) {
				undo()
			}
		}
	}()
	if err := cmp.Or(fn(tx), tx.failed); err != nil {
		return err
	}
	done = true
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publish(m.data, tx.data, tx.touched)
	m.data = tx.data
	return nil
}

// Close implements store.Store.
func (m *Model) Close() error {
	m.turn <- struct{}{} // waits for the running update
	defer func() { <-m.turn }()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return store.ErrClosed
	}
	m.closed = true
	defer m.views.Wait()
	defer m.mu.Unlock()
	for _, w := range m.watchers {
		w.finish(store.ErrClosed)
	}
	return nil
}

type modelTx struct {
	data           map[string]string
	touched        map[string]bool
	undo           []func()
	count          int
	failed         error
	writable, over bool
}

var errOver = errors.New("the transaction is over")

func (t *modelTx) Get(key []byte) ([]byte, error) {
	if t.over {
		return nil, errOver
	}
	v, ok := t.data[string(key)]
	if !ok {
		return nil, nil
	}
	return append([]byte{}, v...), nil
}

func (t *modelTx) Put(key, value []byte) error {
	if err := t.write(key); err != nil {
		return err
	}
	if len(value) > store.MaxValue {
		t.failed = store.ErrTooLarge
		return t.failed
	}
	t.data[string(key)] = string(value)
	return nil
}

func (t *modelTx) Delete(key []byte) error {
	if err := t.write(key); err != nil {
		return err
	}
	delete(t.data, string(key))
	return nil
}

func (t *modelTx) write(key []byte) error {
	switch t.count++; {
	case t.over:
		return errOver
	case !t.writable:
		return store.ErrReadOnly
	case len(key) == 0, len(key) > record.MaxKey:
		t.failed = fmt.Errorf("a key of %d bytes", len(key))
	case t.count > store.MaxWrites:
		t.failed = store.ErrTooMany
	}
	if t.touched == nil {
		t.touched = map[string]bool{}
	}
	t.touched[string(key)] = true
	return t.failed
}

func (t *modelTx) OnAbort(undo func()) { t.undo = append(t.undo, undo) }

func (t *modelTx) Scan(r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if t.over {
			yield(store.Record{}, errOver)
			return
		}
		keys := slices.Sorted(maps.Keys(t.data))
		if r.Reverse {
			slices.Reverse(keys)
		}
		n := 0
		for _, k := range keys {
			if r.From != nil && k < string(r.From) || r.To != nil && k >= string(r.To) {
				continue
			}
			if n++; r.Limit > 0 && n > r.Limit {
				return
			}
			if !yield(store.Record{Key: []byte(k), Value: []byte(t.data[k])}, nil) {
				return
			}
		}
	}
}

// modelWatch keeps all changes, without a limit.
type modelWatch struct {
	mu      sync.Mutex
	wake    chan struct{}
	prefix  []byte
	changes []store.Change
	end     error
}

// Watch implements store.Store.
func (m *Model) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	w := &modelWatch{prefix: bytes.Clone(prefix), wake: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		w.end = store.ErrClosed
	}
	m.watchers = append(m.watchers, w)
	return func(yield func(store.Change, error) bool) {
		for ctx.Err() == nil {
			w.mu.Lock()
			var next []store.Change
			if len(w.changes) > 0 {
				next, w.changes = w.changes[:1], w.changes[1:]
			}
			end := w.end
			w.mu.Unlock()
			switch {
			case next != nil:
				if !yield(next[0], nil) {
					return
				}
			case end != nil:
				yield(store.Change{}, end)
				return
			default:
				select {
				case <-w.wake:
				case <-ctx.Done():
				}
			}
		}
	}
}

func (w *modelWatch) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = err
	w.signal()
}

func (w *modelWatch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (m *Model) publish(old, now map[string]string, touched map[string]bool) {
	for _, k := range slices.Sorted(maps.Keys(touched)) {
		_, was := old[k]
		v, is := now[k]
		if !was && !is {
			continue
		}
		c := store.Change{Record: store.Record{Key: []byte(k)}}
		if is {
			c.Value = []byte(v)
		}
		for _, w := range m.watchers {
			w.mu.Lock()
			if bytes.HasPrefix(c.Key, w.prefix) {
				w.changes = append(w.changes, c)
				w.signal()
			}
			w.mu.Unlock()
		}
	}
}
