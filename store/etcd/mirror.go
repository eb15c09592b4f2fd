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

// rec is a record in the mirror.
type rec struct {
	key, value []byte
	mod        int64   // the revision that wrote it; 0: not known yet, because it is being written
	in         *bundle // the bundle that has it; nil: it has its own key
	bad        error   // the stored bytes are damaged; value has them unchanged
}

// tree holds records by key. Its copies share nodes until one of them is written to.
type tree = btree.BTreeG[rec]

func newTree() *tree {
	byKey := func(a, b rec) bool { return bytes.Compare(a.key, b.key) < 0 }
	return btree.NewBTreeGOptions(byKey, btree.Options{NoLocks: true})
}

// image is everything stored, as of one revision.
type image struct {
	rev     int64 // of etcd; later writes are missing
	meta    int64 // the revision that wrote the key meta
	gate    int64 // the revision that last opened the gate; 0: it never was closed
	tree    *tree
	bundles map[string]*bundle           // by name; the turn guards it
	stands  map[string]map[string][]byte // by place and name: who is present, and which sessions exist
}

func newImage() image {
	return image{tree: newTree(), bundles: map[string]*bundle{},
		stands: map[string]map[string][]byte{presentPlace: {}, sessionPlace: {}}}
}

// stand stores the value under a name, or removes it.
func (i *image) stand(place, name string, kv *kv) {
	if kv.Version == 0 {
		delete(i.stands[place], name)
		return
	}
	i.stands[place][name] = kv.Value
}

// changes are the changes of records in one commit, by key. nil: nobody needs them.
type changes map[string]*change

// change is the effect of one commit on one record.
type change struct {
	key, before, after []byte // nil: no value before, or none after
	bad                error
	written            bool // under its own key; otherwise the record may only be stored elsewhere now, unchanged
}

// touch notes a record before it is changed.
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

// put replaces a record by a newer one.
func (i *image) put(r rec) {
	if at, found := i.tree.Get(r); !found || at.mod <= r.mod {
		i.tree.Set(r)
	}
}

// write applies the change of one key of etcd to the records.
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

// unseal returns the value from its stored form, or the damaged bytes and the error.
func unseal(key, stored []byte) ([]byte, error) {
	value, err := record.Unseal(key, stored)
	if err != nil {
		return append([]byte{}, stored...), err
	}
	return value, nil
}

// mirror is the image that follows etcd.
type mirror struct {
	mu sync.Mutex
	image
	// the closed gate, if its revision is later than the mirror's; nil: it is open
	shut  atomic.Pointer[shut]
	moved chan struct{} // closed when the mirror moves
}

// shut is the closed gate.
type shut struct {
	closed int64 // the revision that closed it
	value  gateValue
	moved  time.Time // when the watch last reported something behind it
}

// copied returns the present records for one transaction.
func (m *mirror) copied() *tree {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tree.IsoCopy()
}

// at returns the mirror's revision.
func (m *mirror) at() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rev
}

// wait returns when the mirror has reached rev, or ctx ends.
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

// move applies what was written up to rev, and returns the changed records in the order of their keys.
func (m *mirror) move(l *layout, rev int64, kvs []*kv) (list []change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := changes{}
	for _, first := range []string{bundlePlace, dataPlace} { // a record of a bundle may get its own key
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

// set replaces the whole image.
func (m *mirror) set(i image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.image = i
	m.shut.Store(nil)
	m.come(i.rev)
}

// standing returns the values of a place, by name.
func (m *mirror) standing(place string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string][]byte, len(m.stands[place]))
	for name, value := range m.stands[place] {
		all[name] = bytes.Clone(value)
	}
	return all
}

// come records that the mirror has reached rev. The caller holds mu.
func (m *mirror) come(rev int64) {
	m.rev = rev
	close(m.moved)
	m.moved = make(chan struct{})
}

// openGate records that the gate was opened in the revision rev.
func (m *mirror) openGate(rev int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = rev
	m.shut.Store(nil)
}

// records converts changes for watchers.
func records(all []change) []store.Record {
	list := make([]store.Record, len(all))
	for i, c := range all {
		list[i] = store.Record{Key: c.key, Value: c.after}
	}
	return list
}
