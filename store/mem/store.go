// Package mem keeps a store.Shared in the memory of one process. It promises what store promises, but Close discards
// everything. It serves tests, and daemons that rebuild their state from the running containers. Several handles (Join)
// act as several hosts; one can be cut off, and can miss the result of an update, as on a network (outage.go).
//
// The state is a B-tree with copy-on-write (tidwall/btree). Each transaction has its own copy, made in constant time:
// View reads it, Update writes to it (tx.go). A successful update replaces the state with its copy and passes the
// changes to the watchers in the same step (store/internal/watch). Just before that step, the apply functions of the
// other handles get the changes (commit.go); then all handles see the new state at the same time. Updates of all
// handles run one at a time on their callers' goroutines; the package starts none.
package mem

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"berth/store"
	"berth/store/internal/record"
	"berth/store/internal/watch"
)

// Store is a handle on a store.Shared in memory. New makes the first handle of a state, Join the others.
type Store struct {
	*common
	running sync.WaitGroup
	taking  sync.Mutex // held while commits of others are passed to apply

	// The lock of common guards everything below.
	seen    *tree     // the state that this handle sees; only copied and replaced
	late    []*commit // later commits, in order
	taken   []*commit // commits between seen and late, which apply has got
	apply   func([]store.Foreign)
	watches watch.Set
	closed  bool

	announced map[string][]byte
	outage    *outage
	cut       chan struct{} // closed by Cut
	lose      *loss
	lags      bool
}

var _ store.Shared = (*Store)(nil)

// common is shared by the handles on one state.
type common struct {
	id   string
	turn chan struct{} // holds a token while an update runs

	mu      sync.Mutex
	state   *tree
	handles []*Store // the open ones
	present map[string]presence
	held    map[string]*session // the active ones, by name
}

// tree is the records by key.
type tree = btree.BTreeG[store.Record]

// New returns an empty store.
func New() *Store {
	byKey := func(a, b store.Record) bool { return bytes.Compare(a.Key, b.Key) < 0 }
	return (&common{
		id:      newID(),
		turn:    make(chan struct{}, 1),
		state:   btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true}),
		present: map[string]presence{},
		held:    map[string]*session{},
	}).join()
}

// Join returns another handle on the same state, even if this one is closed. For each handle, commits through the
// others are foreign.
func (s *Store) Join() *Store { return s.common.join() }

func (c *common) join() *Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Store{
		common:    c,
		seen:      c.state,
		announced: map[string][]byte{},
		cut:       make(chan struct{}),
	}
	c.handles = append(c.handles, s)
	return s
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ID returns the state's id, 32 random hexadecimal digits. A store in memory is a new one after each start.
func (s *Store) ID() string { return s.id }

var errClosed = fmt.Errorf("%w: it was in memory, and is gone", store.ErrClosed)

// enter counts a transaction, so that Close can wait for it.
func (s *Store) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.running.Add(1)
	return nil
}

// copied returns a copy of the visible state for one transaction. It takes the lock, because even copying writes to the
// tree.
func (s *Store) copied() *tree {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.IsoCopy()
}

// await waits for the turn; leave gives it back.
func (s *Store) await(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil { // both were ready
		s.leave()
		return err
	}
	return nil
}

func (s *Store) leave() { <-s.turn }

// View implements store.Store.
func (s *Store) View(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	if s.behind() {
		if err := s.awaitCaughtUp(ctx); err != nil {
			return err
		}
	}
	t := &tx{tree: s.copied(), rules: record.Rules{ReadOnly: true}}
	defer func() { t.rules.Over = true }()
	return fn(t)
}

// Update implements store.Store. A panic of fn or of a hook reaches the caller.
func (s *Store) Update(ctx context.Context, fn func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.running.Done()
	if err := s.awaitReach(ctx); err != nil {
		return err
	}
	defer s.leave()
	if s.behind() {
		if done, err := s.updateLate(fn); done {
			return err
		}
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	t := &tx{tree: s.copied()}
	defer t.end() // before the next update gets its turn, even if fn panics or ends its goroutine
	if err := t.run(fn); err != nil {
		return err
	}
	return s.finish(t)
}

// finish commits the writes of t, whose function has succeeded on the current state.
func (s *Store) finish(t *tx) error {
	if len(t.wrote) == 0 {
		t.undo = nil
		return nil
	}
	if l := s.lost(); l != nil {
		return s.answerLost(t, l)
	}
	t.undo = nil
	s.commit(t, s)
	return nil
}

// Watch implements store.Store. The changes of one Update are sorted by key. Close ends it with store.ErrClosed.
func (s *Store) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return s.watches.Watch(ctx, prefix)
}

// Close implements store.Store. It runs updates of this handle that wait for their turn. When it returns, apply gets
// nothing more. The other handles continue. A second Close returns ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	s.closed = true
	s.withdraw()
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	s.handles = slices.DeleteFunc(s.handles, func(h *Store) bool { return h == s })
	s.late, s.apply = nil, nil
	s.mu.Unlock()
	s.taking.Lock() // waits for a running apply
	defer s.taking.Unlock()
	s.watches.Close(errClosed)
	return nil
}
