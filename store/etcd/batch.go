package etcd

import (
	"bytes"
	"errors"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/sirupsen/logrus"

	"berth/store/internal/record"
)

// batch collects the reads and writes of several functions that run one after the other over the same state. It becomes
// one transaction of etcd.
type batch struct {
	base    int64 // the revision of the state
	gate    int64 // the revision of the gate's last write in that state
	locked  bool  // this batch has closed the gate
	meta    int64 // the revision that wrote the key meta
	tree    *tree // the state, with the batch's writes
	wrote   map[string]*write
	deletes int                // number of deletions in wrote
	bytes   int                // size of keys and values in wrote, and of touched
	read    map[string]int64   // by place: the revision of each record that was read; 0: it did not exist
	ranges  map[span]bool      // the same for ranges of places
	kind    []byte             // new records whose keys begin with it go into bundles; nil: none do
	there   map[string]*bundle // the existing bundles, by name
	touched map[*bundle]int    // bundles that lose records, and how many of wrote take one
	laid    *layOut            // set before the commit
	calls   []*call            // functions that have run
	most    cost               // the largest cost of one function
}

// span is a range of keys, from (included) to (excluded).
type span struct{ from, to string }

// write is one record to be written. value is nil for a deletion.
type write struct {
	key, sealed, value []byte  // value is part of sealed
	from               *bundle // the bundle that has the record in etcd; nil: none
	plain              bool    // the record has a key of its own in etcd
}

func newWrite(key, value []byte) *write {
	w := &write{key: bytes.Clone(key), sealed: record.AppendSealed(nil, key, value)}
	w.value = w.sealed[record.SealSize:]
	return w
}

// size is about the number of bytes of the write in a request.
func (w *write) size() int { return len(w.key) + len(w.sealed) + 32 }

func newBatch(m *mirror, kind []byte) *batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &batch{base: m.rev, gate: m.gate, meta: m.meta, tree: m.tree.IsoCopy(), wrote: map[string]*write{},
		read: map[string]int64{}, ranges: map[span]bool{}, kind: kind, there: m.bundles, touched: map[*bundle]int{}}
}

// noteKey notes a record that was read, as it was found. It ignores the batch's own writes.
func (b *batch) noteKey(key []byte, at rec, found bool) {
	switch {
	case b.wrote[string(key)] != nil:
	case !found && b.bundling(key):
		b.noteRange(key, append(bytes.Clone(key), 0))
	case at.in != nil:
		b.noteBundle(at.in)
	default:
		b.read[dataPlace+string(key)] = at.mod
	}
}

func (b *batch) noteBundle(of *bundle) { b.read[bundlePlace+of.name] = of.mod }

// noteRange notes that the records of a range were read; nil means from the first, or to the last one. Bundles up to
// the end of the range may have records of it.
func (b *batch) noteRange(from, to []byte) {
	if to != nil && bytes.Compare(from, to) >= 0 {
		return
	}
	b.ranges[spanOf(dataPlace, from, to)] = true
	switch {
	case b.kind == nil, to != nil && bytes.Compare(to, b.kind) <= 0, behind(from, b.kind):
	case to == nil, behind(to, b.kind):
		b.ranges[spanOf(bundlePlace, b.kind, nil)] = true
	default:
		b.ranges[spanOf(bundlePlace, b.kind, to)] = true
	}
}

func spanOf(place string, from, to []byte) span {
	if to == nil {
		return span{place + string(from), end(place)}
	}
	return span{place + string(from), place + string(to)}
}

// behind reports whether key comes after all keys that begin with prefix.
func behind(key, prefix []byte) bool {
	return bytes.Compare(key, prefix) > 0 && !bytes.HasPrefix(key, prefix)
}

