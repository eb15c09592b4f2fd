package etcd

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"berth/store"
	"berth/store/internal/record"
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

// image is all that is stored, as of one revision.
type image struct {
	rev     int64 // of etcd: later writes are not here
	meta    int64 // the revision that wrote the key meta
	gate    int64 // the revision in which the gate was opened last; 0: it never was closed
	tree    *tree
	bundles map[string]*bundle           // by name; it is read and changed in turn
	stands  map[string]map[string][]byte // by place, who is present and which sessions stand, by name
}

func newImage() image {
	return image{tree: newTree(), bundles: map[string]*bundle{},
		stands: map[string]map[string][]byte{presentPlace: {}, sessionPlace: {}}}
}

// stand notes what stands under a name, or that nothing does any more.
func (i *image) stand(place, name string, kv *kv) {
	if kv.Version == 0 {
		delete(i.stands[place], name)
		return
	}
	i.stands[place][name] = kv.Value
}

// changes is what becomes of records in one commit, by key. Nil: it is not to be known.
type changes map[string]*change

// change is what one commit did to one record.
type change struct {
	key, before, after []byte // nil: there was none, or there is none any more
	bad                error
	written            bool // under its own key; otherwise the record may be what it was, and only lie elsewhere
}

// touch notes what a record is before it is changed.
func (all changes) touch(i *image, key []byte, written bool) {
	if all == nil {
		return
	}
	c := all[string(key)]
	if c == nil {
		at, _ := i.tree.Get(rec{key: key})
		c = &change{key: key, before: at.value}
		all[string(key)] = c
	}
	c.written = c.written || written
}

// put has a record take the place of an older one.
func (i *image) put(r rec) {
	if at, found := i.tree.Get(r); !found || at.mod <= r.mod {
		i.tree.Set(r)
	}
}

// write takes what has become of a key of etcd that has records.
func (i *image) write(all changes, place string, name []byte, kv *kv) {
	if place == bundlePlace {
		i.rebundle(all, string(name), kv)
		return
	}
	all.touch(i, name, true)
	r := rec{key: name, mod: kv.ModRevision}
	if kv.Version == 0 {
		i.tree.Delete(r)
		return
	}
	r.value, r.bad = unseal(name, kv.Value)
	i.put(r)
}

// unseal returns the value in its stored form, or what there is instead, and why.
func unseal(key, stored []byte) ([]byte, error) {
	value, err := record.Unseal(key, stored)
	if err != nil {
		return append([]byte{}, stored...), err
	}
	return value, nil
}

// mirror is the image that moves with etcd.
type mirror struct {
	mu sync.Mutex
	image
	// the gate is closed, in a later revision than that which the mirror has come to; nil: it is open
	shut  atomic.Pointer[shut]
	moved chan struct{} // closed when it moves
}

// shut is the gate while it is closed.
type shut struct {
	closed int64 // the revision of that
	value  gateValue
	moved  time.Time // when the watch told of something behind it last
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
	for {
		m.mu.Lock()
		come, moved := m.rev >= rev, m.moved
		m.mu.Unlock()
		if come {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// move brings the mirror to rev, with what was written since, and tells what that did to records, in the order of their
// keys.
func (m *mirror) move(l *layout, rev int64, kvs []*kv) (list []change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := changes{}
	for _, first := range []string{bundlePlace, dataPlace} { // a record of a bundle may get a key of its own
		for _, kv := range kvs {
			if place, name := l.split(kv.Key); place == first {
				m.write(all, place, name, kv)
			}
		}
	}
	for _, c := range all {
		at, _ := m.tree.Get(rec{key: c.key})
		c.after, c.bad = at.value, at.bad
		none := c.before == nil && c.after == nil
		same := bytes.Equal(c.before, c.after) && (c.before == nil) == (c.after == nil)
		if !none && (c.written || !same) {
			list = append(list, *c)
		}
	}
	slices.SortFunc(list, byKey)
	m.come(rev)
	return list
}

func byKey(a, b change) int { return bytes.Compare(a.key, b.key) }

// set has another image take the place of everything.
func (m *mirror) set(i image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.image = i
	m.shut.Store(nil)
	m.come(i.rev)
}

// standing is what stands in a place, by name.
func (m *mirror) standing(place string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string][]byte, len(m.stands[place]))
	for name, value := range m.stands[place] {
		all[name] = bytes.Clone(value)
	}
	return all
}

// come notes that the mirror has come to rev. The caller holds mu.
func (m *mirror) come(rev int64) {
	m.rev = rev
	close(m.moved)
	m.moved = make(chan struct{})
}

// openGate notes that the gate was opened in the revision rev.
func (m *mirror) openGate(rev int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = rev
	m.shut.Store(nil)
}

// records is the changes as those who watch are told of them.
func records(all []change) []store.Record {
	list := make([]store.Record, len(all))
	for i, c := range all {
		list[i] = store.Record{Key: c.key, Value: c.after}
	}
	return list
}
