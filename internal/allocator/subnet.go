package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// attachPlanned attaches to a subnet of a network that the request names (`--ipam-opt network=NAME`).
func attachPlanned(c *ledger.Change, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	SinceRenamed(c.Index(), &req)
	n, err := c.NetworkAsked(req.Network)
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
			return ipam.Refuse(ipam.ErrOverlap, "the subnet %s of network %s overlaps the route %s of this host, and "+
				"the engine accepts it only if you name it: add --subnet %s", sub.CIDR, p.N.Name, route, sub.CIDR)
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
		without := "create the Docker network with --ipv4=false (engine 28 or newer)"
		if ipv6 {
			without = "create the Docker network without --ipv6"
		}
		return ipam.Refuse(ipam.ErrNotFound, "network %s has no %s subnet, but the engine requests one; it has %s; %s",
			p.N.Name, family, p.SubnetList(), without).OrAdvise(ipam.DoAddSubnetTo, p.N.Name)
	}
	return ipam.Refuse(ipam.ErrInUse,
		"each %s subnet of network %s has a Docker network on this host already; share a "+
			"subnet by naming it with --subnet",
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
			"network %s is planned, so a Docker network cannot change its tags, sticky or quarantine; leave them out",
			n.Name).OrAdvise(ipam.DoModifyNetwork, n.Name)
	}
	if req.NoGateway && sub.Gateway.IsValid() {
		return ipam.Refuse(ipam.ErrInvalid,
			"the subnet %s of network %s has the gateway %s; leave out --ipam-opt gateway=none",
			sub.CIDR, n.Name, sub.Gateway)
	}
	t := NewTarget(c, &ipam.Attachment{Pool: req.Range}, sub, req.Pool)
	if len(t.Pools()) > 0 || req.Pool == "" && (req.Range.IsZero() || len(sub.Pools) == 0) {
		return nil
	}
	if req.Pool != "" {
		where := fmt.Sprintf("the subnet %s of network %s", sub.CIDR, n.Name)
		return ipam.NoPoolNamed(where, req.Pool).Advise(ipam.DoListPools, n.Name)
	}
	return ipam.Refuse(ipam.ErrInvalid, "the range %s is outside the pools of the subnet %s in network %s", req.Range,
		sub.CIDR, n.Name).Advise(ipam.DoListPools, n.Name)
}

// carve chooses the lowest free block of the first base that has one, and avoids the host's routes. If a subnet
// overlaps a route, the engine keeps it and asks again. Each request is an attachment, so the engine gets another
// subnet every time, and finally an error.
func carve(s *ledger.Ledger, c *ledger.Change, req ipam.PoolRequest) (netip.Prefix, error) {
	blocks := c.Index().Blocks(req.Space)
	var searched []ipam.Base
	for _, base := range s.Bases() {
		if base.Prefix.Addr().Is6() != req.IPv6 {
			continue
		}
		if req.Bits != 0 {
			base.Bits = req.Bits
		}
		if base.Bits < base.Prefix.Bits() || base.Bits > base.Prefix.Addr().BitLen() {
			continue
		}
		searched = append(searched, base)
		if p, err := CarveFrom(c, blocks, base, req); err != nil {
			return p, err
		} else if p.IsValid() {
			return p, nil
		}
	}
	return netip.Prefix{}, nothingToCarve(s, req, searched, blocks)
}

// CarveFrom proposes blocks of one base until the records confirm that one is free. It returns the zero prefix if there
// is none.
func CarveFrom(c *ledger.Change, blocks *alloc.Blocks, base ipam.Base, req ipam.PoolRequest) (netip.Prefix, error) {
	avoid := req.Avoid
	for {
		p, ok := blocks.Carve(base.Prefix, base.Bits, avoid)
		if !ok {
			return netip.Prefix{}, nil
		}
		sub, err := c.FindSubnet(req.Space, p)
		if err == nil && sub == nil {
			return p, nil
		}
		if err != nil && !errors.Is(err, ipam.ErrOverlap) {
			return netip.Prefix{}, err
		}
		avoid = append(slices.Clip(avoid), p)
	}
}