// replace makes w the batch's write to key. nil means none.
func (b *batch) replace(key []byte, w *write) {
	if was := b.wrote[string(key)]; was != nil {
		b.bytes -= was.size()
		b.touch(was.from, -1)
		if was.value == nil {
			b.deletes--
		}
	}
	if w == nil {
		delete(b.wrote, string(key))
		return
	}
	b.wrote[string(w.key)] = w
	b.bytes += w.size()
	b.touch(w.from, 1)
	if w.value == nil {
		b.deletes++
	}
}

// The transaction of a batch also has comparisons and operations of the handle itself: see committer.request.
const (
	ownCompares = 5
	ownOps      = 3
)

// cost is the part of etcd's limits that a transaction takes.
type cost struct{ compares, ops, bytes int }

// cost returns the cost of the transaction so far, with the handle's own comparisons and operations.
func (b *batch) cost() cost {
	c := cost{ownCompares + len(b.read) + len(b.ranges), ownOps + len(b.wrote) + len(b.touched), b.bytes}
	if len(b.ranges) > 0 {
		c.compares++
	}
	if b.kind != nil && len(b.wrote) > 1 {
		c.compares += 1 + 2*b.bytes/bundleBytes // the new bundles
	}
	if b.deletes > 0 {
		c.ops++
	}
	return c
}

// run runs the function of k. If it fails, run undoes its writes and calls its hooks at once. Its reads stay noted,
// because its answer depends on them.
func (b *batch) run(k *call, log *logrus.Entry) {
	k.runs++
	k.tx = tx{tree: b.tree, b: b}
	k.err, k.panics, k.panicked, k.wrote = nil, false, nil, false
	b.calls = append(b.calls, k)
	before, returned := b.cost(), false
	defer func() {
		k.tx.rules.Over = true
		switch p := recover(); {
		case p != nil:
			k.panics, k.panicked = true, p
			log.Errorf("a function handed to Update panicked: %v\n%s", p, debug.Stack())
		case !returned:
			k.err = errors.New("the function handed to Update ended its goroutine")
		case k.err == nil:
			k.err = k.tx.rules.Failed
		}
		if k.err != nil || k.panics {
			k.tx.takeBack()
			k.abort(log)
		}
		k.wrote = len(k.tx.old) > 0
		now := b.cost()
		b.most.compares = max(b.most.compares, now.compares-before.compares)
		b.most.ops = max(b.most.ops, now.ops-before.ops)
		b.most.bytes = max(b.most.bytes, now.bytes-before.bytes)
	}()
	k.err = k.fn(&k.tx)
	returned = true
}

// abort runs the hooks of k, the last one first. It logs a hook that panics, and runs the others.
func (k *call) abort(log *logrus.Entry) {
	hooks := k.tx.undo
	k.tx.undo = nil
	for _, hook := range slices.Backward(hooks) {
		func() {
			defer func() {
				if p := recover(); p != nil {
					log.Errorf("a function handed to OnAbort panicked: %v\n%s", p, debug.Stack())
				}
			}()
			hook()
		}()
	}
}

// sorted returns the writes in the order of their keys.
func (b *batch) sorted() []*write {
	return slices.SortedFunc(maps.Values(b.wrote), func(x, y *write) int { return bytes.Compare(x.key, y.key) })
}

// abort undoes all functions, the last one first.
func (b *batch) abort(log *logrus.Entry) {
	for _, k := range slices.Backward(b.calls) {
		k.abort(log)
	}
}

// takeOld removes calls from a committed batch that have written nothing and saw a state from before rev, the last
// write by others. That state may be older than the call, and the function's decision may depend on more than it read.
// These calls must run again.
func (b *batch) takeOld(rev int64, log *logrus.Entry) (old []*call) {
	b.calls = slices.DeleteFunc(b.calls, func(k *call) bool {
		if k.wrote || k.fresh(b) {
			return false
		}
		k.abort(log)
		k.since = rev
		old = append(old, k)
		return true
	})
	return old
}

// fresh reports whether the batch's state is known to be no older than the call.
func (k *call) fresh(b *batch) bool { return k.since != 0 && k.since <= b.base }
