package stores

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// sameAccount reports whether two accounts are equal.
func sameAccount(a, b *ipam.Account) bool {
	return a.Name == b.Name && a.Domain == b.Domain && (a.Quota == nil) == (b.Quota == nil) &&
		(a.Quota == nil || *a.Quota == *b.Quota) && slices.Equal(a.Owners, b.Owners)
}

// leftBehind notes associations with guests on networks that stay, because they would lead nowhere.
func (cp *copying) leftBehind(e *elasticCopy, names []string, wrong *ipam.PlanError) {
	there := cp.networksThere(names)
	for _, one := range e.addresses {
		a := one.Association
		if a == nil || there[a.Network] {
			continue
		}
		n := ledger.Ask(cp.from, func(ix *ledger.Index) *ipam.Network { return ix.Network(a.Network) })
		if n == nil {
			continue // it led nowhere before
		}
		why := "which is not copied"
		if n.Space == ipam.LocalSpace {
			why = "which belongs to one host, so a cluster maps nothing there"
		}
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoDisassociate, one.Address)}, 0,
			"the elastic address %s is associated with %s on network %s of the space %s, %s", one.Address, a.Instance,
			n.Name, n.Space, why)
	}
}

// staying notes associations with guests on networks that are copied while elastic addresses stay with the cluster.
func (cp *copying) staying(names []string, why string, wrong *ipam.PlanError) {
	var found []*ipam.Elastic
	networks := map[ipam.ID]string{}
	cp.from.Read(func(ix *ledger.Index) {
		for _, one := range ix.Elastics() {
			if one.Association == nil || one.System {
				continue
			}
			if n := ix.Network(one.Association.Network); n != nil && slices.Contains(names, n.Space) {
				found, networks[n.ID] = append(found, one), n.Name
			}
		}
	})
	slices.SortFunc(found, func(a, b *ipam.Elastic) int { return a.Address.Compare(b.Address) })
	for _, one := range found {
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoDisassociate, one.Address)}, 0,
			"the elastic address %s is associated with %s on network %s, and elastic addresses stay in the store, "+
				"because %s", one.Address, one.Association.Instance,
			networks[one.Association.Network], why)
	}
}

// elasticStays returns why elastic addresses are not copied from a shared store, because it has other hosts or other
// networks. It returns an empty text if they are copied.
func (cp *copying) elasticStays(names []string) (why string) {
	if cp.from.Member() == nil {
		return ""
	}
	cp.from.Read(func(ix *ledger.Index) {
		for name, h := range ix.Hosts() {
			if name != cp.from.Host() && h.State != ipam.HostRemoved {
				why = "host " + name + " shares them"
			}
		}
		for _, nx := range ix.Networks() {
			if n := nx.Record(); n != nil && why == "" && !slices.Contains(names, n.Space) {
				why = "the space " + n.Space + " is not copied"
			}
		}
	})
	return why
}

// elasticCollisions notes what the target has in the way of accounts, ranges and associations.
func (cp *copying) elasticCollisions(c *ledger.Change, e *elasticCopy, wrong *ipam.PlanError) {
	n := 0
	for range c.Index().Accounts() {
		n++
	}
	for _, a := range e.accounts {
		if c.Index().Account(a.Name) == nil {
			n++
		}
		cp.accountCollides(c, e, a, wrong)
	}
	if n > elastic.MaxAccounts {
		wrong.Add(0, "there would be %d accounts; the maximum is %d", n, elastic.MaxAccounts)
	}
	for _, r := range e.ranges {
		cp.rangeCollides(c, r, wrong)
	}
	cp.claimsCollide(c, e, wrong)
}

func (cp *copying) accountCollides(c *ledger.Change, e *elasticCopy, a *ipam.Account, wrong *ipam.PlanError) {
	there := c.Index().Account(a.Name)
	if there != nil && !sameAccount(there, a) {
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListAccounts)}, 0,
			"the account %s has a different domain, quota or owners in the target; make the two accounts the same",
			a.Name)
		return
	}
	for name, other := range c.Index().Accounts() {
		for _, pattern := range a.Owners {
			if name != a.Name && slices.Contains(other.Owners, pattern) {
				wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListAccounts)}, 0,
					"the owners %s of account %s belong to account %s in the target", pattern, a.Name, name)
			}
		}
	}
	if a.Quota == nil {
		return
	}
	counted := map[netip.Addr]bool{}
	for _, one := range e.addresses {
		if one.Account == a.Name && one.State == ipam.ElasticAllocated && !one.System {
			counted[one.Address] = true
		}
	}
	mine := len(counted)
	for addr, one := range c.Index().Elastics() {
		if one.Account == a.Name && one.State == ipam.ElasticAllocated && !one.System {
			counted[addr] = true
		}
	}
	if len(counted) > *a.Quota && len(counted) > mine {
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListElastic)}, 0,
			"account %s has the quota %d, but would have %d elastic addresses with those in the target", a.Name,
			*a.Quota, len(counted))
	}
}

