package etcd

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"berth/store"
	"berth/store/internal/record"
)

// A bundle is several records under one key of etcd, in the form of a chunk, because the cost of a transaction grows
// with the number of keys that it puts. New records of Config.Bundle go into bundles, all of one transaction at once. A
// single one gets its own key, and so does a record that is written again. A deleted record is taken out of its bundle,
// which is then written again, or deleted with its last record.
//
// A record read from a bundle is compared by the bundle's revision, and so is a bundle that loses a record. That a
// record is missing, and the contents of a range, are compared by the bundles that may contain it. Each bundle has the
// name of its first record, so these are the bundles up to the end of the range. If two handles put a record of the
// same key, it could be in two bundles. The later one would count, until the record is deleted. So only records that no
// other handle writes go into bundles.

// bundle is a bundle as of one revision. It is immutable.
type bundle struct {
	name  string // the key of its first record
	chunk []byte // the records
	mod   int64  // the revision that wrote it
}

// bundleBytes is about the maximum size of a bundle. To take out a record, all others are written again.
const bundleBytes = 64 << 10

// records returns the records of a bundle, which share its memory. If the bundle cannot be read, it returns a bad
// record under its name.
func (b *bundle) records() []rec {
	writes, err := parseChunk(b.chunk)
	if err != nil {
		name := []byte(b.name)
		err = fmt.Errorf("%w: the record %s and the records written with it: %w", store.ErrCorrupt, record.Quote(name),
			err)
		return []rec{{key: name, value: b.chunk, mod: b.mod, in: b, bad: err}}
	}
	all := make([]rec, len(writes))
	for i, w := range writes {
		all[i] = rec{key: w.key, mod: b.mod, in: b}
		all[i].value, all[i].bad = unseal(w.key, w.sealed)
	}
	return all
}

// rebundle updates the image after a bundle was written or deleted.
func (i *image) rebundle(all changes, name string, kv *kv) {
	if was := i.bundles[name]; was != nil {
		delete(i.bundles, name)
		for _, r := range was.records() {
			if at, _ := i.tree.Get(r); at.in == was {
				all.touch(i, r.key, false)
				i.tree.Delete(r)
			}
		}
	}
	if kv.Version == 0 {
		return
	}
	now := &bundle{name: name, chunk: kv.Value, mod: kv.ModRevision}
	i.bundles[name] = now
	for _, r := range now.records() {
		all.touch(i, r.key, false)
		i.put(r)
	}
}

// layOut is what a batch writes under the keys of etcd.
type layOut struct {
	writes []*write // by place under the prefix
	made   []string // the names of new bundles
}

// bundling reports whether a new record of key may go into a bundle.
func (b *batch) bundling(key []byte) bool { return b.kind != nil && bytes.HasPrefix(key, b.kind) }

// lay computes what to write, with bundles of about size bytes at most.
func (b *batch) lay(size int) *layOut {
	l := &layOut{}
	var plain, fresh []*write
	for _, w := range b.sorted() {
		switch {
		case w.value != nil && w.from == nil && !w.plain && b.bundling(w.key):
			fresh = append(fresh, w)
		case w.value != nil || w.from == nil:
			plain = append(plain, w)
		}
	}
	for _, from := range slices.SortedFunc(maps.Keys(b.touched), byName) {
		l.put(bundlePlace, from.name, b.rest(from))
	}
	for len(fresh) > 0 {
		n := 1
		for bytes := fresh[0].size(); n < len(fresh) && bytes+fresh[n].size() <= size; n++ {
			bytes += fresh[n].size()
		}
		if n == 1 || b.there[string(fresh[0].key)] != nil {
			plain, fresh = append(plain, fresh[0]), fresh[1:]
			continue
		}
		name := string(fresh[0].key)
		l.put(bundlePlace, name, chunks(fresh[:n], math.MaxInt)[0])
		l.made, fresh = append(l.made, name), fresh[n:]
	}
	for _, w := range plain {
		l.put(dataPlace, string(w.key), w.sealed)
	}
	return l
}

func byName(a, b *bundle) int { return cmp.Compare(a.name, b.name) }

// put adds a write of a value to a place. nil deletes.
func (l *layOut) put(place, name string, value []byte) {
	l.writes = append(l.writes, &write{key: []byte(place + name), sealed: value})
}

// rest returns a bundle without the records that b writes, or nil if none is left.
func (b *batch) rest(of *bundle) []byte {
	var left []*write
	writes, _ := parseChunk(of.chunk) // an unreadable bundle loses everything when a record of it is deleted
	for _, w := range writes {
		if at, _ := b.tree.Get(rec{key: w.key}); b.wrote[string(w.key)] == nil && at.in == of {
			left = append(left, w)
		}
	}
	if left == nil {
		return nil
	}
	return chunks(left, math.MaxInt)[0]
}

// touch notes that n more writes take records out of a bundle.
func (b *batch) touch(from *bundle, n int) {
	if from == nil {
		return
	}
	if b.touched[from] == 0 {
		b.bytes += len(from.chunk)
	}
	if b.touched[from] += n; b.touched[from] == 0 {
		delete(b.touched, from)
		b.bytes -= len(from.chunk)
	}
}

// A chunk is several writes in one value: a part of a large transaction (by places) or a bundle (by keys of records).
// Each write is the length of its key, the key, the length of its sealed value plus 1, or 0 for a deletion, and the
// sealed value. The lengths are varints.

// chunks encodes writes in chunks of about size bytes. It never divides a write.
func chunks(all []*write, size int) [][]byte {
	var list [][]byte
	var now []byte
	for _, w := range all {
		if len(now) > 0 && len(now)+w.size() > size {
			list, now = append(list, now), nil
		}
		now = binary.AppendUvarint(now, uint64(len(w.key)))
		now = append(now, w.key...)
		if w.sealed == nil {
			now = append(now, 0)
			continue
		}
		now = binary.AppendUvarint(now, uint64(len(w.sealed))+1)
		now = append(now, w.sealed...)
	}
	return append(list, now)
}

var errChunk = errors.New("a bundle of several writes cannot be read")

// parseChunk returns the writes of a chunk, without their values. They share its memory.
func parseChunk(chunk []byte) ([]*write, error) {
	var all []*write
	for len(chunk) > 0 {
		w := &write{}
		n, size := binary.Uvarint(chunk)
		if size <= 0 || n > uint64(len(chunk)-size) {
			return nil, errChunk
		}
		w.key, chunk = chunk[size:size+int(n):size+int(n)], chunk[size+int(n):]
		n, size = binary.Uvarint(chunk)
		if size <= 0 || n > uint64(len(chunk)-size)+1 {
			return nil, errChunk
		}
		chunk = chunk[size:]
		if n > 0 {
			w.sealed, chunk = chunk[:n-1:n-1], chunk[n-1:]
		}
		all = append(all, w)
	}
	return all, nil
}
