package ledger

import (
	"cmp"
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

// EachLease calls fn for each lease record of a subnet, until fn fails. A key or record that does not decode is
// ipam.ErrDamaged.
func EachLease(tx store.Tx, subnet ipam.ID, fn func(*ipam.Lease) error) error {
	return EachLeaseOf(tx, LeasesOf(subnet), fn)
}

// EachLeaseOf is EachLease for a range of keys.
func EachLeaseOf(tx store.Tx, of store.Range, fn func(*ipam.Lease) error) error {
	for rec, err := range tx.Scan(of) {
		if err != nil {
			return err
		}
		_, addr, ok := LeaseKeyParts(rec.Key)
		if !ok {
			return fmt.Errorf("%w: the key %x is not the key of an address", ipam.ErrDamaged, rec.Key)
		}
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return err
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	return nil
}

// Reservations reads an owner's reservations in a subnet: first those that are not held, then the others, each by slot.
func (c *Change) Reservations(subnet ipam.ID, owner string) (all []*ipam.Lease, err error) {
	for addr := range c.index.subnets[subnet].byOwner.Of(owner) {
		l, err := c.Lease(subnet, addr)
		if err != nil {
			return nil, err
		}
		if r := l.Reserved(); r != nil && r.Owner == owner { // else the index was wrong
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Lease) int {
		switch held := a.Held(); {
		case held == b.Held():
			return CompareSlots(a.Reservation.Slot, b.Reservation.Slot)
		case held:
			return 1
		}
		return -1
	})
	return all, nil
}

// CompareSlots orders slots by interface and number.
func CompareSlots(s ipam.Slot, other ipam.Slot) int {
	return cmp.Or(cmp.Compare(s.Interface, other.Interface), cmp.Compare(s.Number, other.Number))
}

// ReadPage reads the leases of a range. next is the first key of the next page, or nil at the end.
func ReadPage(tx store.Tx, r store.Range) (page []*ipam.Lease, next []byte, err error) {
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return nil, nil, err
		}
		_, addr, _ := LeaseKeyParts(rec.Key)
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return nil, nil, err
		}
		page = append(page, l)
		next = append(next[:0], rec.Key...)
	}
	if len(page) < r.Limit {
		return page, nil, nil
	}
	return page, append(next, 0), nil
}

// DeleteWhile deletes records from the start of a range, until goes returns false. It returns how many it deleted.
func DeleteWhile(tx store.Tx, r store.Range, goes func(store.Record) bool) (int, error) {
	var keys [][]byte
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return 0, err
		}
		if !goes(rec) {
			break
		}
		keys = append(keys, slices.Clone(rec.Key))
	}
	for _, key := range keys {
		if err := tx.Delete(key); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}
