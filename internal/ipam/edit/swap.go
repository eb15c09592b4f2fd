package edit

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Owners that change places (a swap of two static addresses, or a ring of more) cannot each hold both addresses until
// they run with the new ones, as BO-13 has it: each new address is another's old one. Where all of them are asked for
// by one request, what one leaves is the next one's at once; who has it in hand keeps it in hand until its release.

// makeWay ends what is reserved of a wished address for another owner that leaves it by the same request, and tells
// whether it did.
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
	r := l.Reserved()
	byHand := l.Held() && l.Attachment == (ipam.ID{}) // which nothing releases but a hand
	if r == nil || r.Owner == e.Owner || byHand || !p.leaves(r, w.Address) {
		return false, nil
	}
	return true, ledger.EndReservation(p.Change, ledger.Picked{Sub: subnets[i], Addr: w.Address, Record: l}, "it is "+e.Owner+"'s by the same request")
}

// leaves tells whether the request gives the owner of a reservation another static address in its place.
func (p *Plan) leaves(r *ipam.Reservation, addr netip.Addr) bool {
	for _, wanted := range reservationsOf(p.run.edits) {
		if !wanted.Replace || ipam.CanonicalOwner(wanted.Owner) != r.Owner || !isNetwork(p.Change, p.N, wanted) {
			continue
		}
		if wanted.Number != int(r.Slot.Interface) ||
			slices.ContainsFunc(wanted.Wishes, func(w ipam.Wish) bool { return w.Address == addr }) {
			return false
		}
		return slices.ContainsFunc(wanted.Wishes, func(w ipam.Wish) bool {
			return w.Slot == int(r.Slot.Number) && w.Address.IsValid()
		})
	}
	return false
}

// reservationsOf are the reservations that edits ask for.
func reservationsOf(edits []ipam.Edit) (all []*ipam.AddReservation) {
	for _, e := range edits {
		switch e := e.(type) {
		case *ipam.AddReservation:
			all = append(all, e)
		case *ipam.BindReservations:
			for i := range e.Wanted {
				one := e.Wanted[i]
				one.Replace = true
				all = append(all, &one)
			}
		}
	}
	return all
}

func isNetwork(c *ledger.Change, n *ipam.Network, e *ipam.AddReservation) bool {
	found, err := c.NetworkOf(e.Network, e)
	return err == nil && found.ID == n.ID
}
