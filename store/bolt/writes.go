package bolt

import (
	"bytes"
	"sort"

	"berth/store"
	"berth/store/internal/record"
)

// write is a Put or Delete of a function. sealed is the stored form of the value, or nil for a deletion.
type write struct {
	key, sealed []byte
}

// change returns the write for watchers. Both share memory.
func (w write) change() store.Record {
	if w.sealed == nil {
		return store.Record{Key: w.key}
	}
	return store.Record{Key: w.key, Value: w.sealed[record.SealSize:]}
}

// writes are the writes of one function that nobody else sees yet. After success they become part of the shared
// transaction; after a failure they are discarded. An undo log in the shared transaction would have to read every old
// value before it is replaced. A failed function would also leave changed pages in the tree.
type writes struct {
	list  []write // the last write of each key, in the order of the first one
	order []int32 // indexes into list, sorted by key
	mem   arena
}

func (w *writes) reset() {
	clear(w.list)
	w.list, w.order = w.list[:0], w.order[:0]
}

// find returns the position in order where key is or belongs.
func (w *writes) find(key []byte) (int, bool) {
	n := len(w.order)
	if n == 0 {
		return 0, false
	}
	// Keys mostly arrive in order, so try the end first.
	switch c := bytes.Compare(w.list[w.order[n-1]].key, key); {
	case c < 0:
		return n, false
	case c == 0:
		return n - 1, true
	}
	i := sort.Search(n, func(i int) bool { return bytes.Compare(w.list[w.order[i]].key, key) >= 0 })
	return i, bytes.Equal(w.list[w.order[i]].key, key)
}

func (w *writes) get(key []byte) (write, bool) {
	if i, ok := w.find(key); ok {
		return w.list[w.order[i]], true
	}
	return write{}, false
}

// set records a write and copies both slices. A nil value with del set is a deletion.
func (w *writes) set(key, value []byte, del bool) {
	i, found := w.find(key)
	var sealed []byte
	if found {
		key = w.list[w.order[i]].key
	} else {
		key = w.mem.copy(key)
	}
	if !del {
		sealed = w.mem.seal(key, value)
	}
	if found {
		w.list[w.order[i]].sealed = sealed
		return
	}
	w.list = append(w.list, write{key, sealed})
	w.order = append(w.order, 0)
	copy(w.order[i+1:], w.order[i:])
	w.order[i] = int32(len(w.list) - 1)
}

// arena allocates memory that lasts until the end of the shared transaction. bbolt keeps values (not keys) until then,
// so the memory is reused only afterwards.
type arena struct {
	chunk []byte
}

const arenaChunk = 64 << 10

// grab returns an empty slice with a capacity of exactly n bytes.
func (a *arena) grab(n int) []byte {
	if cap(a.chunk)-len(a.chunk) < n {
		if n > arenaChunk/4 {
			return make([]byte, 0, n)
		}
		a.chunk = make([]byte, 0, arenaChunk)
	}
	at := len(a.chunk)
	a.chunk = a.chunk[:at+n]
	return a.chunk[at : at : at+n]
}

func (a *arena) copy(b []byte) []byte {
	return append(a.grab(len(b)), b...)
}

func (a *arena) seal(key, value []byte) []byte {
	return record.AppendSealed(a.grab(record.SealSize+len(value)), key, value)
}

// recycle makes the current chunk free again. None of its slices may be in use. Earlier, full chunks are left to the
// garbage collector.
func (a *arena) recycle() { a.chunk = a.chunk[:0] }
