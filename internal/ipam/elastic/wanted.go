package elastic

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// lead is where an elastic address leads: the mapping that this host's edge is to have for it.
type lead struct {
	ipam.EdgeMapping
	here bool // it is to be mapped on this host, unless another address leads to the guest already
}

// places is what stands in the way of addresses, the same for all of them.
type places struct {
	c       *ledger.Change
	foreign []ipam.Range
}

func placesOf(c *ledger.Change) places { return places{c, foreignRanges(c)} }

// lead works out of the records where an address leads; false where it leads nowhere. The outgoing half of a mapping is
// there as long as the guest's address is reserved, so that not one packet leaves with another source; the incoming one
// only while the container runs here.
func (p places) lead(addr netip.Addr) (l lead, there bool, err error) {
	one := p.c.Index().Elastic(addr)
	if p.c.NoElastic() || one == nil || one.Association == nil {
		return lead{}, false, nil
	}
	a := one.Association
	g, there, err := mapped(p.c, a)
	if err != nil || !there {
		return lead{}, false, err
	}
	l = lead{EdgeMapping: ipam.EdgeMapping{Elastic: addr, Guest: g.addr, Subnet: g.sub.CIDR,
		EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID}}
	l.here = (g.host == "" || g.host == p.c.Host()) && stillIts(p.c, one, &g) &&
		!slices.ContainsFunc(p.foreign, func(r ipam.Range) bool { return r.Contains(addr) })
	return l, true, nil
}

// foreignRanges are those of other hosts of the cluster, whose addresses lead here for nobody (CS-15).
func foreignRanges(c *ledger.Change) (all []ipam.Range) {
	if c.Member() == nil {
		return nil
	}
	for _, r := range c.Index().ElasticRanges() {
		if r.Host != "" && r.Host != c.Host() {
			all = append(all, r.Range)
		}
	}
	return all
}

// edgeRanges are the ranges of which this host's edge may have addresses, in order.
func edgeRanges(c *ledger.Change) (all []ipam.EdgeRange) {
	if c.NoElastic() {
		return nil
	}
	for _, r := range append(rangesOf(c.Index(), ""), rangesOf(c.Index(), c.Host())...) {
		all = append(all, ipam.EdgeRange{Range: r.Range, Announce: r.Announce, TTL: r.TTL, OnCut: r.OnCut})
	}
	slices.SortFunc(all, func(a, b ipam.EdgeRange) int { return a.Range.From().Compare(b.Range.From()) })
	return all
}

// stillIts tells whether the container that an address leads to is one of the address's account, also after accounts,
// or what names mean on its network, have changed (CS-14).
func stillIts(c *ledger.Change, one *ipam.Elastic, g *guest) bool {
	return whoseNow(c, one, g) == one.Account
}

// whoseNow is the account of the container that an address leads to. One that does not run is known by its owner's
// names alone, which need not tell whose it is: the address's account, unless another claims them.
func whoseNow(c *ledger.Change, one *ipam.Elastic, g *guest) string {
	account := claimedBy(c.Index(), g.namesOf(one.Association.Instance))
	if g.name == "" && account == ipam.DefaultAccount {
		return one.Account
	}
	return account
}
