package stores

import (
	"bytes"
	"context"
	"slices"

	"berth/internal/ipam/ledger"
	"berth/store"
)

// rangeCopy gives one store the records that another one has in a range of keys, and reads them back. It goes page by
// page, so that neither side is in memory as a whole and each transaction is small.
type rangeCopy struct {
	keys  store.Range
	limit int // how many records a page has at most, of either side
	// want is what the target is to have for a record of the source; nil: nothing.
	want func(store.Record) ([]byte, error)
}

// rangePage is all that the target is to have in a part of the range.
type rangePage struct {
	keys    store.Range    // of the part
	records []store.Record // in order
	more    bool           // another part follows
	limit   int

	// By hold:
	end  []byte // it came to here, because the target has so much; nil: to the end of the part
	seen int    // how many keys there are up to there, of either side
}

// viewing runs a function over one state of a store, as store.Store.View does.
type viewing func(context.Context, func(store.Tx) error) error

// within is what a function sees that runs already.
func within(tx store.Tx) viewing {
	return func(_ context.Context, fn func(store.Tx) error) error { return fn(tx) }
}

// eachPage hands out what the target is to have of a source, in the order of the keys. Where do has held a page
// against the target, the next one begins where that ended. from nil: it is to have nothing.
func (rc *rangeCopy) eachPage(ctx context.Context, from viewing, do func(*rangePage) error) error {
	for begin, more := rc.keys.From, true; more; {
		page := &rangePage{keys: store.Range{From: begin, To: rc.keys.To}, limit: rc.limit}
		if from != nil {
			err := from(ctx, func(tx store.Tx) (err error) {
				page, err = rc.read(tx, begin)
				return err
			})
			if err != nil {
				return err
			}
		}
		if err := do(page); err != nil {
			return err
		}
		begin, more = page.keys.To, page.more
		if page.end != nil {
			begin, more = page.end, true
		}
	}
	return nil
}

// read reads the page that begins at a key.
func (rc *rangeCopy) read(tx store.Tx, begin []byte) (*rangePage, error) {
	page := &rangePage{keys: store.Range{From: begin, To: rc.keys.To}, limit: rc.limit}
	for rec, err := range tx.Scan(page.keys) {
		if err != nil {
			return nil, err
		}
		value, err := rc.want(rec)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		page.records = append(page.records, store.Record{Key: slices.Clone(rec.Key), Value: slices.Clone(value)})
		if len(page.records) == rc.limit {
			page.keys.To, page.more = keyBehind(rec.Key), true
			break
		}
	}
	return page, nil
}

// keyBehind is the first key behind another one.
func keyBehind(key []byte) []byte { return append(slices.Clone(key), 0) }

// hold holds a page against what is there: each key of either side, in order, with what it is to have and what it has;
// nil: nothing. It may be called again.
func (p *rangePage) hold(tx store.Tx, is func(key, want, got []byte) error) error {
	p.end, p.seen = nil, 0
	left, there, last := p.records, 0, []byte(nil)
	hold := func(key, want, got []byte) error {
		p.seen++
		return is(key, want, got)
	}
	for rec, err := range tx.Scan(store.Range{From: p.keys.From, To: p.keys.To, Limit: p.limit}) {
		if err != nil {
			return err
		}
		for ; len(left) > 0 && bytes.Compare(left[0].Key, rec.Key) < 0; left = left[1:] {
			if err := hold(left[0].Key, left[0].Value, nil); err != nil {
				return err
			}
		}
		var want []byte
		if len(left) > 0 && bytes.Equal(left[0].Key, rec.Key) {
			want, left = left[0].Value, left[1:]
		}
		if err := hold(rec.Key, want, rec.Value); err != nil {
			return err
		}
		there, last = there+1, rec.Key
	}
	if there == p.limit {
		p.end = keyBehind(last)
		return nil // what is left comes with the next page
	}
	for _, rec := range left {
		if err := hold(rec.Key, rec.Value, nil); err != nil {
			return err
		}
	}
	return nil
}

// putting gives a key what it is to have instead of what it has; nil: nothing.
type putting func(key, has, want []byte) error

// write makes what is there what it is to be.
func (p *rangePage) write(tx store.Tx, put putting) error {
	var differ [][3][]byte
	err := p.hold(tx, func(key, want, got []byte) error {
		if (want == nil) != (got == nil) || !bytes.Equal(want, got) {
			differ = append(differ, [3][]byte{key, got, want})
		}
		return nil
	})
	for _, d := range differ {
		if err == nil {
			err = put(d[0], d[1], d[2])
		}
	}
	return err
}

// into gives a ledger what it is to have of a source, each page in a change of its own.
func (rc *rangeCopy) into(ctx context.Context, from viewing, to *ledger.Ledger, step func(int)) error {
	return rc.eachPage(ctx, from, func(page *rangePage) error {
		err := to.Update(ctx, func(c *ledger.Change) error {
			return page.write(c.Tx(), func(key, has, want []byte) error { return put(c, key, has, want) })
		})
		if err == nil {
			step(page.seen)
		}
		return err
	})
}

// asItIs has the target have what the source has.
func asItIs(rec store.Record) ([]byte, error) { return rec.Value, nil }

// recordsInto puts records by their keys alone, for a store that nobody serves.
func recordsInto(tx store.Tx) putting {
	return func(key, _, want []byte) error {
		if want == nil {
			return tx.Delete(key)
		}
		return tx.Put(key, want)
	}
}

// Fill gives an empty store all records that another one has at this moment.
func Fill(ctx context.Context, from, to store.Store) error {
	all := &rangeCopy{limit: store.MaxWrites, want: asItIs}
	return from.View(ctx, func(tx store.Tx) error {
		return all.eachPage(ctx, within(tx), func(page *rangePage) error {
			return to.Update(ctx, func(tx store.Tx) error { return page.write(tx, recordsInto(tx)) })
		})
	})
}
