package compare

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"

	"berth/internal/ipam"
)

// network is one of either side, with what is in its subnets in its own lists.
type network struct {
	ipam.PlannedNetwork
	at int // its place among the others
}

// flatten lays out a network of a plan.
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

// document lays out a document. What names no network is of the one whose subnet has it.
func (c *comparison) document(p, now *ipam.Plan) map[string]*network {
	wanted := map[string]*network{}
	for i := range p.Networks {
		n := &p.Networks[i]
		if n.Name == "" || c.opt.Network != "" && n.Name != c.opt.Network {
			continue
		}
		if wanted[n.Name] != nil {
			c.Add(n.Line, "the network %s is there twice", n.Name)
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

// twice refuses what a network can have once, and is said of twice.
func (c *comparison) twice(n *ipam.PlannedNetwork) {
	said := map[string]bool{}
	say := func(what, name string) {
		if said[what+name] {
			c.Add(n.Line, "the network %s has two %s %s, and can have one", n.Name, what, name)
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

// place gives what names no network to those that have it.
func (c *comparison) place(wanted map[string]*network, from *ipam.PlannedNetwork, now *ipam.Plan) {
	for i := range from.Subnets {
		c.Add(from.Subnets[i].Line, "the subnet %s is of no network; name the network that it is to be in",
			from.Subnets[i].CIDR)
	}
	rest := *from
	rest.Subnets, rest.Static, rest.Pools = nil, nil, nil
	rest.Exclusions, rest.Reservations, rest.Addresses = nil, nil, nil
	if !reflect.DeepEqual(rest, ipam.PlannedNetwork{Space: from.Space, Line: from.Line}) {
		c.Add(from.Line, "the network has no name")
	}
	at := map[netip.Prefix]int{}
	lengths := map[int]bool{}
	for i := range now.Networks {
		if n := &now.Networks[i]; cmp.Or(n.Space, ipam.LocalSpace) == cmp.Or(from.Space, ipam.LocalSpace) {
			for _, sub := range n.Subnets {
				at[sub.CIDR], lengths[sub.CIDR.Bits()] = i, true
			}
		}
	}
	to := func(line int, addr netip.Addr) *network {
		i := -1
		for bits := range lengths {
			if p, err := addr.Prefix(bits); err == nil {
				if one, is := at[p]; is {
					i = one
				}
			}
		}
		if i < 0 {
			c.Add(line, "no network of the space %s has %s; name the network that it belongs to",
				cmp.Or(from.Space, ipam.LocalSpace), addr)
			return &network{}
		}
		name := now.Networks[i].Name
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
