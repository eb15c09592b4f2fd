package edit

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// binding is one wanted reservation in progress.
type binding struct {
	*ipam.AddReservation
	p     *Plan
	in    ipam.Interface
	addrs []netip.Addr // the resulting addresses
}

// ownerIn is an owner in a network.
type ownerIn struct {
	network ipam.ID
	owner   string
}

func bindReservations(c *run, e *ipam.BindReservations) error {
	if len(e.Wanted) == 0 || len(e.Wanted) > ipam.MaxEdits {
		return ipam.Refuse(ipam.ErrInvalid, "the request has %d reservations; one request binds 1 to %d", len(e.Wanted),
			ipam.MaxEdits)
	}
	all, wanted, err := beginBinding(e, c)
	if err != nil {
		return err
	}
	if err := replaceOthers(c, all, wanted); err != nil {
		return err
	}
	for _, static := range []bool{true, false} { // given addresses first
		for _, b := range all {
			if b.unplaced() {
				continue
			}
			chosen, err := b.p.fulfil(b.AddReservation, b.in,
				func(w ipam.Wish) bool { return w.Address.IsValid() == static })
			if err != nil {
				return err
			}
			if !static {
				b.addrs = b.bySlot(chosen)
			}
		}
	}
	c.result.Network = all[0].p.N.ID
	for _, b := range all {
		if b.unplaced() {
			b.addrs, err = b.p.recordWanted(b.AddReservation)
		} else {
			err = b.p.Keep()
		}
		if err != nil {
			return err
		}
		c.gave(b.addrs...)
	}
	return nil
}

// beginBinding opens the networks. It refuses two reservations of one owner in one network.
func beginBinding(e *ipam.BindReservations, c *run) (all []*binding, wanted map[ownerIn]*binding, err error) {
	wanted = map[ownerIn]*binding{}
	for i := range e.Wanted {
		one := e.Wanted[i]
		one.Replace = true
		p, err := openPlan(c, one.Network, &one)
		if err != nil {
			return nil, nil, err
		}
		in, err := p.beginReservation(&one)
		if err != nil {
			return nil, nil, err
		}
		b, key := &binding{AddReservation: &one, p: p, in: in}, ownerIn{p.N.ID, one.Owner}
		if wanted[key] != nil {
			return nil, nil, ipam.RefuseAs(ipam.AlreadyExists, ipam.ErrInvalid, "%s would have two reservations in "+
				"network %s; give it one with all its addresses", one.Owner, p.Called())
		}
		all, wanted[key] = append(all, b), b
	}
	return all, wanted, nil
}

// replaceOthers marks the owners' unwanted reservations as replaced: those in other networks and in slots without a
// wish.
func replaceOthers(c *run, all []*binding, wanted map[ownerIn]*binding) error {
	var owners OwnerSet
	for _, b := range all {
		owners.names = append(owners.names, b.Owner)
	}
	return EachOwned(c.Change, owners, func(at ledger.Picked) error {
		r := *at.Record.Reservation
		b := wanted[ownerIn{at.Sub.Network, r.Owner}]
		if b != nil && b.wishes(r.Slot) {
			return nil
		}
		r.Replaced = true
		return changeReservation(c.Change, at, r)
	})
}

// unplaced reports whether another system chooses the address.
func (b *binding) unplaced() bool { return b.p.N.Type == ipam.Dynamic && !byAddress(&b.in) }

// bySlot returns the addresses of all wishes: the given ones, and the chosen ones in their places.
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

func (b *binding) wishes(slot ipam.Slot) bool {
	for _, w := range b.in.Wishes {
		if slot == (ipam.Slot{Interface: uint8(b.in.Number), Number: uint8(w.Slot)}) {
			return true
		}
	}
	return false
}
