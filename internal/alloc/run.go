package alloc

import "github.com/tidwall/btree"

// run is a range of addresses of one family, both ends included.
type run struct{ first, last u128 }

func (r run) holds(x u128) bool { return !x.less(r.first) && !r.last.less(x) }

// runs are ranges by their first addresses. Each two of them have a gap between them.
type runs struct{ *btree.BTreeG[run] }

func newRuns() runs {
	byFirst := func(a, b run) bool { return a.first.less(b.first) }
	return runs{btree.NewBTreeGOptions(byFirst, btree.Options{NoLocks: true})}
}

// upTo returns the last run that begins at x or before.
func (t runs) upTo(x u128) (found run, ok bool) {
	t.Descend(run{first: x}, func(r run) bool {
		found, ok = r, true
		return false
	})
	return found, ok
}

// add adds a range and joins it with its neighbours. It returns false if the first address is there already. The others
// must not be there.
func (t runs) add(r run) bool {
	if before, ok := t.upTo(r.first); ok {
		if before.holds(r.first) {
			return false
		}
		if before.last.next() == r.first {
			r.first = before.first
		}
	}
	if next := r.last.next(); next != (u128{}) { // behind the last address of all comes 0 again
		if after, ok := t.Delete(run{first: next}); ok {
			r.last = after.last
		}
	}
	t.Set(r)
	return true
}

// remove removes a range that lies in one run. It returns false if the first address is not there.
func (t runs) remove(r run) bool {
	whole, ok := t.upTo(r.first)
	if !ok || !whole.holds(r.first) {
		return false
	}
	if whole.first == r.first {
		t.Delete(whole)
	} else {
		t.Set(run{whole.first, r.first.prev()})
	}
	if whole.last != r.last {
		t.Set(run{r.last.next(), whole.last})
	}
	return true
}

func lower(a, b u128) u128 {
	if b.less(a) {
		return b
	}
	return a
}

func higher(a, b u128) u128 {
	if a.less(b) {
		return b
	}
	return a
}
