package stores

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Elastic addresses belong to no space and go along with any copy: accounts, ranges, addresses with their associations,
// reports of this host's edge, and events. They have their own mark, by the same rules as a space (copymark.go). The
// source lets go of them before any space, so that no store has an association without its network. Meanwhile their
// ranges are Moving, so that nobody uses them.

// elasticPart stands for elastic addresses among the names of spaces.
const elasticPart = ""

// partName names a space, or the elastic addresses, in a sentence.
func partName(name string) string {
	if name == elasticPart {
		return "the elastic addresses"
	}
	return "the space " + name
}

// isOf reports whether an event belongs to a space, or only to elastic addresses. The event of an association belongs
// to the space of its network.
func isOf(e *ipam.Event, part string) bool {
	if part != elasticPart || e.Space != "" {
		return e.Space == part && part != elasticPart
	}
	verb := e.Verb.String()
	return strings.HasPrefix(verb, "account.") || strings.HasPrefix(verb, "elastic.") && e.Verb != ipam.ElasticMoved
}

// elasticCopy is what the target must have of elastic addresses.
type elasticCopy struct {
	ipam.CopiedElastic
	accounts  []*ipam.Account
	ranges    []*ipam.ElasticRange
	addresses []*ipam.Elastic
	applied   []*ipam.Applied // this host's edge
	others    []*ipam.Elastic // the store's other addresses
}

// hasElastic reports whether a store has any elastic addresses to copy.
func hasElastic(s *ledger.Ledger) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		for range ix.Accounts() {
			return true
		}
		for range ix.AllElasticRanges() {
			return true
		}
		for range ix.Elastics() {
			return true
		}
		return false
	})
}

