package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

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
			return fmt.Errorf("%w: the key %x names no address", ipam.ErrDamaged, rec.Key)
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

// Reservations reads an owner's reservations in a subnet: those that are not held and those that are, each by slot.
func (c *Change) Reservations(subnet ipam.ID, owner string) (free, held []*ipam.Lease, err error) {
	for addr := range c.index.subnets[subnet].byOwner.Of(owner) {
		l, err := c.Lease(subnet, addr)
		if err != nil {
			return nil, nil, err
		}
		switch r := l.Reserved(); {
		case r == nil || r.Owner != owner: // the index was wrong
		case l.Held():
			held = append(held, l)
		default:
			free = append(free, l)
		}
	}
	slices.SortFunc(free, byReservedSlot)
	slices.SortFunc(held, byReservedSlot)
	return free, held, nil
}

func byReservedSlot(a, b *ipam.Lease) int {
	return CompareSlots(a.Reservation.Slot, b.Reservation.Slot)
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
