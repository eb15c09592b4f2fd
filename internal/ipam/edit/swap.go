package edit

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Owners that swap static addresses, or rotate more of them, cannot keep both addresses until they run with the new
// ones. Each new address is another's old one. Neither can an owner that does not name its static address any more, or
// moves to another network, while another owner names that address. If one request has all of them, each address changes
// its owner at once. A present holder keeps it until its release. An automatic address stays with an automatic wish.

// makeWay ends another owner's reservation of a given address if that owner leaves it in the same request. It reports
// whether it did, or whether an owner that leaves the address holds it without a reservation.
func (p *Plan) makeWay(e *ipam.AddReservation, w ipam.Wish, subnets []*ipam.Subnet) (bool, error) {
	if !e.Replace || !w.Address.IsValid() {
		return false, nil
	}
	i := slices.IndexFunc(subnets, func(sub *ipam.Subnet) bool { return sub.CIDR.Contains(w.Address) })
	if i < 0 {
		return false, nil
	}
	l, err := p.Lease(subnets[i].ID, w.Address)
	if err != nil {
		return false, err
	}
	if l.Held() && l.Attachment == (ipam.ID{}) { // only a person releases it
		return false, nil
	}
	r := l.Reserved()
	switch {
	case r == nil:
		return l.Held() && p.holderLeaves(e.Owner, l), nil
	case r.Owner == e.Owner || !p.leaves(r.Owner, w.Address, r):
		return false, nil
	}
	return true, ledger.EndReservation(p.Change, ledger.Picked{Sub: subnets[i], Addr: w.Address, Record: l},
		"the same request gives it to "+e.Owner)
}

// holderLeaves reports whether the holder of an unreserved address is an owner that leaves it.
func (p *Plan) holderLeaves(owner string, l *ipam.Lease) bool {
	return slices.ContainsFunc(reservationsOf(p.run.edits), func(wanted *ipam.AddReservation) bool {
		other := ipam.CanonicalOwner(wanted.Owner)
		return other != owner && holds(p.N, l, other) && p.leaves(other, l.Address, nil)
	})
}

// leaves reports whether the request gives an owner something else instead of an address: another static address, any
// address, or one on another network. r is the owner's reservation of the address; nil if it only holds it.
func (p *Plan) leaves(owner string, addr netip.Addr, r *ipam.Reservation) bool {
	moved := false
	for _, wanted := range reservationsOf(p.run.edits) {
		switch {
		case !wanted.Replace || ipam.CanonicalOwner(wanted.Owner) != owner:
		case isNetwork(p.Change, p.N, wanted):
			return p.leavesIn(wanted, addr, r)
		case wanted.Only != nil:
			moved = !slices.Contains(wanted.Only, p.N.Name) && !slices.Contains(wanted.Only, p.N.ID.String())
		}
	}
	return moved
}

// leavesIn is leaves for the owner's edit in the network of the address.
func (p *Plan) leavesIn(wanted *ipam.AddReservation, addr netip.Addr, r *ipam.Reservation) bool {
	if slices.ContainsFunc(wanted.Wishes, func(w ipam.Wish) bool { return w.Address == addr }) {
		return false
	}
	return r == nil || r.Replaced || wanted.Number == int(r.Slot.Interface) &&
		slices.ContainsFunc(wanted.Wishes, func(w ipam.Wish) bool {
			return w.Slot == int(r.Slot.Number) && (w.Address.IsValid() || r.Kind == ipam.Static)
		})
}

// handsOn reports whether an owner that accepts any address leaves one to another owner, who names it in the request. r
// is the owner's reservation of the address; nil if it only holds it.
func (p *Plan) handsOn(e *ipam.AddReservation, w ipam.Wish, addr netip.Addr, r *ipam.Reservation) bool {
	if !e.Replace || w.Address.IsValid() || r != nil && !r.Replaced && r.Kind != ipam.Static {
		return false
	}
	return slices.ContainsFunc(reservationsOf(p.run.edits), func(other *ipam.AddReservation) bool {
		return other.Replace && ipam.CanonicalOwner(other.Owner) != e.Owner &&
			slices.ContainsFunc(other.Wishes, func(w ipam.Wish) bool { return w.Address == addr }) &&
			isNetwork(p.Change, p.N, other)
	})
}

// reservationsOf returns the reservations in the edits, each with its wishes.
func reservationsOf(edits []ipam.Edit) (all []*ipam.AddReservation) {
	add := func(one ipam.AddReservation) {
		if len(one.Wishes) == 0 {
			one.Wishes = []ipam.Wish{{}} // any address
		}
		all = append(all, &one)
	}
	for _, e := range edits {
		switch e := e.(type) {
		case *ipam.AddReservation:
			add(*e)
		case *ipam.BindReservations:
			for _, one := range e.Wanted {
				one.Replace, one.Only = true, []string{} // what it does not name is replaced
				add(one)
			}
		}
	}
	return all
}

func isNetwork(c *ledger.Change, n *ipam.Network, e *ipam.AddReservation) bool {
	found, err := c.NetworkOf(e.Network, e)
	return err == nil && found.ID == n.ID
}
