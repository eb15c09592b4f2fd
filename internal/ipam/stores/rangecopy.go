package stores

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"berth/internal/ipam/ledger"
	"berth/store"
)

// rangeCopy compares a range of keys in two stores. It goes part by part, so that neither side is in memory as a whole
// and each transaction is small.
type rangeCopy struct {
	keys  store.Range
	limit int // records of a part, of either side
	// want converts a record of the source for the target; nil: none
	want func(store.Record) ([]byte, error)
}

// viewing runs a function over one state of a store, as store.Store.View and Update do.
type viewing func(context.Context, func(store.Tx) error) error

// within is the viewing of a function that runs in a transaction already.
func within(tx store.Tx) viewing {
	return func(_ context.Context, fn func(store.Tx) error) error { return fn(tx) }
}

// nothing is an empty store.
var nothing = within(nil)

// holding gets a key that either side has: what the target must have, and what it has; nil: nothing.
type holding func(to store.Tx, key, want, got []byte) error

// each passes on all keys of both sides in order, each part in its own transactions. step gets the number of keys.
func (rc *rangeCopy) each(ctx context.Context, from, to viewing, is holding, step func(int)) error {
	for begin, more := rc.keys.From, true; more; {
		var next []byte
		seen := 0
		err := from(ctx, func(from store.Tx) error {
			return to(ctx, func(to store.Tx) (err error) {
				next, seen, err = rc.part(from, to, begin, is)
				return err
			})
		})
		if err != nil {
			return err
		}
		step(seen)
		begin, more = next, next != nil
	}
	return nil
}

// part is each for the part that begins at a key. next is where the following part begins, or nil.
func (rc *rangeCopy) part(from, to store.Tx, begin []byte, is holding) (next []byte, seen int, err error) {
	sides := map[string]*[2][]byte{}
	for i, tx := range []store.Tx{from, to} {
		if tx == nil {
			continue
		}
		n := 0
		for rec, err := range tx.Scan(store.Range{From: begin, To: rc.keys.To}) {
			if err != nil {
				return nil, 0, err
			}
			if next != nil && bytes.Compare(rec.Key, next) >= 0 {
				break
			}
			value := rec.Value
			if i == 0 {
				if value, err = rc.want(rec); err != nil {
					return nil, 0, err
				}
			}
			if value == nil {
				continue
			}
			side := sides[string(rec.Key)]
			if side == nil {
				side = new([2][]byte)
				sides[string(rec.Key)] = side
			}
			side[i] = append([]byte{}, value...)
			if n++; n == rc.limit {
				next = keyBehind(rec.Key)
				break
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sides)) {
		if next != nil && key >= string(next) {
			break // belongs to the next part
		}
		if err := is(to, []byte(key), sides[key][0], sides[key][1]); err != nil {
			return nil, 0, err
		}
		seen++
	}
	return next, seen, nil
}

// keyBehind is the first key after another one.
func keyBehind(key []byte) []byte { return append(slices.Clone(key), 0) }

// into writes to a ledger what it must have of a source.
func (rc *rangeCopy) into(ctx context.Context, from viewing, to *ledger.Ledger, step func(int)) error {
	var now *ledger.Change
	update := func(ctx context.Context, fn func(store.Tx) error) error {
		return to.Update(ctx, func(c *ledger.Change) error {
			now = c
			return fn(c.Tx())
		})
	}
	return rc.each(ctx, from, update, func(_ store.Tx, key, want, got []byte) error {
		if same(want, got) {
			return nil
		}
		return put(now, key, got, want)
	}, step)
}

// same reports whether both are the same record, or none.
func same(want, got []byte) bool { return (want == nil) == (got == nil) && bytes.Equal(want, got) }

// asItIs copies a record unchanged.
func asItIs(rec store.Record) ([]byte, error) { return rec.Value, nil }

// write writes records by their keys alone, to a store that nobody serves.
func write(to store.Tx, key, want, got []byte) error {
	switch {
	case same(want, got):
		return nil
	case want == nil:
		return to.Delete(key)
	}
	return to.Put(key, want)
}

// Fill writes all present records of one store to an empty one.
func Fill(ctx context.Context, from, to store.Store) error {
	all := &rangeCopy{limit: store.MaxWrites, want: asItIs}
	return from.View(ctx, func(tx store.Tx) error {
		return all.each(ctx, within(tx), to.Update, write, func(int) {})
	})
}
