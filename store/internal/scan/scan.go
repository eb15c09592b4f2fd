// Package scan iterates over a range of records in a B-tree, for the backends of store.Store that use one.
package scan

import (
	"bytes"

	"github.com/tidwall/btree"

	"berth/store"
)

// Tree is a B-tree of records in the order of their keys. At returns an item with a key, for searching. Key returns an
// item's key.
type Tree[T any] struct {
	Items *btree.BTreeG[T]
	At    func(key []byte) T
	Key   func(T) []byte
}

// Walk visits the items of a range in order, until visit returns false. It ignores the range's limit.
func (t Tree[T]) Walk(r store.Range, visit func(T) bool) {
	if !r.Reverse {
		t.Items.Ascend(t.At(r.From), func(item T) bool {
			return (r.To == nil || bytes.Compare(t.Key(item), r.To) < 0) && visit(item)
		})
		return
	}
	down := func(item T) bool {
		if r.To != nil && bytes.Equal(t.Key(item), r.To) { // Descend begins at To, which is not part of the range
			return true
		}
		return bytes.Compare(t.Key(item), r.From) >= 0 && visit(item)
	}
	if r.To == nil {
		t.Items.Reverse(down)
		return
	}
	t.Items.Descend(t.At(r.To), down)
}
