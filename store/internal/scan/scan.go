// Package scan iterates over a range of records in a B-tree, for the backends of store.Store that use one.
package scan

import (
	"bytes"

	"github.com/tidwall/btree"

	"berth/store"
)

// Tree is records in the order of their keys. At is an item with the given key, for looking it up; Key is an item's
// key.
type Tree[T any] struct {
	Items *btree.BTreeG[T]
	At    func(key []byte) T
	Key   func(T) []byte
}

// Walk visits the items of a range in its order, until visit answers false. It knows no limit.
func (t Tree[T]) Walk(r store.Range, visit func(T) bool) {
	if !r.Reverse {
		t.Items.Ascend(t.At(r.From), func(item T) bool {
			return (r.To == nil || bytes.Compare(t.Key(item), r.To) < 0) && visit(item)
		})
		return
	}
	down := func(item T) bool {
		if r.To != nil && bytes.Equal(t.Key(item), r.To) { // where Descend begins, and not part of the range
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