// elasticIn lists a store's records in the order of their keys: all, or those being copied.
func elasticIn(s *ledger.Ledger, moving bool) *elasticCopy {
	e := new(elasticCopy)
	s.Read(func(ix *ledger.Index) {
		for _, a := range ix.Accounts() {
			e.accounts = append(e.accounts, a)
		}
		for _, r := range ix.AllElasticRanges() {
			if r.Moving || !moving {
				e.ranges = append(e.ranges, r)
			}
		}
		is := func(addr netip.Addr) bool {
			return !moving || slices.ContainsFunc(e.ranges, func(r *ipam.ElasticRange) bool {
				return r.Range.Contains(addr)
			})
		}
		for addr, one := range ix.Elastics() {
			if is(addr) {
				e.addresses = append(e.addresses, one)
			} else {
				e.others = append(e.others, one)
			}
		}
		for at, one := range ix.AllApplied() {
			if is(at.Address) {
				e.applied = append(e.applied, one)
			}
		}
	})
	slices.SortFunc(e.accounts, func(a, b *ipam.Account) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(e.ranges, func(a, b *ipam.ElasticRange) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	slices.SortFunc(e.addresses, func(a, b *ipam.Elastic) int { return a.Address.Compare(b.Address) })
	slices.SortFunc(e.applied, func(a, b *ipam.Applied) int { return a.Address.Compare(b.Address) })
	return e
}

// ofMark removes the accounts that the copy has not made, or that have other addresses by now.
func (e *elasticCopy) ofMark(m *copyMark) *elasticCopy {
	e.accounts = slices.DeleteFunc(e.accounts, func(a *ipam.Account) bool {
		return !slices.Contains(m.Accounts, a.Name) ||
			slices.ContainsFunc(e.others, func(one *ipam.Elastic) bool { return one.Account == a.Name })
	})
	return e
}

// wantedElastic returns what the target must have. names are the parts to copy.
func (cp *copying) wantedElastic(names []string) *elasticCopy {
	e, there, copied := elasticIn(cp.from, false), cp.networksThere(names), map[netip.Addr]bool{}
	for i, a := range e.accounts {
		known := ledger.Ask(cp.to, func(ix *ledger.Index) *ipam.Account { return ix.Account(a.Name) })
		if known != nil && sameAccount(known, a) {
			e.accounts[i] = known // the same account exists already and stays
		}
	}
	for i, r := range e.ranges {
		moving := *r
		if moving.Moving = true; r.Host != "" && cp.from.Member() == nil {
			moving.Host = cp.to.Host() // this host, even under another name
		}
		e.ranges[i] = &moving
	}
	e.addresses = slices.DeleteFunc(e.addresses, func(one *ipam.Elastic) bool {
		return one.System && one.Association != nil && !there[one.Association.Network]
	})
	for _, one := range e.addresses {
		if copied[one.Address] = true; one.Association != nil {
			e.Associations++
		}
	}
	e.Accounts, e.Ranges, e.Addresses = len(e.accounts), len(e.ranges), len(e.addresses)
	e.applied = slices.DeleteFunc(e.applied, func(at *ipam.Applied) bool {
		return at.Host != cp.from.Host() || !copied[at.Address]
	})
	for i, at := range e.applied {
		e.applied[i] = cp.appliedThere(at)
	}
	return e
}

// networksThere returns the networks that the target will have.
func (cp *copying) networksThere(names []string) map[ipam.ID]bool {
	there := map[ipam.ID]bool{}
	for _, s := range []*ledger.Ledger{cp.from, cp.to} {
		s.Read(func(ix *ledger.Index) {
			for id, nx := range ix.Networks() {
				if n := nx.Record(); n != nil && (s == cp.to || slices.Contains(names, n.Space)) {
					there[id] = true
				}
			}
		})
	}
	return there
}

// appliedThere converts an edge's report for the target. From a daemon without a shared store it holds without a time
// limit.
func (cp *copying) appliedThere(at *ipam.Applied) *ipam.Applied {
	there := *at
	there.Host, there.Untimed, there.Grant = cp.to.Host(), cp.from.Member() == nil && at.InForce, 0
	if cp.from.Member() != nil {
		there.Unsaid = false
	}
	return &there
}

// elasticGroup returns the records as a group. Accounts and ranges come first, so that nobody else takes them in the
// target.
func (cp *copying) elasticGroup(e *elasticCopy) *group {
	g := &group{elastic: e}
	g.unit()
	for _, a := range e.accounts {
		g.add("the account "+a.Name, ledger.AccountKey(a.Name), a)
	}
	for _, r := range e.ranges {
		g.add("the elastic range "+r.Range.String(), ledger.ElasticRangeKey(r.ID), r)
	}
	for _, one := range e.addresses {
		g.unit()
		g.add("the elastic address "+one.Address.String(), ledger.ElasticKey(one.Address), one)
	}
	for _, at := range e.applied {
		g.unit()
		g.add("the edge report about "+at.Address.String(), ledger.AppliedKey(ledger.AppliedAt{Host: at.Host,
			Address: at.Address}), at)
	}
	g.collide = func(c *ledger.Change, unit int, wrong *ipam.PlanError) error {
		if unit == 0 {
			cp.elasticCollisions(c, e, wrong)
		}
		return nil
	}
	g.first = e.noteAccounts
	return g
}

// noteAccounts notes which accounts are new in the target.
func (e *elasticCopy) noteAccounts(c *ledger.Change) error {
	m, err := readMark(c.Tx(), elasticPart)
	if err != nil {
		return err
	}
	for _, a := range e.accounts {
		if c.Index().Account(a.Name) == nil && !slices.Contains(m.Accounts, a.Name) {
			m.Accounts = append(m.Accounts, a.Name)
		}
	}
	return putMark(c, m)
}

// skipElastic makes later ids greater than those of an address.
func skipElastic(c *ledger.Change, e *ipam.Elastic) {
	if e == nil {
		return
	}
	if c.SkipIDs(e.ID); e.Association != nil {
		c.SkipIDs(e.Association.ID)
	}
}

// moveRanges marks all ranges of a store as being copied, or as not.
func moveRanges(c *ledger.Change, moving bool) error {
	c.TouchPlan()
	var all []*ipam.ElasticRange
	for _, r := range c.Index().AllElasticRanges() {
		if r.Moving != moving {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.ElasticRange) int { return strings.Compare(a.ID.String(), b.ID.String()) })
	for _, r := range all {
		changed := *r
		changed.Moving = moving
		if err := c.SetElasticRange(r.ID, &changed); err != nil {
			return err
		}
	}
	return nil
}

// stillMoving refuses to let go if a range was added to a shared source.
func stillMoving(c *ledger.Change) error {
	for _, r := range c.Index().ElasticRanges() {
		return ipam.Refuse(ipam.ErrChanged, "the elastic range %s was added during the copy", r.Range)
	}
	return nil
}