// nothingToCarve returns an error with the searched bases and what is in the way.
func nothingToCarve(s *ledger.Ledger, req ipam.PoolRequest, searched []ipam.Base, blocks *alloc.Blocks) error {
	family := "IPv4"
	if req.IPv6 {
		family = "IPv6"
	}
	if len(searched) == 0 {
		var all []string
		for _, base := range s.Bases() {
			all = append(all, base.String())
		}
		return ipam.Refuse(ipam.ErrExhausted,
			"no base prefix has room for an %s subnet of size /%d; the bases are %s (berth serve --default-pool); "+
				"name a subnet with --subnet",
			family, req.Bits, strings.Join(all, ", "))
	}
	var parts []string
	for _, base := range searched {
		routes := slices.DeleteFunc(slices.Clone(req.Avoid),
			func(p netip.Prefix) bool { return !p.Overlaps(base.Prefix) })
		parts = append(parts, fmt.Sprintf("%s (in the way: %s of space %s, %s)", base,
			ipam.Summarize("subnet", blocks.In(base.Prefix)), req.Space, ipam.Summarize("host route", routes)))
	}
	return ipam.Refuse(ipam.ErrExhausted,
		"no %s subnet is free: searched %s; remove networks, name a subnet with --subnet, or give more bases with "+
			"berth serve --default-pool",
		family, strings.Join(parts, "; "))
}

// WholeRange returns all addresses of a prefix as a range.
func WholeRange(p netip.Prefix) ipam.Range { return ipam.Range{IPRange: netipx.RangeOfPrefix(p)} }

// offDocker refuses a subnet that overlaps one of Docker's own.
func offDocker(c *ledger.Change, docker []ipam.DockerSubnet, cidr netip.Prefix) error {
	for _, d := range docker {
		if !d.CIDR.Overlaps(cidr) {
			continue
		}
		if d.Unsure {
			held, err := holdsHere(c, d.CIDR)
			if err != nil {
				return err
			}
			if held { // the overlap check of Berth's own subnets decides
				continue
			}
		}
		return overlapError(&d, cidr)
	}
	return nil
}

func overlapError(d *ipam.DockerSubnet, cidr netip.Prefix) error {
	whose, todo := "Docker's network "+d.Network, "choose another subnet; `docker network ls` lists Docker's networks"
	switch {
	case d.Network == "":
		whose = "Docker's bridge " + d.Link
		todo = fmt.Sprintf("choose another subnet or, if `docker network ls` does not list that id, remove the "+
			"leftover bridge with `ip link delete %s`", d.Link)
	case d.Link != "":
		whose += fmt.Sprintf(" (bridge %s)", d.Link)
	}
	return ipam.Refuse(ipam.ErrOverlap, "the subnet %s overlaps %s, which %s has; %s", cidr, d.CIDR, whose, todo)
}

// holdsHere reports whether a Docker network of this host is on a subnet of exactly this CIDR, in any space.
func holdsHere(c *ledger.Change, cidr netip.Prefix) (bool, error) {
	for id, at := range c.Index().Attachments() {
		if at.CIDR != cidr || at.Host != c.Host() {
			continue
		}
		at, err := c.Attachment(id)
		if errors.Is(err, ipam.ErrNotFound) {
			continue
		}
		if err != nil || !at.Ended {
			return err == nil, err
		}
	}
	return false, nil
}

// LessHeld omits the uncertain subnets that lie on a subnet of this store.
func LessHeld(s *ledger.Ledger, docker []ipam.DockerSubnet) []ipam.DockerSubnet {
	return ledger.Ask(s, func(ix *ledger.Index) []ipam.DockerSubnet {
		return slices.DeleteFunc(slices.Clone(docker), func(d ipam.DockerSubnet) bool {
			if !d.Unsure {
				return false
			}
			for _, at := range ix.Attachments() {
				if at.CIDR == d.CIDR && at.Host == s.Host() && !at.Ended {
					return true
				}
			}
			return false
		})
	})
}
