package bolt

import (
	"bytes"
	"sort"

	"berth/store"
	"berth/store/internal/record"
)

// write is one Put or Delete that a function has made: sealed is the stored form of the value, nil for a deletion.
type write struct {
	key, sealed []byte
}

// change is the write as those who watch are told of it. It shares memory with it.
func (w write) change() store.Record {
	if w.sealed == nil {
		return store.Record{Key: w.key}
	}
	return store.Record{Key: w.key, Value: w.sealed[record.SealSize:]}
}

// writes is what one function has written and nobody else can see yet. It becomes part of the shared transaction when
// the function has succeeded; forgetting it is all that a failure takes. (An undo log inside the shared transaction
// would have to read every old value before it is replaced, and a function that fails would leave pages of the tree
// touched.)
type writes struct {
	list  []write // the last write of each key, in the order of first writing
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
	// Keys mostly arrive in order: look behind the last one first.
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

// set notes a write; it copies both slices. A nil value with del set is a deletion.
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

// arena hands out memory that lives until the shared transaction has ended. bbolt keeps hold of values (not of keys)
// until then, so the memory is used again only afterwards.
type arena struct {
	chunk []byte
}

const arenaChunk = 64 << 10

// grab returns an empty slice with room for exactly n bytes.
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

// recycle makes the current chunk free again; nothing that was handed out may be in use any more. Chunks that filled up
// before it are left to the garbage collector.
func (a *arena) recycle() { a.chunk = a.chunk[:0] }