func (cp *copying) rangeCollides(c *ledger.Change, r *ipam.ElasticRange, wrong *ipam.PlanError) {
	for id, other := range c.Index().AllElasticRanges() {
		switch {
		case id == r.ID && !other.Moving:
			wrong.Add(0, "the elastic range %s is already in the target, with the same id %s", r.Range, r.ID)
		case id != r.ID && other.Range.Overlaps(r.Range.IPRange):
			wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListElasticRanges)}, 0,
				"the elastic range %s overlaps the range %s of the target", r.Range, other.Range)
		}
	}
	for _, sx := range c.Index().Subnets() {
		sub := sx.Record()
		if r.Range.Overlaps(netipx.RangeOfPrefix(sub.CIDR)) {
			wrong.Add(0, "the elastic range %s overlaps the subnet %s, which network %s of space %s has in the target",
				r.Range, sub.CIDR, c.NetworkName(sub.Network), sub.Space)
		}
	}
	if r.Host != "" && r.Host != cp.to.Host() {
		wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListElasticRanges)}, 0,
			"the elastic range %s belongs to host %s, which is not in the target; remove it", r.Range, r.Host)
	}
}

// claimsCollide notes associations with a container that another account would claim, in either store, and guests of
// both stores to which an address leads.
func (cp *copying) claimsCollide(c *ledger.Change, e *elasticCopy, wrong *ipam.PlanError) {
	ours := map[netip.Addr]bool{}
	for _, one := range e.addresses {
		ours[one.Address] = true
	}
	for _, one := range e.addresses {
		a := one.Association
		if a == nil {
			continue
		}
		n := ledger.Ask(cp.from, func(ix *ledger.Index) *ipam.Network { return ix.Network(a.Network) })
		if n = cmp.Or(n, c.Index().Network(a.Network)); n == nil || one.System {
			continue
		}
		if account := elastic.Claimant(c.Index(), e.accounts, n, a.Instance); account != one.Account {
			wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListAccounts)}, 0,
				"the elastic address %s of account %s is associated with %s, which would belong to account %s in "+
					"the target",
				one.Address, one.Account, a.Instance, account)
		}
		for other := range c.Index().AssociatedAt(a.Guest) {
			if there := c.Index().Elastic(other); other != one.Address && !ours[other] && !there.System {
				wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoDisassociate, one.Address)}, 0,
					"the elastic address %s leads to %s, and so does %s in the target; only one elastic address may "+
						"lead to a guest address", one.Address, a.Guest, other)
			}
		}
	}
	for addr, one := range c.Index().Elastics() {
		a := one.Association
		if a == nil || one.System || ours[addr] {
			continue
		}
		n := c.Index().Network(a.Network)
		if n == nil {
			continue
		}
		if account := elastic.Claimant(c.Index(), e.accounts, n, a.Instance); account != one.Account {
			wrong.AddHelp([]ipam.Advice{ipam.Advise(ipam.DoListAccounts)}, 0,
				"account %s would claim %s, to which the elastic address %s of account %s is mapped in the target",
				account, a.Instance, addr, one.Account)
		}
	}
}

// MayShare refuses a host's own store with an associated elastic address beside a shared store. Elastic addresses
// belong to the shared store then, so nobody would map it. left reports that the own store has other elastic records,
// which nobody would see.
func MayShare(own *ledger.Ledger) (left bool, err error) {
	var found *ipam.Elastic
	own.Read(func(ix *ledger.Index) {
		for _, one := range ix.Elastics() {
			if one.Association != nil && !one.System && (found == nil || one.Address.Less(found.Address)) {
				found = one
			}
		}
	})
	if found != nil {
		return true, ipam.Refuse(ipam.ErrInUse, "this host's own store has the elastic address %s, associated with "+
			"%s, but a host with a shared store maps only addresses of that "+
			"store", found.Address, found.Association.Instance).
			Advise(ipam.DoCopyToShared)
	}
	return hasElastic(own), nil
}
