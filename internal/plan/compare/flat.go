package compare

import (
	"cmp"
	"net/netip"
	"reflect"

	"berth/internal/ipam"
)

// network is one of either side, with what is in its subnets laid out by kinds.
type network struct {
	at           int                 // its place among the others
	fields       ipam.PlannedNetwork // without what is in it
	subnets      []ipam.PlannedSubnet
	static       []ipam.PlannedBand
	pools        []ipam.PlannedPool
	exclusions   []ipam.PlannedExclusion
	reservations []ipam.PlannedReservation
	addresses    []ipam.PlannedAddress
	fresh        bool // it is made
}

// add lays out what a network of a plan has.
func (n *network) add(p *ipam.PlannedNetwork) {
	n.static = append(n.static, p.Static...)
	n.pools = append(n.pools, p.Pools...)
	n.exclusions = append(n.exclusions, p.Exclusions...)
	n.reservations = append(n.reservations, p.Reservations...)
	n.addresses = append(n.addresses, p.Addresses...)
	for i := range p.Subnets {
		sub := p.Subnets[i]
		n.static = append(n.static, sub.Static...)
		n.pools = append(n.pools, sub.Pools...)
		n.exclusions = append(n.exclusions, sub.Exclusions...)
		sub.Static, sub.Pools, sub.Exclusions = nil, nil, nil
		n.subnets = append(n.subnets, sub)
	}
}

// begun is a network with the fields of p, and nothing in it.
func begun(at int, p *ipam.PlannedNetwork) *network {
	n := &network{at: at, fields: *p}
	n.fields.Subnets, n.fields.Static, n.fields.Pools, n.fields.Exclusions = nil, nil, nil, nil
	n.fields.Reservations, n.fields.Addresses = nil, nil
	return n
}

func flatten(all []ipam.PlannedNetwork) map[string]*network {
	flat := map[string]*network{}
	for i := range all {
		n := begun(i, &all[i])
		n.add(&all[i])
		flat[n.fields.Name] = n
	}
	return flat
}

// document lays out a document. What names no network is of the one whose subnet has it.
func (c *comparison) document(p, now *ipam.Plan) map[string]*network {
	wanted := map[string]*network{}
	for i := range p.Networks {
		n := &p.Networks[i]
		if n.Name == "" {
			continue
		}
		if c.opt.Network != "" && n.Name != c.opt.Network {
			continue
		}
		if wanted[n.Name] != nil {
			c.Add(n.Line, "the network %s is there twice", n.Name)
			continue
		}
		c.twice(n)
		wanted[n.Name] = begun(i, n)
		wanted[n.Name].add(n)
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
	nameless := begun(0, &ipam.PlannedNetwork{Space: from.Space, Line: from.Line})
	if !reflect.DeepEqual(nameless, begun(0, from)) {
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
			wanted[name] = &network{at: len(wanted), fields: ipam.PlannedNetwork{Name: name}}
		}
		return wanted[name]
	}
	for _, one := range from.Pools {
		n := to(one.Line, one.Range.From())
		n.pools = append(n.pools, one)
	}
	for _, one := range from.Exclusions {
		n := to(one.Line, one.Range.From())
		n.exclusions = append(n.exclusions, one)
	}
	for _, one := range from.Static {
		n := to(one.Line, one.Range.From())
		n.static = append(n.static, one)
	}
	for _, one := range from.Reservations {
		n := to(one.Line, one.Address)
		n.reservations = append(n.reservations, one)
	}
	for _, one := range from.Addresses {
		n := to(one.Line, one.Address)
		n.addresses = append(n.addresses, one)
	}
}
