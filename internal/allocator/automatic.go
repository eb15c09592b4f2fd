package allocator

import (
	"net/netip"

	"berth/internal/ipam"
)

// TakeAny chooses an address in the order of the design: the requester's own, then its last one. Then each pool gives
// its lowest address that was never used, or the one released longest ago.
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
