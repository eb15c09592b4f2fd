package elastic

import (
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// recordsOf lists the matching records of elastic addresses in order.
func recordsOf(ix *ledger.Index, is func(*ipam.Elastic) bool) (all []*ipam.Elastic) {
	for _, one := range ix.Elastics() {
		if is(one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Elastic) int { return a.Address.Compare(b.Address) })
	return all
}

// associated lists the addresses that are associated.
func associated(ix *ledger.Index) []*ipam.Elastic {
	return recordsOf(ix, func(one *ipam.Elastic) bool { return one.Association != nil })
}

// associatedWith lists those with a matching association.
func associatedWith(ix *ledger.Index, is func(*ipam.Association) bool) []*ipam.Elastic {
	return recordsOf(ix, func(one *ipam.Elastic) bool { return one.Association != nil && is(one.Association) })
}

// associatedAs lists the addresses associated with an owner on a network, under its own name or another that means it
// there, in order.
func associatedAs(ix *ledger.Index, n *ipam.Network, owner string) []*ipam.Elastic {
	means := func(a *ipam.Association) bool {
		return a.Network == n.ID && (a.Instance == owner || n.Means(a.Instance, owner))
	}
	if manyToOne(n) {
		return associatedWith(ix, means)
	}
	var addrs []netip.Addr
	for _, name := range n.NamesOf(owner) {
		addrs = slices.AppendSeq(addrs, ix.AssociatedAs(n.ID, name))
	}
	return known(ix, addrs, means)
}

// manyToOne reports whether an owner rule maps several names to one owner, so that they cannot be derived from the
// owner.
func manyToOne(n *ipam.Network) bool {
	return slices.ContainsFunc(n.Rules, func(r ipam.OwnerRule) bool {
		return r.Owner != "" && strings.Count(r.Owner, "*") != strings.Count(r.Pattern, "*")
	})
}

// known lists those of some addresses that have a matching association, in order.
func known(ix *ledger.Index, addrs []netip.Addr, is func(*ipam.Association) bool) (all []*ipam.Elastic) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, addr := range slices.Compact(addrs) {
		if one := ix.Elastic(addr); one != nil && one.Association != nil && is(one.Association) {
			all = append(all, one)
		}
	}
	return all
}

// mappedTo returns another elastic address that is mapped to a guest's address, also on another network, because a host
// has each address once. It returns nil if there is none.
func mappedTo(c *ledger.Change, g *guest, but netip.Addr) (*ipam.Elastic, error) {
	addrs := slices.Collect(c.Index().AssociatedAt(g.addr))
	for _, nx := range c.Index().Networks() {
		n := nx.Record()
		if n == nil || !n.Elastic.Maps() {
			continue
		}
		sub := subnetAt(c.Index(), n.ID, g.addr)
		if sub == nil {
			continue
		}
		l, err := c.Lease(sub.ID, g.addr)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, ofHolder(c.Index(), n, l)...)
	}
	for _, one := range known(c.Index(), addrs, func(*ipam.Association) bool { return true }) {
		if one.Address == but {
			continue
		}
		now, there, err := mapped(c, one.Association)
		if err != nil {
			return nil, err
		}
		if there && now.addr == g.addr {
			return one, nil
		}
	}
	return nil, nil
}

// ofHolder lists the elastic addresses associated with the holder of an address, or with the owner for whom it is
// reserved.
func ofHolder(ix *ledger.Index, n *ipam.Network, l *ipam.Lease) (addrs []netip.Addr) {
	if l == nil {
		return nil
	}
	if r := l.Reserved(); r != nil {
		for _, one := range associatedAs(ix, n, r.Owner) {
			addrs = append(addrs, one.Address)
		}
	}
	for owner := range n.Owners(l.Name) {
		addrs = slices.AppendSeq(addrs, ix.AssociatedAs(n.ID, owner))
	}
	if l.MAC == (ipam.MAC{}) {
		return addrs
	}
	return slices.AppendSeq(addrs, ix.AssociatedAs(n.ID, l.MAC.String()))
}

// subnetAt returns the subnet of a network that contains an address, or nil.
func subnetAt(ix *ledger.Index, network ipam.ID, addr netip.Addr) *ipam.Subnet {
	nx := ix.NetworkIndex(network)
	if nx == nil {
		return nil
	}
	for _, id := range nx.Subnets() {
		if sx := ix.Subnet(id); sx != nil && sx.Record().CIDR.Contains(addr) {
			return sx.Record()
		}
	}
	return nil
}

// hasReserved reports whether an owner has a reservation on a network that is not replaced.
func hasReserved(c *ledger.Change, n *ipam.Network, owner string) (bool, error) {
	nx := c.Index().NetworkIndex(n.ID)
	if nx == nil {
		return false, nil
	}
	for _, id := range nx.Subnets() {
		sx := c.Index().Subnet(id)
		if sx == nil {
			continue
		}
		for _, addr := range slices.Collect(sx.ByOwner().Of(owner)) {
			l, err := c.Lease(id, addr)
			if err != nil {
				return false, err
			}
			if r := l.Reserved(); r != nil && r.Owner == owner && !r.Replaced {
				return true, nil
			}
		}
	}
	return false, nil
}
