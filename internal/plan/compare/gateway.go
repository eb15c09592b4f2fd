package compare

import (
	"cmp"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// gateways turns addresses that are their subnet's gateway into that gateway's note. Mostly NetBox's tables have them.
// Nobody else has such an address.
func (c *comparison) gateways(n, is *network) {
	some := map[netip.Addr]bool{}
	for _, sub := range slices.Concat(n.Subnets, is.Subnets) {
		some[sub.Gateway] = true
	}
	n.Reservations = slices.DeleteFunc(n.Reservations, func(r ipam.PlannedReservation) bool {
		return some[r.Address] && c.gateway(n, is, r.Address, cmp.Or(r.Note, r.Owner), r.Line)
	})
	n.Addresses = slices.DeleteFunc(n.Addresses, func(a ipam.PlannedAddress) bool {
		return some[a.Address] && c.gateway(n, is, a.Address, cmp.Or(a.Note, a.Owner), a.Line)
	})
}

// gateway notes the text for a gateway, and reports whether the address is one.
func (c *comparison) gateway(n, is *network, addr netip.Addr, note string, line int) bool {
	if !addr.IsValid() {
		return false
	}
	at := func(sub ipam.PlannedSubnet) bool { return sub.CIDR.Contains(addr) }
	i, j := slices.IndexFunc(n.Subnets, at), slices.IndexFunc(is.Subnets, at)
	switch {
	case i >= 0 && n.Subnets[i].Gateway.IsValid():
		if n.Subnets[i].Gateway != addr {
			return false
		}
	case j >= 0 && is.Subnets[j].Gateway == addr:
		if i < 0 {
			i = len(n.Subnets)
			n.Subnets = append(n.Subnets, is.Subnets[j])
			n.Subnets[i].Line = line
			n.Subnets[i].GatewayNote = ""
		}
	default:
		return false
	}
	n.Subnets[i].GatewayNote = cmp.Or(n.Subnets[i].GatewayNote, note)
	return true
}
