package ipam

import (
	"fmt"
	"net/netip"

	"go4.org/netipx"
)

// takeGateway answers a request of the type com.docker.network.gateway. The first gateway of a subnet belongs to the subnet:
// it is the same for every attachment, and no ReleaseAddress frees it. Another one asked for by address is a lease
// of the attachment, as a host needs that shares a subnet with others; so is the one that an engine insists on where
// the network was made with gateway=none.
func (t *target) takeGateway(req AddressRequest) (netip.Addr, error) {
	if !req.Preferred.IsValid() && t.sub.Gateway.IsValid() {
		return t.sub.Gateway, nil
	}
	if named := t.at.Gateway; named.IsValid() && req.Preferred.IsValid() && req.Preferred != named {
		return netip.Addr{}, &refusal{ErrInvalid, fmt.Sprintf("the network has two gateways, %s by --ipam-opt gateway and %s by --gateway; give one of them", named, req.Preferred)}
	}
	addr, err := t.gatewayAddr(req)
	if err != nil {
		return addr, err
	}
	if addr == t.sub.Gateway {
		return addr, t.inheritAll()
	}
	if err := t.leavesRoom(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.lease(t.sub.ID, addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if held.Kind == Gateway && held.Attachment == t.at.ID {
			return addr, nil
		}
		if err := t.inheritAll(); err != nil {
			return netip.Addr{}, err
		}
		return addr, t.replay(req, held)
	}
	if r := held.reserved(); r != nil {
		return netip.Addr{}, t.reservedError(addr, r)
	}
	if t.sub.Gateway.IsValid() || t.sub.NoGateway {
		return addr, t.take(req, addr, held, Gateway)
	}
	return addr, t.setGateway(addr, held)
}

// gatewayAddr is the address asked for, or else the lowest free one whichever host asks, outside of the attachment's own range
// where there is such, so that the range is left to containers.
func (t *target) gatewayAddr(req AddressRequest) (netip.Addr, error) {
	if req.Preferred.IsValid() {
		if req.Preferred == t.sub.Gateway {
			return req.Preferred, nil
		}
		return req.Preferred, t.checkWanted(req.Preferred)
	}
	if err := t.ix.network(t.sub.Network).checkAutomatic(); err != nil {
		return netip.Addr{}, err
	}
	for _, p := range t.gatewayPools() {
		if addr, _, err := t.chooseFrom(p, 0); err != nil || addr.IsValid() {
			return addr, err
		}
	}
	return netip.Addr{}, t.exhausted()
}

// gatewayPools are where a gateway is chosen: of a planned subnet in its pools like everything automatic, since
// whatever else there is belongs to others.
func (t *target) gatewayPools() []openPool {
	if n := t.ix.network(t.sub.Network); n != nil && n.Planned {
		return t.pools()
	}
	ranges := []netipx.IPRange{t.sx.usable}
	if !t.at.Pool.IsZero() {
		ranges = outside(t.sx.usable, t.at.Pool.IPRange)
	}
	pools := make([]openPool, 0, len(ranges))
	closed := t.sub.closed()
	for _, r := range ranges {
		pools = append(pools, openPool{ranges: openRanges(r, t.sx.usable, closed)})
	}
	return pools
}

// outside is r without the part that lies in hole, and then that part itself.
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

// leavesRoom refuses a gateway that takes the only address there is for containers.
func (t *target) leavesRoom(gateway netip.Addr) error {
	pools := t.pools()
	if len(pools) == 0 {
		return nil // addresses are taken by name here
	}
	for _, p := range pools {
		for _, r := range p.ranges {
			if r.From() != gateway || r.To() != gateway {
				return nil
			}
		}
	}
	return &refusal{ErrExhausted, fmt.Sprintf("the pool %s is too small for its gateway %s: no address would be left for a container; use a larger subnet or range",
		t.poolText(), gateway)}
}

func (t *target) poolText() string {
	if !t.at.Pool.IsZero() {
		return t.at.Pool.String()
	}
	return t.sub.CIDR.String()
}

// setGateway makes a free address the subnet's gateway.
func (t *target) setGateway(addr netip.Addr, before *Lease) error {
	id, err := t.event(&Event{Verb: GatewaySet, Space: t.sub.Space, Subnet: t.sub.CIDR, Address: addr, Attachment: t.at.ID})
	if err != nil {
		return err
	}
	l := &Lease{ID: id, Address: addr, Kind: Gateway, Host: t.host, Since: eventTime(id)}
	if err := t.setLease(t.sub.ID, addr, before, l); err != nil {
		return err
	}
	sub := *t.sub
	sub.Gateway = addr
	t.sub = &sub
	return t.setSubnet(t.sub)
}
