package storetest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"berth/store"
)

// Model is an obviously correct store.Store: a map under a lock, copied for each update. It keeps nothing and is slow.
// It is the oracle of the suite, and a store for tests that need no file.
type Model struct {
	mu       sync.RWMutex // write-locked while an update runs
	data     map[string]string
	watchers []*modelWatch
	closed   bool
}

var _ store.Store = (*Model)(nil)

// NewModel returns an empty Model.
func NewModel() *Model { return &Model{data: map[string]string{}} }

// View implements store.Store.
func (m *Model) View(ctx context.Context, fn func(store.Tx) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.may(ctx); err != nil {
		return err
	}
	tx := &modelTx{data: m.data}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.may(ctx); err != nil {
		return err
	}
	tx := &modelTx{data: maps.Clone(m.data), writable: true}
	done := false
	defer func() {
		tx.over = true
		if !done {
			for _, undo := range slices.Backward(tx.undo) {
				undo()
			}
		}
	}()
	err := fn(tx)
	if err == nil {
		err = tx.failed
	}
	if err != nil {
		return err
	}
	done = true
	m.publish(m.data, tx.data, tx.touched)
	m.data = tx.data
	return nil
}

// Close implements store.Store.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return store.ErrClosed
	}
	m.closed = true
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
	case len(key) == 0:
		t.failed = errors.New("an empty key")
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
