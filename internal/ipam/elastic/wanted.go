package elastic

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// wanted is what the edge of this host is to have.
type wanted struct {
	ranges   []ipam.EdgeRange
	mappings map[netip.Addr]ipam.EdgeMapping
}

// wantedHere works it out of the records. The outgoing half of a mapping is there as long as the guest's address is
// reserved, so that not one packet leaves with another source; the incoming one only while the container runs here.
func wantedHere(c *ledger.Change) (w wanted, err error) {
	w.mappings = map[netip.Addr]ipam.EdgeMapping{}
	if c.NoElastic() {
		return w, nil
	}
	for _, r := range append(rangesOf(c.Index(), ""), rangesOf(c.Index(), c.Host())...) {
		w.ranges = append(w.ranges, ipam.EdgeRange{Range: r.Range, Announce: r.Announce, TTL: r.TTL, OnCut: r.OnCut})
	}
	slices.SortFunc(w.ranges, func(a, b ipam.EdgeRange) int { return a.Range.From().Compare(b.Range.From()) })
	all := associatedWith(c.Index(), func(*ipam.Association) bool { return true })
	slices.SortFunc(all, func(a, b *ipam.Elastic) int { return cmp.Compare(a.Association.ID, b.Association.ID) })
	foreign := foreignRanges(c)
	guests := map[netip.Addr]bool{} // that have one already
	for _, one := range all {
		a := one.Association
		if slices.ContainsFunc(foreign, func(r ipam.Range) bool { return r.Contains(one.Address) }) {
			continue
		}
		g, there, err := mapped(c, a)
		if err != nil {
			return w, err
		}
		if !there || guests[g.addr] || g.host != "" && g.host != c.Host() || !stillIts(c, one, &g) {
			continue
		}
		guests[g.addr] = true
		w.mappings[one.Address] = ipam.EdgeMapping{Elastic: one.Address, Guest: g.addr, Subnet: g.sub.CIDR,
			EgressOnly: a.EgressOnly, Staged: g.host == "", Association: a.ID}
	}
	return w, nil
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

// stillIts tells whether the container that runs is one of the address's account: a MAC alone does not tell whose it
// is before it runs.
func stillIts(c *ledger.Change, one *ipam.Elastic, g *guest) bool {
	return g.name == "" || g.name == one.Association.Instance ||
		claimedBy(c.Index(), g.namesOf(one.Association.Instance)) == one.Account
}

// since is what one who was told before has to hear.
func (w *wanted) since(before *wanted) (news ipam.EdgeNews, any bool) {
	if !slices.Equal(w.ranges, before.ranges) {
		news.Ranges, news.Ranged = w.ranges, true
	}
	for _, addr := range slices.SortedFunc(maps.Keys(w.mappings), netip.Addr.Compare) {
		if m := w.mappings[addr]; before.mappings[addr] != m {
			news.Set = append(news.Set, m)
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(before.mappings), netip.Addr.Compare) {
		if _, there := w.mappings[addr]; !there {
			news.Removed = append(news.Removed, addr)
		}
	}
	return news, news.Ranged || len(news.Set) > 0 || len(news.Removed) > 0
}
