package allocator

import (
	"errors"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// attachPlanned attaches to a subnet of a network that the request names (`--ipam-opt network=NAME`).
func attachPlanned(c *ledger.Change, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	SinceRenamed(c.Index(), &req)
	n, err := c.NetworkOf(req.Network, nil)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	p := &ledger.NetworkPlan{Change: c, N: n}
	if req.Swarm && p.N.Space == ipam.LocalSpace {
		return ipam.PoolGrant{},
			ipam.Refuse(ipam.ErrInvalid, "network %s is in the space %s, which belongs to one host",
				p.N.Name, p.N.Space).Advise(ipam.DoPlanInSpace, ipam.GlobalSpace)
	}
	if req.Space != "" && req.Space != p.N.Space && !req.Swarm {
		return ipam.PoolGrant{},
			ipam.Refuse(ipam.ErrInvalid, "network %s is in the space %s, not in %s; leave out --ipam-opt "+
				"space=%s", p.N.Name, p.N.Space, req.Space, req.Space)
	}
	sub, err := pickSubnet(p, &req)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	if g := req.Gateway; g.IsValid() && !sub.CIDR.Contains(g) {
		return ipam.PoolGrant{},
			ipam.Refuse(ipam.ErrInvalid, "the gateway %s is outside the subnet %s of network %s", g, sub.CIDR,
				p.N.Name)
	}
	if err := offDocker(c, req.Docker, sub.CIDR); err != nil {
		return ipam.PoolGrant{}, err
	}
	if !req.CIDR.IsValid() {
		if err := offRoutes(p, sub, req.Avoid); err != nil {
			return ipam.PoolGrant{}, err
		}
	}
	grant, err := join(c, req, sub)
	if err == nil && !grant.Gateway.IsValid() && sub.Gateway.IsValid() {
		grant.Gateway = netip.PrefixFrom(sub.Gateway, sub.CIDR.Bits())
	}
	return grant, err
}

// SinceRenamed replaces the old names in a swarm manager's repeated request by the current ones. The request holds the
// names from the network's creation.
func SinceRenamed(ix *ledger.Index, req *ipam.PoolRequest) {
	req.Asked.Network, req.Asked.Pool = req.Network, req.Pool
	if !req.Swarm || !req.CIDR.IsValid() {
		return
	}
	for _, at := range ix.Attachments() {
		if at.Swarm && at.CIDR == req.CIDR && at.AskedNetwork == req.Network && at.AskedPool == req.Pool &&
			ix.Subnet(at.Subnet) != nil {
			req.Network, req.Pool = ix.Subnet(at.Subnet).Record().Network.String(), at.Named
			return
		}
	}
}

// pickSubnet returns the subnet for a Docker network: the one with the given CIDR, or the first suitable one. A
// suitable subnet is of the right family, has the named pool, and has no Docker network of this host.
func pickSubnet(p *ledger.NetworkPlan, req *ipam.PoolRequest) (*ipam.Subnet, error) {
	all, err := p.Subnets()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, p.NoSubnet()
	}
	if req.CIDR.IsValid() {
		i := slices.IndexFunc(all, func(sub *ipam.Subnet) bool { return sub.CIDR == req.CIDR })
		if i < 0 {
			return nil, ipam.Refuse(ipam.ErrInvalid, "network %s has no subnet %s; it has %s", p.N.Name, req.CIDR,
				p.SubnetList())
		}
		return all[i], nil
	}
	taken := 0
	var chosen *ipam.Subnet
	for _, sub := range all {
		if sub.CIDR.Addr().Is6() != req.IPv6 {
			continue
		}
		here, err := attachedHere(p, sub)
		if err != nil {
			return nil, err
		}
		if here {
			taken++
			continue
		}
		if chosen == nil || req.Pool != "" && !chosen.HasPool(req.Pool) && sub.HasPool(req.Pool) {
			chosen = sub
		}
	}
	if chosen != nil {
		return chosen, nil
	}
	return nil, noneLeft(p, req.IPv6, taken)
}

// attachedHere reports whether a Docker network of this host is on the subnet.
func attachedHere(p *ledger.NetworkPlan, sub *ipam.Subnet) (bool, error) {
	for _, id := range sub.Attachments {
		at, err := p.Attachment(id)
		if err != nil && !errors.Is(err, ipam.ErrNotFound) {
			return false, err
		}
		if err == nil && at.Host == p.Host() {
			return true, nil
		}
	}
	return false, nil
}

// offRoutes refuses a subnet that overlaps a route of the host. The engine would keep it and request another one
// without end. It does not check a subnet that the user names against the routes.
func offRoutes(p *ledger.NetworkPlan, sub *ipam.Subnet, routes []netip.Prefix) error {
	for _, route := range routes {
		if route.Overlaps(sub.CIDR) {
			return ipam.Refuse(ipam.ErrOverlap,
				"the subnet %s of network %s overlaps the route %s of this host, and the engine "+
					"takes it only where it is named: add --subnet %s",
				sub.CIDR, p.N.Name, route, sub.CIDR)
		}
	}
	return nil
}

func noneLeft(p *ledger.NetworkPlan, ipv6 bool, taken int) error {
	family := "IPv4"
	if ipv6 {
		family = "IPv6"
	}
	if taken == 0 {
		return ipam.Refuse(ipam.ErrNotFound, "network %s has no %s subnet; it has %s", p.N.Name, family, p.SubnetList())
	}
	return ipam.Refuse(ipam.ErrInUse,
		"each %s subnet of network %s has a Docker network on this host already; share one "+
			"by naming it with --subnet",
		family, p.N.Name).OrAdvise(ipam.DoAddSubnetTo, p.N.Name)
}

// joinPlan refuses a request that contradicts the planned network.
func joinPlan(c *ledger.Change, req ipam.PoolRequest, sub *ipam.Subnet, n *ipam.Network) error {
	_, changed, err := apply(&req, n)
	if err != nil {
		return err
	}
	if changed {
		return ipam.Refuse(ipam.ErrInvalid,
			"network %s is planned, and its tags, sticky and quarantine are not for a "+
				"Docker network to change", n.Name).Advise(ipam.DoModifyNetwork, n.Name)
	}
	if req.NoGateway && sub.Gateway.IsValid() {
		return ipam.Refuse(ipam.ErrInvalid,
			"the subnet %s of network %s has the gateway %s; leave out --ipam-opt gateway=none",
			sub.CIDR, n.Name, sub.Gateway)
	}
	t := &Target{Change: c, At: &ipam.Attachment{Pool: req.Range}, Sub: sub, Sx: c.Index().Subnet(sub.ID),
		Pool: req.Pool,
		Kept: KeptOf(c, sub)}
	if len(t.Pools()) > 0 || req.Pool == "" && (req.Range.IsZero() || len(sub.Pools) == 0) {
		return nil
	}
	if req.Pool != "" {
		return ipam.Refuse(ipam.ErrNotFound, "the subnet %s of network %s has no pool named %s", sub.CIDR,
			n.Name, req.Pool).Advise(ipam.DoListPools, n.Name)
	}
	return ipam.Refuse(ipam.ErrInvalid,
		"the range %s has no address of the pools of the subnet %s in network %s", req.Range,
		sub.CIDR, n.Name).Advise(ipam.DoListPools, n.Name)
}
