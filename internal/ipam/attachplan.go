package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// attachPlanned attaches to a subnet of a network that the request names (`--ipam-opt network=NAME`).
func (c *change) attachPlanned(req PoolRequest) (PoolGrant, error) {
	c.sinceRenamed(&req)
	p, err := c.plan(req.Network)
	if err != nil {
		return PoolGrant{}, err
	}
	if req.Swarm && p.n.Space == LocalSpace {
		return PoolGrant{}, &refusal{ErrInvalid, fmt.Sprintf("network %s is in the space %s, which belongs to one host; plan one for a swarm with `berth network create --space %s`", p.n.Name, p.n.Space, GlobalSpace)}
	}
	if req.Space != "" && req.Space != p.n.Space && !req.Swarm {
		return PoolGrant{}, &refusal{ErrInvalid, fmt.Sprintf("network %s is in the space %s, not in %s; leave out --ipam-opt space=%s", p.n.Name, p.n.Space, req.Space, req.Space)}
	}
	sub, err := p.choose(&req)
	if err != nil {
		return PoolGrant{}, err
	}
	if g := req.Gateway; g.IsValid() && !sub.CIDR.Contains(g) {
		return PoolGrant{}, &refusal{ErrInvalid, fmt.Sprintf("the gateway %s is outside the subnet %s of network %s", g, sub.CIDR, p.n.Name)}
	}
	grant, err := c.join(req, sub)
	if err == nil && !grant.Gateway.IsValid() && sub.Gateway.IsValid() {
		grant.Gateway = netip.PrefixFrom(sub.Gateway, sub.CIDR.Bits())
	}
	return grant, err
}

// sinceRenamed puts today's names into a swarm manager's replay, which says those of the network's creation.
func (c *change) sinceRenamed(req *PoolRequest) {
	req.asked.network, req.asked.pool = req.Network, req.Pool
	if !req.Swarm || !req.CIDR.IsValid() {
		return
	}
	for _, known := range c.ix.attachments {
		at := known.value
		if at.Swarm && at.CIDR == req.CIDR && at.AskedNetwork == req.Network && at.AskedPool == req.Pool && c.ix.subnets[at.Subnet] != nil {
			req.Network, req.Pool = c.ix.subnets[at.Subnet].record.value.Network.String(), at.Named
			return
		}
	}
}

// choose is the subnet that a Docker network is attached to: the one of the CIDR given, or the first of the family that has
// no Docker network on this host, of those that have the pool that is named.
func (p *plan) choose(req *PoolRequest) (*Subnet, error) {
	all, err := p.subnets()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, p.noSubnet()
	}
	if req.CIDR.IsValid() {
		i := slices.IndexFunc(all, func(sub *Subnet) bool { return sub.CIDR == req.CIDR })
		if i < 0 {
			return nil, &refusal{ErrInvalid, fmt.Sprintf("network %s has no subnet %s; it has %s", p.n.Name, req.CIDR, p.subnetList())}
		}
		return all[i], nil
	}
	taken := 0
	var chosen *Subnet
	for _, sub := range all {
		if sub.CIDR.Addr().Is6() != req.IPv6 {
			continue
		}
		here, err := p.attachedHere(sub)
		if err != nil {
			return nil, err
		}
		if here {
			taken++
			continue
		}
		if chosen == nil || req.Pool != "" && !chosen.hasPool(req.Pool) && sub.hasPool(req.Pool) {
			chosen = sub
		}
	}
	if chosen != nil {
		return chosen, p.offRoutes(chosen, req.Avoid)
	}
	return nil, p.noneLeft(req.IPv6, taken)
}

// attachedHere tells whether a Docker network of this host is on the subnet.
func (p *plan) attachedHere(sub *Subnet) (bool, error) {
	for _, id := range sub.Attachments {
		at, err := p.attachment(id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return false, err
		}
		if err == nil && at.Host == p.host {
			return true, nil
		}
	}
	return false, nil
}

// offRoutes refuses a subnet that overlaps a route of the host. The engine would keep it, and ask for another one without
// end; a subnet that the user names is not checked against the routes.
func (p *plan) offRoutes(sub *Subnet, routes []netip.Prefix) error {
	for _, route := range routes {
		if route.Overlaps(sub.CIDR) {
			return &refusal{ErrOverlap, fmt.Sprintf("the subnet %s of network %s overlaps the route %s of this host, and the engine takes it only where it is named: add --subnet %s",
				sub.CIDR, p.n.Name, route, sub.CIDR)}
		}
	}
	return nil
}

func (p *plan) noneLeft(ipv6 bool, taken int) error {
	family := "IPv4"
	if ipv6 {
		family = "IPv6"
	}
	if taken == 0 {
		return &refusal{ErrNotFound, fmt.Sprintf("network %s has no %s subnet; it has %s", p.n.Name, family, p.subnetList())}
	}
	return &refusal{ErrInUse, fmt.Sprintf("each %s subnet of network %s has a Docker network on this host already; add a subnet with `berth subnet add %s`, or share one by naming it with --subnet",
		family, p.n.Name, p.n.Name)}
}

// joinPlan holds a request to what is planned of the network: what it asks for must be there.
func (c *change) joinPlan(req PoolRequest, sub *Subnet, n *Network) error {
	same := *n
	if req.apply(&same) {
		return &refusal{ErrInvalid, fmt.Sprintf("network %s is planned, and its tags, sticky and quarantine are not for a Docker network to change; use `berth network modify %s`", n.Name, n.Name)}
	}
	if req.NoGateway && sub.Gateway.IsValid() {
		return &refusal{ErrInvalid, fmt.Sprintf("the subnet %s of network %s has the gateway %s; leave out --ipam-opt gateway=none", sub.CIDR, n.Name, sub.Gateway)}
	}
	t := &target{change: c, at: &Attachment{Pool: req.Range}, sub: sub, sx: c.ix.subnets[sub.ID], pool: req.Pool}
	if len(t.pools()) > 0 || req.Pool == "" && (req.Range.IsZero() || len(sub.Pools) == 0) {
		return nil
	}
	if req.Pool != "" {
		return &refusal{ErrNotFound, fmt.Sprintf("the subnet %s of network %s has no pool named %s; `berth pool ls %s` lists its pools", sub.CIDR, n.Name, req.Pool, n.Name)}
	}
	return &refusal{ErrInvalid, fmt.Sprintf("the range %s has no address of the pools of the subnet %s in network %s; `berth pool ls %s` lists its pools", req.Range, sub.CIDR, n.Name, n.Name)}
}
