package edit

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Owners that swap static addresses, or rotate more of them, cannot keep both addresses until they run with the new
// ones. Each new address is another's old one. If one request has all of them, each address changes its owner
// at once. A present holder keeps it until its release.

// makeWay ends another owner's reservation of a given address if that owner leaves it in the same request. It reports
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
	byHand := l.Held() && l.Attachment == (ipam.ID{}) // only a person releases it
	if r == nil || r.Owner == e.Owner || byHand || !p.leaves(r, w.Address) {
		return false, nil
	}
	return true, ledger.EndReservation(p.Change, ledger.Picked{Sub: subnets[i], Addr: w.Address, Record: l}, "it is "+e.Owner+"'s by the same request")
}

// leaves reports whether the request gives the reservation's owner another static address for it.
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

// reservationsOf returns the reservations in the edits.
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
