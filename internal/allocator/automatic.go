package allocator

import (
	"net/netip"

	"berth/internal/ipam"
)

// TakeAny chooses an address in the order that the design gives: what is the requester's already, what it had last,
// then per pool the lowest that nobody ever had, then the one released longest ago.
func (t *Target) TakeAny(req ipam.AddressRequest) (netip.Addr, error) {
	lost, err := t.Repeated(&req, func(*ipam.Lease) bool { return true })
	if err != nil {
		return netip.Addr{}, err
	}
	if lost != nil {
		return lost.Address, t.takeOver(req, lost)
	}
	g, err := t.guess(req)
	if err != nil {
		return netip.Addr{}, err
	}
	if g != nil {
		return g.addr, t.Take(g.req, g.addr, g.before, ipam.Automatic)
	}
	addr, before, err := t.choose(&req)
	if err != nil {
		return netip.Addr{}, err
	}
	return addr, t.Take(req, addr, before, ipam.Automatic)
}
