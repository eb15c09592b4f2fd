package etcd

import (
	"bytes"
	"iter"
	"slices"

	"berth/store"
	"berth/store/internal/record"
	"berth/store/internal/scan"
)

// tx is a store.Tx. In a View it reads its own copy of the mirror. In an Update it reads and writes the tree of its
// batch. The batch notes the reads, because etcd compares them at the commit.
type tx struct {
	rules record.Rules
	tree  *tree
	b     *batch // nil in a View
	old   []old  // the records of the batch that its writes have replaced, in order
	undo  []func()
}

// old is a record of the batch before a write.
type old struct {
	at    rec
	was   bool   // the record existed
	wrote *write // by an earlier function, or by this one; nil: neither
	now   *write
}

func (t *tx) Get(key []byte) ([]byte, error) {
	if t.rules.Over {
		return nil, record.ErrOver
	}
	r, found := t.tree.Get(rec{key: key})
	if t.b != nil {
		t.b.noteKey(key, r, found)
	}
	switch {
	case !found:
		return nil, nil
	case r.bad != nil:
		return nil, r.bad
	}
	return r.value, nil
}

func (t *tx) Put(key, value []byte) error {
	err := t.rules.Put(key, value)
	if err == nil {
		t.write(newWrite(key, value))
	}
	return err
}

func (t *tx) Delete(key []byte) error {
	err := t.rules.Delete(key)
	if err == nil {
		t.write(&write{key: bytes.Clone(key)})
	}
	return err
}

// write records what w replaces and where etcd has it, and then puts w.
func (t *tx) write(w *write) {
	at, was := t.tree.Get(rec{key: w.key})
	at.key = w.key
	before := t.b.wrote[string(w.key)]
	switch {
	case before != nil:
		w.from, w.plain = before.from, before.plain
	case was:
		w.from, w.plain = at.in, at.in == nil
		if at.in != nil {
			t.b.noteBundle(at.in) // the bundle is written again without the record
		}
	case w.value == nil && t.b.bundling(w.key):
		t.b.noteKey(w.key, at, false) // otherwise a record that is bundled meanwhile would stay
	}
	t.old = append(t.old, old{at, was, before, w})
	t.b.replace(w.key, w)
	t.set(rec{key: w.key, value: w.value}, w.value != nil)
}

// set writes or deletes a record in the tree.
func (t *tx) set(r rec, there bool) {
	if there {
		t.tree.Set(r)
	} else {
		t.tree.Delete(r)
	}
}

// changes returns the changes of the transaction, in the order of the keys.
func (t *tx) changes() (list []store.Record) {
	was, now := map[string]bool{}, map[string]*write{}
	for _, o := range t.old {
		key := string(o.now.key)
		if now[key] == nil {
			was[key] = o.was
		}
		now[key] = o.now
	}
	for key, w := range now {
		if was[key] || w.value != nil {
			list = append(list, store.Record{Key: w.key, Value: w.value})
		}
	}
	slices.SortFunc(list, func(a, b store.Record) int { return bytes.Compare(a.Key, b.Key) })
	return list
}

// takeBack undoes the writes of the transaction.
func (t *tx) takeBack() {
	for _, o := range slices.Backward(t.old) {
		t.b.replace(o.at.key, o.wrote)
		t.set(o.at, o.was)
	}
	t.old = nil
}

func (t *tx) OnAbort(undo func()) {
	if t.b != nil && !t.rules.Over {
		t.undo = append(t.undo, undo)
	}
}

func (t *tx) Scan(r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if t.rules.Over {
			yield(store.Record{}, record.ErrOver)
			return
		}
		n, whole := 0, true
		var last []byte
		visit := func(at rec) bool {
			n++
			last, whole = at.key, false
			if at.bad != nil {
				yield(store.Record{}, at.bad)
				return false
			}
			whole = yield(store.Record{Key: at.key, Value: at.value}, nil) && !t.rules.Over && n != r.Limit
			return whole
		}
		over := t.tree
		if t.b != nil { // writes outside the range may change the nodes of the walk
			over = over.IsoCopy()
			defer func() { t.b.noteRange(covered(r, last, whole)) }()
		}
		walkable(over).Walk(r, visit)
	}
}

// covered returns the part of a range that a scan has seen: all of it, or up to the last yielded record.
func covered(r store.Range, last []byte, whole bool) (from, to []byte) {
	switch {
	case whole || last == nil:
		return r.From, r.To
	case r.Reverse:
		return last, r.To
	}
	return r.From, append(bytes.Clone(last), 0)
}

// walkable adapts the records to scan.Tree.
func walkable(t *tree) scan.Tree[rec] {
	return scan.Tree[rec]{
		Items: t,
		At:    func(key []byte) rec { return rec{key: key} },
		Key:   func(r rec) []byte { return r.key },
	}
}
