// Package mem keeps a store.Store in the memory of one process. It promises what store promises, except that nothing is
// there after Close: it is for tests, and for a daemon that draws its state anew from what runs (BO-4).
//
// The state is a B-tree whose copies share their nodes until one of them is written to (tidwall/btree). Each transaction
// has a copy of its own, made in constant time: View reads it, Update writes to it (tx.go), and an update that succeeds
// has its copy take the place of the state, in the same moment in which those who watch are handed its changes (watch.go).
// Updates run one at a time on the goroutines of their callers; the package starts no goroutine.
package mem

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"iter"
	"sync"

	"github.com/tidwall/btree"

	"berth/store"
)

// Store is a store.Store in memory. New makes it.
type Store struct {
	id      string
	turn    chan struct{} // holds a token while an update runs
	running sync.WaitGroup

	mu       sync.Mutex
	state    *tree // never written to, only copied and replaced
	watchers map[*watcher]struct{}
	closed   bool
}

var _ store.Store = (*Store)(nil)

// tree is the records by key.
type tree = btree.BTreeG[store.Record]

// New returns an empty store.
func New() *Store {
	byKey := func(a, b store.Record) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	return &Store{
		id:       newID(),
		turn:     make(chan struct{}, 1),
		state:    btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}),
		watchers: map[*watcher]struct{}{},
	}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// ID returns the store's id, 32 hexadecimal digits drawn when it was made: a store in memory is another one after each start.
func (s *Store) ID() string { return s.id }

var errClosed = fmt.Errorf("%w: it was in memory, and nothing of it is left", store.ErrClosed)

// enter counts a transaction in, so that Close can wait for it.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.running.Add(1)
	return nil
}

// copied returns the state as it is now, for one transaction. Even copying writes a mark to the tree, so it takes the lock.
func (s *Store) copied() *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.IsoCopy()
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	t := &tx{tree: s.copied()}
	defer func() { t.over = true }()
	return fn(t)
}

// Update implements store.Store. A panic of fn, or of a hook, goes to the caller.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	if err := ctx.Err(); err != nil { // both were ready
		return err
	}
	t := &tx{tree: s.copied(), writable: true}
	defer t.end() // before the next update has its turn, also when fn panics or ends its goroutine
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	s.commit(t)
	return nil
}

// commit makes what t has written the state, and hands it to those who watch.
func (s *Store) commit(t *tx) {
	t.undo = nil
	if len(t.wrote) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watchers) > 0 {
		s.publish(changes(s.state, t.tree, t.wrote))
	}
	s.state = t.tree
}

// Watch implements store.Store. The changes of one Update come in the order of their keys. A reader that is more than
// watchBuffer changes behind ends with store.ErrLagged; Close ends it with store.ErrClosed.
func (s *Store) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return s.watch(ctx, prefix)
}

// Close implements store.Store: updates that wait for their turn are still run. A second Close answers ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
	s.endWatches()
	return nil
}
