package bolt

import (
	"bytes"
	"iter"

	"go.etcd.io/bbolt"

	"berth/store"
	"berth/store/internal/record"
)

// tx is a store.Tx. In a View w is nil. In an Update it is the buffer for the function's writes, on top of the shared
// bbolt transaction with the writes of earlier functions.
type tx struct {
	bucket *bbolt.Bucket
	// for Get: it seeks each time, so one cursor serves all functions of a batch without allocations
	cursor  *bbolt.Cursor
	w       *writes
	undo    []func()
	scanned int // number of records that Scan has yielded
	rules   record.Rules
}

func (t *tx) Get(key []byte) ([]byte, error) {
	if t.rules.Over {
		return nil, record.ErrOver
	}
	if t.w != nil {
		if w, ok := t.w.get(key); ok {
			if w.sealed == nil {
				return nil, nil
			}
			return w.sealed[record.SealSize:], nil
		}
	}
	if len(key) == 0 {
		return nil, nil
	}
	if t.cursor == nil {
		t.cursor = t.bucket.Cursor()
	}
	k, v := t.cursor.Seek(key)
	if k == nil || !bytes.Equal(k, key) {
		return nil, nil
	}
	return unseal(key, v)
}

func (t *tx) Put(key, value []byte) error {
	if err := t.rules.Put(key, value); err != nil {
		return err
	}
	t.w.set(key, value, false)
	return nil
}

func (t *tx) Delete(key []byte) error {
	if err := t.rules.Delete(key); err != nil {
		return err
	}
	t.w.set(key, nil, true)
	return nil
}

func (t *tx) OnAbort(undo func()) {
	if t.w != nil && !t.rules.Over {
		t.undo = append(t.undo, undo)
	}
}

func (t *tx) Scan(r store.Range) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if t.rules.Over {
			yield(store.Record{}, record.ErrOver)
			return
		}
		s := scanner{base: t.bucket.Cursor(), w: t.w, r: r}
		for n := 0; r.Limit <= 0 || n < r.Limit; n++ {
			t.scanned++
			key, stored, sure := s.next()
			if key == nil {
				return
			}
			value := stored[min(record.SealSize, len(stored)):]
			if !sure {
				var err error
				if value, err = unseal(key, stored); err != nil {
					yield(store.Record{}, err)
					return
				}
			}
			if !yield(store.Record{Key: key[:len(key):len(key)], Value: value}, nil) {
				return
			}
			if t.rules.Over {
				yield(store.Record{}, record.ErrOver)
				return
			}
		}
	}
}

// scanner iterates over the records of a range: those of the bbolt bucket, overlaid by those of the buffer.
type scanner struct {
	base    *bbolt.Cursor
	w       *writes
	r       store.Range
	started bool
	k, v    []byte // the bucket's next record, nil at the end
	last    []byte // the key that was returned last
}

// next returns the next record in its stored form, and a nil key at the end. sure is set for the function's own writes,
// which need no check.
func (s *scanner) next() (key, stored []byte, sure bool) {
	if !s.started {
		s.seek()
		s.started = true
	}
	for {
		w, ok := s.buffered()
		switch {
		case s.k == nil && !ok:
			return nil, nil, false
		case !ok || s.k != nil && s.before(s.k, w.key):
			key, stored = s.k, s.v
			s.advance()
			s.last = key
			return key, stored, false
		}
		if s.k != nil && bytes.Equal(s.k, w.key) {
			s.advance()
		}
		s.last = w.key
		if w.sealed != nil {
			return w.key, w.sealed, true
		}
	}
}

// before is the order of the scan.
func (s *scanner) before(a, b []byte) bool {
	if s.r.Reverse {
		a, b = b, a
	}
	return bytes.Compare(a, b) < 0
}

// buffered returns the buffer's next record. It searches each time, because writes outside the range may have moved the
// positions.
func (s *scanner) buffered() (write, bool) {
	if s.w == nil || len(s.w.order) == 0 {
		return write{}, false
	}
	var i int
	switch {
	case s.r.Reverse && s.last != nil:
		i, _ = s.w.find(s.last)
		i--
	case s.r.Reverse && s.r.To != nil:
		i, _ = s.w.find(s.r.To)
		i--
	case s.r.Reverse:
		i = len(s.w.order) - 1
	case s.last != nil:
		var same bool
		if i, same = s.w.find(s.last); same {
			i++
		}
	default:
		i, _ = s.w.find(s.r.From)
	}
	if i < 0 || i >= len(s.w.order) {
		return write{}, false
	}
	w := s.w.list[s.w.order[i]]
	return w, s.inRange(w.key)
}

func (s *scanner) inRange(key []byte) bool {
	if s.r.Reverse {
		return s.r.From == nil || bytes.Compare(key, s.r.From) >= 0
	}
	return s.r.To == nil || bytes.Compare(key, s.r.To) < 0
}

// seek finds the bucket's first record of the scan.
func (s *scanner) seek() {
	if !s.r.Reverse {
		if s.r.From == nil {
			s.set(s.base.First())
		} else {
			s.set(s.base.Seek(s.r.From))
		}
		return
	}
	// Cursor.Last never ends on a tree whose pages were all emptied in the same transaction.
	if k, _ := s.base.First(); k == nil {
		return
	}
	if s.r.To != nil {
		if k, _ := s.base.Seek(s.r.To); k != nil {
			s.set(s.prev(k))
			return
		}
	}
	s.set(s.base.Last())
}

func (s *scanner) advance() {
	if s.r.Reverse {
		s.set(s.prev(s.k))
	} else {
		s.set(s.base.Next())
	}
}

// prev goes back from the record at. Cursor.Prev returns nil at the first record, but also at a page that was emptied
// in the same transaction. In that case it must be called again.
func (s *scanner) prev(at []byte) (k, v []byte) {
	if k, v = s.base.Prev(); k != nil || s.w == nil {
		return k, v
	}
	first, _ := s.bucketFirst()
	for k == nil && bytes.Compare(first, at) < 0 {
		k, v = s.base.Prev()
	}
	return k, v
}

func (s *scanner) bucketFirst() (k, v []byte) { return s.base.Bucket().Cursor().First() }

func (s *scanner) set(k, v []byte) {
	if k != nil && !s.inRange(k) {
		k, v = nil, nil
	}
	s.k, s.v = k, v
}
