package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"berth/store"
)

// Model is a store.Store that is right by inspection: a map under a lock, copied for each update. It keeps nothing and
// is slow; it is the oracle of the suite, and a store for tests that need no file.
type Model struct {
	mu       sync.RWMutex // held for writing while an update runs
	data     map[string]string
	watchers []*modelWatch
	closed   bool
}

var _ store.Store = (*Model)(nil)

// NewModel returns an empty one.
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
		t.failed = errors.New("too many writes")
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

// modelWatch keeps all changes, without a bound.
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

// testModel runs random updates and views on the store and on a Model, which must answer the same.
func testModel(t *testing.T, s store.Store) {
	rapid.Check(t, func(r *rapid.T) {
		wipe(r, s)
		m := NewModel()
		for range rapid.IntRange(1, 12).Draw(r, "transactions") {
			ops := rapid.SliceOfN(rapid.Custom(drawOp), 1, 25).Draw(r, "ops")
			fail := rapid.IntRange(0, 4).Draw(r, "fails") == 0
			got, want := runOps(s, ops, fail), runOps(m, ops, fail)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					r.Fatalf("op %d, %v:\n got %v\nwant %v", i, ops[min(i, len(ops)-1)], got[min(i, len(got)-1)], want[i])
				}
			}
			got, want = readAll(s), readAll(m)
			if !slices.Equal(got, want) {
				r.Fatalf("after %v\n got %v\nwant %v", ops, got, want)
			}
		}
	})
}

// op is one call of a Tx.
type op struct {
	kind  string
	key   string
	size  int
	r     store.Range
	upper string
}

func (o op) String() string {
	if o.kind == "scan" {
		return fmt.Sprintf("scan %q..%q reverse=%t limit=%d", o.r.From, o.r.To, o.r.Reverse, o.r.Limit)
	}
	return fmt.Sprintf("%s %q (%d)", o.kind, o.key, o.size)
}

func drawKey(r *rapid.T, name string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 'c', 0xff}), 1, 3).Draw(r, name))
}

func drawOp(r *rapid.T) op {
	o := op{kind: rapid.SampledFrom([]string{"put", "put", "delete", "get", "scan", "sweep"}).Draw(r, "kind"), key: drawKey(r, "key")}
	switch o.kind {
	case "put": // large ones, so that a tree has many pages
		o.size = rapid.SampledFrom([]int{0, 1, 100, 1500, 9000}).Draw(r, "size")
	case "scan", "sweep":
		if rapid.Bool().Draw(r, "from") {
			o.r.From = []byte(o.key)
		}
		if rapid.Bool().Draw(r, "to") {
			o.r.To = []byte(drawKey(r, "upper"))
		}
		o.r.Reverse = rapid.Bool().Draw(r, "reverse")
		o.r.Limit = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(r, "limit")
	}
	return o
}

// runOps runs ops in one update and returns what they answered.
func runOps(s store.Store, ops []op, fail bool) []string {
	var out []string
	failed := errors.New("fails")
	err := s.Update(context.Background(), func(tx store.Tx) error {
		out = out[:0]
		for i, o := range ops {
			out = append(out, o.run(tx, byte('A'+i)))
		}
		if fail {
			return failed
		}
		return nil
	})
	return append(out, fmt.Sprint(err))
}

func (o op) run(tx store.Tx, mark byte) string {
	switch o.kind {
	case "put":
		return fmt.Sprint(tx.Put([]byte(o.key), bytes.Repeat([]byte{mark}, o.size)))
	case "delete":
		return fmt.Sprint(tx.Delete([]byte(o.key)))
	case "get":
		v, err := tx.Get([]byte(o.key))
		return fmt.Sprint(v == nil, short(v), err)
	case "sweep": // deletes a whole range
		var keys [][]byte
		for rec, err := range tx.Scan(o.r) {
			if err != nil {
				return err.Error()
			}
			keys = append(keys, bytes.Clone(rec.Key))
		}
		for _, k := range keys {
			if err := tx.Delete(k); err != nil {
				return err.Error()
			}
		}
		return fmt.Sprint(len(keys))
	}
	return fmt.Sprint(scanAll(tx, o.r))
}

func short(v []byte) string {
	if len(v) > 4 {
		return fmt.Sprintf("%s..%d", v[:2], len(v))
	}
	return string(v)
}

func scanAll(tx store.Tx, r store.Range) []string {
	var out []string
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return append(out, err.Error())
		}
		out = append(out, fmt.Sprintf("%q=%s", rec.Key, short(rec.Value)))
	}
	return out
}

func readAll(s store.Store) []string {
	var out []string
	err := s.View(context.Background(), func(tx store.Tx) error {
		out = append(scanAll(tx, store.Range{}), scanAll(tx, store.Range{Reverse: true})...)
		return nil
	})
	return append(out, fmt.Sprint(err))
}

// wipe deletes everything.
func wipe(t interface {
	Fatalf(string, ...any)
}, s store.Store) {
	for more := true; more; {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			more = false
			var keys [][]byte
			for rec, err := range tx.Scan(store.Range{Limit: store.MaxWrites}) {
				if err != nil {
					return err
				}
				keys = append(keys, bytes.Clone(rec.Key))
			}
			for _, k := range keys {
				more = true
				if err := tx.Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatalf("wipe: %v", err)
		}
	}
}
