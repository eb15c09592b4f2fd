package ipam

import (
	"cmp"
	"slices"
)

// reservations reads what is reserved for an owner in a subnet: what is free, and what somebody has, both by slot.
func (c *change) reservations(subnet ID, owner string) (free, held []*Lease, err error) {
	for addr := range c.ix.subnets[subnet].byOwner.of(owner) {
		l, err := c.lease(subnet, addr)
		if err != nil {
			return nil, nil, err
		}
		switch r := l.reserved(); {
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

func byReservedSlot(a, b *Lease) int { return a.Reservation.Slot.compare(b.Reservation.Slot) }

func (s Slot) compare(other Slot) int {
	return cmp.Or(cmp.Compare(s.Interface, other.Interface), cmp.Compare(s.Number, other.Number))
}
