package etcd

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"berth/store"
)

// rec is a record as the mirror has it.
type rec struct {
	key, value []byte
	mod        int64   // the revision that wrote it; 0: nobody knows it yet, because it is being written
	in         *bundle // that has it; nil: it has a key of its own
	bad        error   // what is stored is not what was written: value is as it was found
}

// tree is the records by key. Its copies share their nodes until one of them is written to.
type tree = btree.BTreeG[rec]

func newTree() *tree {
	byKey := func(a, b rec) bool { return bytes.Compare(a.key, b.key) < 0 }
	return btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
}

// mirror is all that is stored, as of one revision.
type mirror struct {
	mu      sync.Mutex
	tree    *tree
	bundles map[string]*bundle // by name; it is read and changed in turn
	rev     int64              // of etcd: later writes are not here
	meta    int64              // the revision that wrote the key meta
	gate    int64              // the revision in which the gate was opened last; 0: it never was closed
	shut    *shut              // the gate is closed, in a later revision than that which the mirror has come to
	present map[string][]byte
	held    map[string]string // the sessions that stand
	waiters map[*waiter]struct{}
}

// shut is the gate while it is closed.
type shut struct {
	closed int64 // the revision of that
	value  gateValue
	moved  time.Time // when the watch told of something behind it last
}

// waiter is somebody who waits until the mirror has come to a revision.
type waiter struct {
	rev  int64
	come chan struct{}
}

// copied returns the records as they are now, for one transaction.
func (m *mirror) copied() *tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.IsoCopy()
}

// at is the revision that the mirror has come to.
func (m *mirror) at() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rev
}

// wait returns when the mirror has come to rev, or ctx ends.
func (m *mirror) wait(ctx context.Context, rev int64) error {
	m.mu.Lock()
	if m.rev >= rev {
		m.mu.Unlock()
		return nil
	}
	w := &waiter{rev: rev, come: make(chan struct{})}
	if m.waiters == nil {
		m.waiters = map[*waiter]struct{}{}
	}
	m.waiters[w] = struct{}{}
	m.mu.Unlock()
	select {
	case <-w.come:
		return nil
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.waiters, w)
		return ctx.Err()
	}
}

// move brings the mirror to rev, with what was written since.
func (m *mirror) move(rev int64, all []change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range all {
		if c.after == nil {
			m.tree.Delete(rec{key: c.key})
		} else {
			m.tree.Set(rec{key: c.key, value: c.after, mod: c.mod, in: c.in, bad: c.bad})
		}
	}
	m.come(rev)
}

// come notes that the mirror has come to rev. The caller holds mu.
func (m *mirror) come(rev int64) {
	m.rev = rev
	for w := range m.waiters {
		if w.rev <= rev {
			close(w.come)
			delete(m.waiters, w)
		}
	}
}

// closed tells how the gate is closed; nil: it is open.
func (m *mirror) closed() *shut {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shut
}

func (m *mirror) shutGate(s *shut) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shut = s
}

// openGate notes that the gate was opened in the revision rev.
func (m *mirror) openGate(rev int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate, m.shut = rev, nil
}

// change is what one commit did to one record.
type change struct {
	key, before, after []byte // nil: there was none, or there is none any more
	mod                int64
	in                 *bundle
	bad                error
	moved              bool // the record is what it was: only where it lies is new
}

// news is the changes that others are told of.
func news(all []change) []change {
	if !slices.ContainsFunc(all, func(c change) bool { return c.moved }) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c change) bool { return c.moved })
}

// records is the changes as those who watch are told of them.
func records(all []change) []store.Record {
	list := make([]store.Record, len(all))
	for i, c := range all {
		list[i] = store.Record{Key: c.key, Value: c.after}
	}
	return list
}
