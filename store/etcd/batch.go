package etcd

import (
	"bytes"
	"errors"
	"runtime/debug"
	"slices"

	"berth/store/internal/record"
)

// batch is what several functions, one run after the other over the same state, have read and written. It becomes one
// transaction of etcd.
type batch struct {
	base    int64 // the revision of the state
	gate    int64 // the revision that wrote the gate last, as of then
	locked  bool  // the gate is closed for it
	meta    int64 // the revision that wrote the key meta
	tree    *tree // the state, and over it what was written
	wrote   map[string]*write
	deletes int              // how many of wrote are deletions
	bytes   int              // of keys and values in wrote, and of touched
	read    map[string]int64 // by place, under the prefix, the revision that wrote what is there; 0: there was nothing
	order   []string         // the places in read, as they came
	ranges  []span
	kind    []byte             // new records whose keys begin with it go into bundles; nil: none do
	there   map[string]*bundle // by name, those that are there
	touched map[*bundle]int    // those out of which so many of wrote take records
	names   *span              // of the bundles that are compared because of ranges; nil: none are
	laid    *layOut            // once it is to be committed
	calls   []*call            // whose functions have been run
}

// span is a range of keys: from (included) to (excluded). nil: from the first one, to behind the last one.
type span struct{ from, to []byte }

// write is one record to be written. value is nil for a deletion.
type write struct {
	key, sealed, value []byte  // value is part of sealed
	from               *bundle // which has the record in etcd; nil: none has
	plain              bool    // the record has a key of its own in etcd
}

func newWrite(key, value []byte) *write {
	mem := make([]byte, 0, len(key)+record.SealSize+len(value))
	mem = append(mem, key...)
	w := &write{key: mem[:len(key):len(key)]}
	w.sealed = record.AppendSealed(mem[len(key):], key, value)
	w.value = w.sealed[record.SealSize:len(w.sealed):len(w.sealed)]
	return w
}

// size is about how many bytes the write takes in a request.
func (w *write) size() int { return len(w.key) + len(w.sealed) + 32 }

func newBatch(m *mirror, kind []byte) *batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &batch{base: m.rev, gate: m.gate, meta: m.meta, tree: m.tree.IsoCopy(), wrote: map[string]*write{},
		read: map[string]int64{}, kind: kind, there: m.bundles, touched: map[*bundle]int{}}
}

// noteKey notes that the record of key was read, as it was found. What the batch itself has written is not noted.
func (b *batch) noteKey(key []byte, at rec, found bool) {
	switch {
	case b.wrote[string(key)] != nil:
	case !found && b.bundling(key):
		b.noteRange(span{key, append(bytes.Clone(key), 0)})
	case at.in != nil:
		b.notePlace(bundlePlace+at.in.name, at.in.mod)
	default:
		b.notePlace(dataPlace+string(key), at.mod)
	}
}

func (b *batch) notePlace(place string, mod int64) {
	if _, known := b.read[place]; !known {
		b.read[place] = mod
		b.order = append(b.order, place)
	}
}

func (b *batch) noteRange(s span) {
	if s.to != nil && bytes.Compare(s.from, s.to) >= 0 {
		return
	}
	b.ranges = append(b.ranges, span{bytes.Clone(s.from), bytes.Clone(s.to)})
	b.cover(b.ranges[len(b.ranges)-1])
}

func (b *batch) put(w *write) { b.restore(w.key, w) }

// restore has w take the place of what is to be written to key. nil: nothing.
func (b *batch) restore(key []byte, w *write) {
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

// What the transaction of a batch compares and does beside what its functions have read and written: see
// committer.request.
const (
	ownCompares = 5
	ownOps      = 3
)

// compares and ops are how many of them the transaction takes, the handle's own ones included.
func (b *batch) compares() int {
	n := ownCompares + len(b.read) + len(b.ranges) + len(b.uncovered())
	if len(b.ranges) > 0 {
		n++
	}
	if b.names != nil {
		n++
	}
	if b.kind != nil && len(b.wrote) > 1 {
		n += 1 + 2*b.bytes/bundleBytes // which are made
	}
	return n
}

func (b *batch) ops() int {
	n := ownOps + len(b.wrote) + len(b.touched)
	if b.deletes > 0 {
		n++
	}
	return n
}

// run runs the function of k. When it fails, its writes are taken back and its hooks are run at once; what it has read
// stays noted, because its answer follows from that.
func (b *batch) run(k *call, log logger) {
	k.runs++
	k.tx = tx{tree: b.tree, b: b}
	k.err, k.panics, k.panicked, k.wrote = nil, false, nil, false
	k.reads, k.ranges = len(b.order), len(b.ranges)
	b.calls = append(b.calls, k)
	returned := false
	defer func() {
		k.tx.rules.Over = true
		switch p := recover(); {
		case p != nil:
			k.panics, k.panicked = true, p
			log.Errorf("a function handed to Update panicked: %v\n%s", p, debug.Stack())
		case !returned:
			k.err = errors.New("the function handed to Update ended its goroutine")
		}
		if k.err == nil && !k.panics {
			k.err = k.tx.rules.Failed
		}
		k.wrote = len(k.tx.old) > 0
		if k.err != nil || k.panics {
			k.tx.takeBack()
			k.wrote = false
			k.abort(log)
		}
	}()
	k.err = k.fn(&k.tx)
	returned = true
}

// logger is the part of a log that is used here.
type logger interface{ Errorf(string, ...any) }

// abort runs the hooks of k, the last one first. A hook that panics is logged; the others are still run.
func (k *call) abort(log logger) {
	hooks := k.tx.undo
	k.tx.undo = nil
	for i := len(hooks) - 1; i >= 0; i-- {
		func() {
			defer func() {
				if p := recover(); p != nil {
					log.Errorf("a function handed to OnAbort panicked: %v\n%s", p, debug.Stack())
				}
			}()
			hooks[i]()
		}()
	}
}

// sorted is what is to be written, in the order of the keys.
func (b *batch) sorted() []*write {
	all := make([]*write, 0, len(b.wrote))
	for _, w := range b.wrote {
		all = append(all, w)
	}
	slices.SortFunc(all, func(x, y *write) int { return bytes.Compare(x.key, y.key) })
	return all
}

// mostRuns is how often that of its functions has been run that was run most.
func (b *batch) mostRuns() (most int) {
	for _, k := range b.calls {
		most = max(most, k.runs)
	}
	return most
}

// abort takes all functions back, the last one first.
func (b *batch) abort(log logger) {
	for i := len(b.calls) - 1; i >= 0; i-- {
		b.calls[i].abort(log)
	}
}

// takeOld takes the calls out of a batch, which was committed as of rev, that have written nothing and saw a state from
// before others wrote: it may be older than the call, and what a function decided need not follow from what it read
// alone. They are to be run again.
func (b *batch) takeOld(rev int64, log logger) (old []*call) {
	b.calls = slices.DeleteFunc(b.calls, func(k *call) bool {
		if k.wrote || k.since != 0 && k.since <= b.base {
			return false
		}
		k.abort(log)
		k.since = rev
		old = append(old, k)
		return true
	})
	return old
}

// dropLast takes the last function back as if it had not been run.
func (b *batch) dropLast(log logger) *call {
	k := b.calls[len(b.calls)-1]
	b.calls = b.calls[:len(b.calls)-1]
	k.tx.takeBack()
	k.abort(log)
	for _, place := range b.order[k.reads:] {
		delete(b.read, place)
	}
	b.order, b.ranges = b.order[:k.reads], b.ranges[:k.ranges]
	return k
}
