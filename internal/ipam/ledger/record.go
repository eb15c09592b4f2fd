package ledger

import (
	"fmt"
	"iter"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// ReadJSON reads a JSON record. It returns nil if there is none. what names the record if it is damaged.
func ReadJSON[T any](tx store.Tx, key []byte, what string) (*T, error) {
	raw, err := tx.Get(key)
	if err != nil || raw == nil {
		return nil, err
	}
	v := new(T)
	return v, ipam.DecodeJSON(what, raw, v)
}

// text is a name, for ReadKnown.
type text string

func (t text) String() string { return string(t) }

// ReadKnown is ReadJSON for a record that the index has, which is decoded only if its bytes have changed. noun and id
// name it if it is damaged.
func ReadKnown[T any, ID fmt.Stringer](tx store.Tx, key []byte, known Cached[T], noun string, id ID) (*T, error) {
	raw, err := tx.Get(key)
	if err != nil || raw == nil {
		return nil, err
	}
	if known.Is(raw) {
		return known.Value, nil
	}
	v := new(T)
	return v, ipam.DecodeJSON(noun+" "+id.String(), raw, v)
}

// Keyed is a JSON record with its key.
type Keyed[T any] struct {
	Key []byte
	Cached[T]
}

// EachJSON yields the JSON records of a range. An error ends the sequence.
func EachJSON[T any](tx store.Tx, r store.Range, what string) iter.Seq2[Keyed[T], error] {
	return func(yield func(Keyed[T], error) bool) {
		for rec, err := range tx.Scan(r) {
			v := new(T)
			if err == nil {
				err = ipam.DecodeJSON(what, rec.Value, v)
			}
			one := Keyed[T]{slices.Clone(rec.Key), Cached[T]{slices.Clone(rec.Value), v}}
			if !yield(one, err) || err != nil {
				return
			}
		}
	}
}

// AllJSON reads the JSON records of a range, in order. The list is never nil.
func AllJSON[T any](tx store.Tx, r store.Range, what string) ([]T, error) {
	all := []T{}
	for one, err := range EachJSON[T](tx, r, what) {
		if err != nil {
			return nil, err
		}
		all = append(all, *one.Value)
	}
	return all, nil
}
