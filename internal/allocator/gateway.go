package allocator

import (
	"cmp"
	"net/netip"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// takeGateway answers a request of the type com.docker.network.gateway. The first gateway belongs to the subnet: all
// attachments share it, and no ReleaseAddress releases it. If only one attachment ever asked for it, it ends with that
// attachment (dropGatewayOf). Any other gateway that is requested by address is a lease of the attachment, for hosts
// that share a subnet. So is the gateway that an engine insists on for a network with gateway=none.
func (t *Target) takeGateway(req ipam.AddressRequest) (netip.Addr, error) {
	if !req.Preferred.IsValid() && t.Sub.Gateway.IsValid() {
		return t.Sub.Gateway, t.shareGateway()
	}
	if named := t.At.Gateway; named.IsValid() && req.Preferred.IsValid() && req.Preferred != named {
		return netip.Addr{}, ipam.Refuse(ipam.ErrInvalid, "the network has two gateways, %s from --ipam-opt gateway "+
			"and %s from --gateway; give only one", named, req.Preferred)
	}
	addr, err := t.gatewayAddr(req)
	if err != nil {
		return addr, err
	}
	if addr == t.Sub.Gateway {
		if err := t.shareGateway(); err != nil {
			return netip.Addr{}, err
		}
		return addr, t.succeed()
	}
	if err := t.leavesRoom(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.Record(addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if held.Kind == ipam.Gateway && held.Attachment == t.At.ID {
			return addr, nil
		}
		if err := t.succeed(); err != nil {
			return netip.Addr{}, err
		}
		return addr, t.replay(req, held)
	}
	if r := held.Reserved(); r != nil {
		return netip.Addr{}, ReservedError(t.Change, addr, r)
	}
	if t.Sub.Gateway.IsValid() { // a bridge's own gateway next to the subnet's is a static address like any other
		return addr, t.take(req, addr, held, ipam.Gateway)
	}
	if err := t.Sub.CheckGateway(addr); err != nil { // a held gateway stays, even if a static band was added later
		return netip.Addr{}, err
	}
	if t.Sub.NoGateway {
		return addr, t.take(req, addr, held, ipam.Gateway)
	}
	return addr, t.setGateway(addr, held)
}

// gatewayAddr returns the requested address, or else the lowest free one. It prefers addresses outside the attachment's
// own range, to leave the range to containers.
func (t *Target) gatewayAddr(req ipam.AddressRequest) (netip.Addr, error) {
	if req.Preferred.IsValid() {
		if req.Preferred == t.Sub.Gateway {
			return req.Preferred, nil
		}
		return req.Preferred, t.CheckWanted(req.Preferred)
	}
	if t.Sub.FromDHCP() {
		return netip.Addr{}, ipam.Refuse(ipam.ErrInvalid, "the engine requests a gateway for the subnet %s, but its "+
			"DHCP server offers none (DHCPv6 never does); set the router's address with --gateway", t.Sub.CIDR)
	}
	if err := t.Index().Network(t.Sub.Network).CheckAutomatic(); err != nil {
		return netip.Addr{}, err
	}
	addr, _, err := t.chooseIn(t.gatewayPools(), 0)
	if err == nil && !addr.IsValid() {
		err = t.exhausted()
	}
	return addr, err
}

// gatewayPools returns the pools for a gateway. In a planned subnet these are the subnet's pools, because other
// addresses belong to others.
func (t *Target) gatewayPools() []ledger.OpenPool {
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Planned {
		return t.Pools()
	}
	ranges := []netipx.IPRange{t.Sx.Usable()}
	if !t.At.Pool.IsZero() {
		ranges = outside(t.Sx.Usable(), t.At.Pool.IPRange)
	}
	pools := make([]ledger.OpenPool, 0, len(ranges))
	closed := ledger.ClosedRanges(t.Sub)
	for _, r := range ranges {
		pools = append(pools, ledger.OpenPool{Ranges: ledger.OpenRanges(r, t.Sx.Usable(), closed)})
	}
	return pools
}

// outside returns r without hole, and then all of r.
func outside(r, hole netipx.IPRange) []netipx.IPRange {
	var b netipx.IPSetBuilder
	b.AddRange(r)
	b.RemoveRange(hole)
	set, err := b.IPSet()
	if err != nil {
		return []netipx.IPRange{r}
	}
	return append(set.Ranges(), r)
}

// leavesRoom refuses a gateway that takes the only address for containers.
func (t *Target) leavesRoom(gateway netip.Addr) error {
	pools := t.Pools()
	if len(pools) == 0 {
		return nil // here addresses are given only on request
	}
	for _, p := range pools {
		for _, r := range p.Ranges {
			if r.From() != gateway || r.To() != gateway {
				return nil
			}
		}
	}
	return ipam.Refuse(ipam.ErrExhausted,
		"the pool %s is too small for its gateway %s: no address would be left for a container; use a larger subnet "+
			"or range", cmp.Or(t.At.Pool.String(), t.Sub.CIDR.String()), gateway)
}

// setGateway makes a free address the subnet's gateway.
func (t *Target) setGateway(addr netip.Addr, before *ipam.Lease) error {
	l := &ipam.Lease{Address: addr, Kind: ipam.Gateway, Host: t.Host()}
	e := l.Event(ipam.GatewaySet, t.Sub, "")
	e.Attachment = t.At.ID
	if err := t.create(l, before, e); err != nil {
		return err
	}
	sub := *t.Sub
	sub.Gateway, sub.GatewayBy = addr, t.At.ID
	t.Sub = &sub
	return t.SetSubnet(t.Sub)
}

// shareGateway records that a second attachment asks for the subnet's gateway.
func (t *Target) shareGateway() error {
	if by := t.Sub.GatewayBy; by == (ipam.ID{}) || by == t.At.ID {
		return nil
	}
	sub := *t.Sub
	sub.GatewayBy = ipam.ID{}
	t.Sub = &sub
	return t.SetSubnet(t.Sub)
}
