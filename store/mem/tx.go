package mem

import (
	"iter"

	"berth/store"
	"berth/store/internal/record"
	"berth/store/internal/scan"
)

// tx is a store.Tx on its own copy of the state. It returns slices of records, which are replaced and never modified.
type tx struct {
	tree  *tree
	rules record.Rules
	wrote [][]byte // the key of each Put and Delete, with repetitions
	undo  []func()
	reads *reads // what was read; nil: not recorded
}

// run runs fn and returns its error, or that of a refused write.
func (t *tx) run(fn func(store.Tx) error) error {
	if err := fn(t); err != nil {
		return err
	}
	return t.rules.Failed
}

// end closes the transaction. If it was not committed, its hooks remain, and end runs them in reverse order. It runs
// all of them, even if one panics.
func (t *tx) end() {
	t.rules.Over = true
	hooks := t.undo
	t.undo = nil
	for _, undo := range hooks {
		defer undo()
	}
}

func (t *tx) Get(key []byte) ([]byte, error) {
	if t.rules.Over {
		return nil, record.ErrOver
	}
	t.reads.get(key)
	r, _ := t.tree.Get(store.Record{Key: key})
	return r.Value, nil
}

func (t *tx) Put(key, value []byte) error {
	if err := t.rules.Put(key, value); err != nil {
		return err
	}
	key = copied(key)
	t.tree.Set(store.Record{Key: key, Value: copied(value)})
	t.wrote = append(t.wrote, key)
	return nil
}

func (t *tx) Delete(key []byte) error {
	if err := t.rules.Delete(key); err != nil {
		return err
	}
	t.tree.Delete(store.Record{Key: key})
	t.wrote = append(t.wrote, copied(key))
	return nil
}

// copied returns a copy of b without spare capacity. It is never nil.
func copied(b []byte) []byte {
	return append(make([]byte, 0, len(b)), b...)
}

func (t *tx) OnAbort(undo func()) {
	if !t.rules.ReadOnly && !t.rules.Over {
		t.undo = append(t.undo, undo)
	}
}

func (t *tx) Scan(r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if t.rules.Over {
			yield(store.Record{}, record.ErrOver)
			return
		}
		t.reads.scan(r)
		n := 0
		visit := func(rec store.Record) bool {
			n++
			return yield(rec, nil) && !t.rules.Over && n != r.Limit
		}
		at := t.tree
		if !t.rules.ReadOnly { // writes outside the range may move records in the nodes of the walk
			at = at.IsoCopy()
		}
		walkable(at).Walk(r, visit)
	}
}

// walkable returns the state for package scan.
func walkable(t *tree) scan.Tree[store.Record] {
	return scan.Tree[store.Record]{
		Items: t,
		At:    func(key []byte) store.Record { return store.Record{Key: key} },
		Key:   func(r store.Record) []byte { return r.Key },
	}
}
