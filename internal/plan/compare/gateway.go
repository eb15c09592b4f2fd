package compare

import (
	"cmp"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// gateways takes what a document, most of all a table of NetBox's, says of an address that is its subnet's gateway for
// the note of that gateway: it is nobody's address besides.
func (c *comparison) gateways(n, is *network) {
	some := map[netip.Addr]bool{}
	for _, sub := range slices.Concat(n.subnets, is.subnets) {
		some[sub.Gateway] = true
	}
	n.reservations = slices.DeleteFunc(n.reservations, func(r ipam.PlannedReservation) bool {
		return some[r.Address] && c.gateway(n, is, r.Address, cmp.Or(r.Note, r.Owner), r.Line)
	})
	n.addresses = slices.DeleteFunc(n.addresses, func(a ipam.PlannedAddress) bool {
		return some[a.Address] && c.gateway(n, is, a.Address, cmp.Or(a.Note, a.Owner), a.Line)
	})
}

// gateway notes down what is said of a gateway, and answers whether the address is one.
func (c *comparison) gateway(n, is *network, addr netip.Addr, note string, line int) bool {
	if !addr.IsValid() {
		return false
	}
	at := func(sub ipam.PlannedSubnet) bool { return sub.CIDR.Contains(addr) }
	i, j := slices.IndexFunc(n.subnets, at), slices.IndexFunc(is.subnets, at)
	switch {
	case i >= 0 && n.subnets[i].Gateway.IsValid():
		if n.subnets[i].Gateway != addr {
			return false
		}
	case j >= 0 && is.subnets[j].Gateway == addr:
		if i < 0 {
			i = len(n.subnets)
			n.subnets = append(n.subnets, is.subnets[j])
			n.subnets[i].Line = line
			n.subnets[i].GatewayNote = ""
		}
	default:
		return false
	}
	n.subnets[i].GatewayNote = cmp.Or(n.subnets[i].GatewayNote, note)
	return true
}
