package ipam

import (
	"fmt"
	"net/netip"
)

// binding is one wanted reservation on its way to be one.
type binding struct {
	*AddReservation
	p     *plan
	in    Interface
	addrs []netip.Addr // as they came to be
}

// ownerIn is an owner in a network.
type ownerIn struct {
	network ID
	owner   string
}

func (e *BindReservations) apply(c *change) (Result, error) {
	if len(e.Wanted) == 0 || len(e.Wanted) > MaxEdits {
		return Result{}, &refusal{ErrInvalid, fmt.Sprintf("%d reservations are to be bound; one request binds 1 to %d", len(e.Wanted), MaxEdits)}
	}
	all, wanted, err := e.begin(c)
	if err != nil {
		return Result{}, err
	}
	if err := c.replaceOthers(all, wanted); err != nil {
		return Result{}, err
	}
	wants, err := capacities(all)
	if err != nil {
		return Result{}, err
	}
	for _, static := range []bool{true, false} { // BO-10: what is given by name first
		for _, b := range all {
			if b.unplaced() {
				continue
			}
			c.edit.capacity = wants[b.p.n.ID]
			chosen, err := b.p.fulfil(b.AddReservation, b.in, func(w Wish) bool { return w.Address.IsValid() == static })
			if err != nil {
				return Result{}, err
			}
			if !static {
				b.addrs = b.bySlot(chosen)
			}
		}
	}
	c.edit.capacity = nil
	result := Result{Network: all[0].p.n.ID}
	for _, b := range all {
		if b.unplaced() {
			b.addrs, err = b.p.recordOwner(b.AddReservation)
		} else {
			err = b.p.keep()
		}
		if err != nil {
			return Result{}, err
		}
		result.Addresses = append(result.Addresses, b.addrs...)
	}
	return result, nil
}

// capacities counts what is wanted of each network.
func capacities(all []*binding) (map[ID]*capacity, error) {
	wants := map[ID]*capacity{}
	for _, b := range all {
		owned, err := b.p.owned(b.Owner)
		if err != nil {
			return nil, err
		}
		if wants[b.p.n.ID] == nil {
			wants[b.p.n.ID] = &capacity{}
		}
		wants[b.p.n.ID].wanted += b.p.lacking(b.AddReservation, b.in, owned)
	}
	return wants, nil
}

// begin opens the networks, and refuses two reservations of one owner in one of them (BO-6).
func (e *BindReservations) begin(c *change) (all []*binding, wanted map[ownerIn]*binding, err error) {
	wanted = map[ownerIn]*binding{}
	for i := range e.Wanted {
		one := e.Wanted[i]
		one.Replace = true
		p, in, err := one.begin(c)
		if err != nil {
			return nil, nil, err
		}
		b, key := &binding{AddReservation: &one, p: p, in: in}, ownerIn{p.n.ID, one.Owner}
		if wanted[key] != nil {
			return nil, nil, refuse(AlreadyExists, ErrInvalid, "%s is to have two reservations in network %s; give it one, of as many addresses as it needs", one.Owner, p.n.Name)
		}
		all, wanted[key] = append(all, b), b
	}
	return all, wanted, nil
}

// replaceOthers marks what the owners have and do not want any more: in other networks, and in slots that are not wished for.
func (c *change) replaceOthers(all []*binding, wanted map[ownerIn]*binding) error {
	var owners ownerSet
	for _, b := range all {
		owners.names = append(owners.names, b.Owner)
	}
	return c.eachOwned(owners, func(at picked) error {
		r := *at.record.Reservation
		b := wanted[ownerIn{at.sub.Network, r.Owner}]
		if b != nil && b.wishes(r.Slot) {
			return nil
		}
		r.Replaced = true
		return c.changeReservation(at, r)
	})
}

// unplaced tells whether somebody else chooses the address.
func (b *binding) unplaced() bool { return b.p.n.Type == Dynamic && !b.in.byAddress() }

// bySlot are the addresses that the wishes came to: those that were given, and in their places those that were chosen.
func (b *binding) bySlot(chosen []netip.Addr) (all []netip.Addr) {
	for _, w := range b.in.Wishes {
		if w.Address.IsValid() {
			all = append(all, w.Address)
		} else if len(chosen) > 0 {
			all, chosen = append(all, chosen[0]), chosen[1:]
		}
	}
	return all
}

func (b *binding) wishes(slot Slot) bool {
	for _, w := range b.in.Wishes {
		if slot == (Slot{uint8(b.in.Number), uint8(w.Slot)}) {
			return true
		}
	}
	return false
}
