package elastic

import (
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// recordsOf are the records of elastic addresses of a kind, in order.
func recordsOf(ix *ledger.Index, is func(*ipam.Elastic) bool) (all []*ipam.Elastic) {
	for _, one := range ix.Elastics() {
		if is(one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Elastic) int { return a.Address.Compare(b.Address) })
	return all
}

// associated are those of the addresses that are associated.
func associated(ix *ledger.Index) []*ipam.Elastic {
	return recordsOf(ix, func(one *ipam.Elastic) bool { return one.Association != nil })
}

// associatedWith are those whose association is of a kind.
func associatedWith(ix *ledger.Index, is func(*ipam.Association) bool) []*ipam.Elastic {
	return recordsOf(ix, func(one *ipam.Elastic) bool { return one.Association != nil && is(one.Association) })
}

// associatedAs are the addresses that are associated with an owner on a network, by its own name or by one
// that means it there, in order.
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

// manyToOne tells whether a rule makes one owner of several names, so that these cannot be worked out of the
// owner.
func manyToOne(n *ipam.Network) bool {
	return slices.ContainsFunc(n.Rules, func(r ipam.OwnerRule) bool {
		return r.Owner != "" && strings.Count(r.Owner, "*") != strings.Count(r.Pattern, "*")
	})
}

// known are those of some addresses whose association is of a kind, in order.
func known(ix *ledger.Index, addrs []netip.Addr, is func(*ipam.Association) bool) (all []*ipam.Elastic) {
	slices.SortFunc(addrs, netip.Addr.Compare)
	for _, addr := range slices.Compact(addrs) {
		if one := ix.Elastic(addr); one != nil && one.Association != nil && is(one.Association) {
			all = append(all, one)
		}
	}
	return all
}

// mappedTo is another elastic address that leads to a guest's address, be it on another network: a host has
// each address once. nil: none does.
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

// ofHolder are the elastic addresses that are associated with whoever has an address, or for whom it is
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

// subnetAt is the subnet of a network in which an address lies; nil where none is.
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

// hasReserved tells whether an address of a network is reserved for an owner, and not replaced.
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
