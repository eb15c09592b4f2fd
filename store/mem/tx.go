package mem

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"berth/store"
)

// maxKey is how many bytes a key has at most: a store on a disk keeps no longer one either.
const maxKey = 4096

var errTxOver = errors.New("mem: the transaction is over: its function has returned")

// tx is a store.Tx over a copy of the state that is its own. What it hands out are slices of records, which are replaced
// as a whole and never written to.
type tx struct {
	tree     *tree
	writable bool
	wrote    [][]byte // the key of each Put and Delete, repeated ones included
	undo     []func()
	failed   error // the first Put or Delete that was refused; the update fails with it whatever the function answers
	over     bool
}

// end closes the transaction. What it wrote has become the state, or its hooks are still there: then they are run, the
// last one first, and none is left out when another one panics.
func (t *tx) end() {
	t.over = true
	hooks := t.undo
	t.undo = nil
	for _, undo := range hooks {
		defer undo()
	}
}

func (t *tx) Get(key []byte) ([]byte, error) {
	if t.over {
		return nil, errTxOver
	}
	r, _ := t.tree.Get(store.Record{Key: key})
	return r.Value, nil
}

func (t *tx) Put(key, value []byte) error {
	if err := t.may(key); err != nil {
		return err
	}
	if len(value) > store.MaxValue {
		return t.refuse(fmt.Errorf("%w: the value of %q has %d bytes; at most %d are kept", store.ErrTooLarge, key, len(value), store.MaxValue))
	}
	key = copied(key)
	t.tree.Set(store.Record{Key: key, Value: copied(value)})
	t.wrote = append(t.wrote, key)
	return nil
}

func (t *tx) Delete(key []byte) error {
	if err := t.may(key); err != nil {
		return err
	}
	t.tree.Delete(store.Record{Key: key})
	t.wrote = append(t.wrote, copied(key))
	return nil
}

// copied returns the bytes of b in memory of their own, with no room behind them. It is never nil.
func copied(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}

func (t *tx) OnAbort(undo func()) {
	if t.writable && !t.over {
		t.undo = append(t.undo, undo)
	}
}

// may says whether one more write to key is allowed.
func (t *tx) may(key []byte) error {
	switch {
	case t.over:
		return errTxOver
	case !t.writable:
		return fmt.Errorf("%w: a View cannot change %q", store.ErrReadOnly, key)
	case len(key) == 0:
		return t.refuse(errors.New("mem: a key must not be empty"))
	case len(key) > maxKey:
		return t.refuse(fmt.Errorf("mem: a key of %d bytes is too long: at most %d", len(key), maxKey))
	case len(t.wrote) >= store.MaxWrites:
		return t.refuse(fmt.Errorf("%w: one makes at most %d; split it into several", store.ErrTooMany, store.MaxWrites))
	}
	return nil
}

func (t *tx) refuse(err error) error {
	if t.failed == nil {
		t.failed = err
	}
	return err
}

func (t *tx) Scan(r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if t.over {
			yield(store.Record{}, errTxOver)
			return
		}
		n := 0
		visit := func(rec store.Record) bool {
			n++
			return yield(rec, nil) && !t.over && n != r.Limit
		}
		at := t.tree
		if t.writable { // writes outside the range may move what lies in the nodes that the walk stands on
			at = at.IsoCopy()
		}
		walk(at, r, visit)
	}
}

// walk visits the records of a range in its order, until visit answers false.
func walk(at *tree, r store.Range, visit func(store.Record) bool) {
	if !r.Reverse {
		at.Ascend(store.Record{Key: r.From}, func(rec store.Record) bool {
			return (r.To == nil || bytes.Compare(rec.Key, r.To) < 0) && visit(rec)
		})
		return
	}
	down := func(rec store.Record) bool {
		if r.To != nil && bytes.Equal(rec.Key, r.To) { // where Descend begins, and not part of the range
			return true
		}
		return bytes.Compare(rec.Key, r.From) >= 0 && visit(rec)
	}
	if r.To == nil {
		at.Reverse(down)
		return
	}
	at.Descend(store.Record{Key: r.To}, down)
}
