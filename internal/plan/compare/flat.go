package compare

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"berth/internal/ipam"
)

// network is a network of either side, with the contents of its subnets in lists of its own.
type network struct {
	ipam.PlannedNetwork
	at int // its position
}

// flatten returns a network of a plan.
func flatten(p *ipam.PlannedNetwork, at int) *network {
	n := &network{*p, at}
	n.Static, n.Pools, n.Exclusions = slices.Clone(p.Static), slices.Clone(p.Pools), slices.Clone(p.Exclusions)
	n.Reservations, n.Addresses = slices.Clone(p.Reservations), slices.Clone(p.Addresses)
	n.Subnets = slices.Clone(p.Subnets)
	for i := range n.Subnets {
		sub := &n.Subnets[i]
		n.Static = append(n.Static, sub.Static...)
		n.Pools = append(n.Pools, sub.Pools...)
		n.Exclusions = append(n.Exclusions, sub.Exclusions...)
		sub.Static, sub.Pools, sub.Exclusions = nil, nil, nil
	}
	return n
}

// document returns the networks of a document. A thing without a network belongs to the network of its subnet.
func (c *comparison) document(p, now *ipam.Plan) map[string]*network {
	wanted := map[string]*network{}
	for i := range p.Networks {
		n := &p.Networks[i]
		if n.Name == "" || c.opt.Network != "" && n.Name != c.opt.Network {
			continue
		}
		if other := wanted[n.Name]; other != nil {
			c.again(n, other)
			continue
		}
		c.twice(n)
		wanted[n.Name] = flatten(n, i)
	}
	for i := range p.Networks {
		if n := &p.Networks[i]; n.Name == "" {
			c.place(wanted, n, now)
		}
	}
	return wanted
}

// again refuses a network whose name another one of the document has. In a table of NetBox, each VRF is a space.
func (c *comparison) again(n *ipam.PlannedNetwork, other *network) {
	space, before := cmp.Or(n.Space, ipam.LocalSpace), cmp.Or(other.Space, ipam.LocalSpace)
	if space == before {
		c.Add(n.Line, "the network %s appears twice", n.Name)
		return
	}
	where := ""
	if other.Line > 0 {
		where = fmt.Sprintf(" on line %d", other.Line)
	}
	c.Add(n.Line, "the network %s is in the space (VRF) %s here, but in %s%s; a network has only one space: add "+
		"a column network that names a separate network for each space", n.Name, space, before, where)
}

// twice refuses a network that sets something twice.
func (c *comparison) twice(n *ipam.PlannedNetwork) {
	said := map[string]bool{}
	say := func(what, name string) {
		if said[what+name] {
			c.Add(n.Line, "the network %s has two %s %s, and can have only one", n.Name, what, name)
		}
		said[what+name] = true
	}
	for _, l := range n.Links {
		say("links on the host", l.Host)
	}
	for _, r := range n.OwnerRules {
		say("rules for the owners", r.Pattern)
	}
}

// place moves things without a network to the networks of their subnets.
func (c *comparison) place(wanted map[string]*network, from *ipam.PlannedNetwork, now *ipam.Plan) {
	for i := range from.Subnets {
		c.Add(from.Subnets[i].Line, "the subnet %s belongs to no network; name its network",
			from.Subnets[i].CIDR)
	}
	rest := *from
	rest.Subnets, rest.Static, rest.Pools = nil, nil, nil
	rest.Exclusions, rest.Reservations, rest.Addresses = nil, nil, nil
	if !reflect.DeepEqual(rest, ipam.PlannedNetwork{Space: from.Space, Line: from.Line}) {
		c.Add(from.Line, "the network has no name")
	}
	subnets := map[netip.Prefix]string{} // to their networks
	lengths := map[int]bool{}
	for i := range now.Networks {
		if n := &now.Networks[i]; cmp.Or(n.Space, ipam.LocalSpace) == cmp.Or(from.Space, ipam.LocalSpace) {
			for _, sub := range n.Subnets {
				subnets[sub.CIDR], lengths[sub.CIDR.Bits()] = n.Name, true
			}
		}
	}
	shortest := slices.Sorted(maps.Keys(lengths))
	to := func(line int, addr netip.Addr) *network {
		name := ""
		for _, bits := range shortest {
			if p, err := addr.Prefix(bits); err == nil {
				name = cmp.Or(name, subnets[p])
			}
		}
		if name == "" {
			c.Add(line, "no network of the space %s contains %s; name the network",
				cmp.Or(from.Space, ipam.LocalSpace), addr)
			return &network{}
		}
		if wanted[name] == nil {
			wanted[name] = &network{ipam.PlannedNetwork{Name: name}, len(wanted)}
		}
		return wanted[name]
	}
	for _, one := range from.Pools {
		n := to(one.Line, one.Range.From())
		n.Pools = append(n.Pools, one)
	}
	for _, one := range from.Exclusions {
		n := to(one.Line, one.Range.From())
		n.Exclusions = append(n.Exclusions, one)
	}
	for _, one := range from.Static {
		n := to(one.Line, one.Range.From())
		n.Static = append(n.Static, one)
	}
	for _, one := range from.Reservations {
		n := to(one.Line, one.Address)
		n.Reservations = append(n.Reservations, one)
	}
	for _, one := range from.Addresses {
		n := to(one.Line, one.Address)
		n.Addresses = append(n.Addresses, one)
	}
}
