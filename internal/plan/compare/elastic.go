package compare

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// elasticNow is what there is of elastic addresses, or is to be, by names.
type elasticNow struct {
	accounts  map[string]*ipam.PlannedAccount
	ranges    map[ipam.Range]*ipam.PlannedElasticRange
	addresses map[netip.Addr]*ipam.PlannedElasticAddress
}

func elasticOf(p *ipam.PlannedElastic) *elasticNow {
	now := &elasticNow{map[string]*ipam.PlannedAccount{}, map[ipam.Range]*ipam.PlannedElasticRange{},
		map[netip.Addr]*ipam.PlannedElasticAddress{}}
	if p == nil {
		return now
	}
	for i := range p.Accounts {
		now.accounts[p.Accounts[i].Account] = &p.Accounts[i]
	}
	for i := range p.Ranges {
		now.ranges[p.Ranges[i].Range] = &p.Ranges[i]
	}
	for i := range p.Addresses {
		now.addresses[p.Addresses[i].Address] = &p.Addresses[i]
	}
	return now
}

const (
	accountKind = "account"
	rangeKind   = "elastic range"
	elasticKind = "elastic address"
)

// elasticGoes has go what of elastic addresses goes, or is made anew: before the networks, to which they lead.
func (c *comparison) elasticGoes(document, now *ipam.PlannedElastic) {
	if c.opt.Network != "" {
		return
	}
	wanted, was := elasticOf(document), elasticOf(now)
	for _, a := range listed(now).Addresses {
		c.elasticEnds(wanted, &a)
	}
	for _, r := range listed(now).Ranges {
		of := Change{Kind: rangeKind, Name: r.Range.String()}
		if other := wanted.ranges[r.Range]; other == nil && c.opt.Prune {
			of.Sign = "-"
			c.found(of)
			c.edit(goes, 0, &ipam.RemoveElasticRange{Range: r.Range})
		} else if other != nil && c.rangeOtherwise(of, other, &r) {
			c.edit(goes, other.Line, &ipam.RemoveElasticRange{Range: r.Range})
			was.ranges[r.Range] = nil
		}
	}
	for _, a := range listed(now).Accounts {
		of := Change{Kind: accountKind, Name: a.Account}
		if other := wanted.accounts[a.Account]; other == nil && c.opt.Prune {
			of.Sign = "-"
			c.found(of)
			c.edit(goes, 0, &ipam.RemoveAccount{Account: a.Account})
		} else if other != nil && c.accountOtherwise(of, other, &a) {
			c.edit(goes, other.Line, &ipam.RemoveAccount{Account: a.Account})
		}
	}
	c.end("")
}

func listed(p *ipam.PlannedElastic) *ipam.PlannedElastic {
	if p == nil {
		return &ipam.PlannedElastic{}
	}
	return p
}

// swaps tells whether an address is to be another instance's while its own is to have another address. Who has an
// address is associated with no second one, so that this one ends before any begins.
func (now *elasticNow) swaps(was *ipam.PlannedElasticAddress) bool {
	wanted := now.addresses[was.Address]
	if wanted == nil || wanted.Instance == "" || wanted.Instance == was.Instance {
		return false
	}
	for _, other := range now.addresses {
		if other.Instance == was.Instance {
			return true
		}
	}
	return false
}

// elasticEnds ends an association, or gives an address back, that is to be nobody's or another's.
func (c *comparison) elasticEnds(document *elasticNow, was *ipam.PlannedElasticAddress) {
	wanted := document.addresses[was.Address]
	of := Change{Kind: elasticKind, Name: was.Address.String()}
	moves := wanted != nil && wanted.Account != "" && wanted.Account != cmp.Or(was.Account, ipam.DefaultAccount)
	gone := wanted == nil && c.opt.Prune
	if was.Instance != "" && (gone || moves || document.swaps(was) || wanted != nil && wanted.Instance == "" &&
		c.opt.Prune) {
		c.edit(goes, 0, &ipam.DisassociateElastic{Address: was.Address})
	}
	if gone || moves {
		c.edit(goes, 0, &ipam.ReleaseElastic{Address: was.Address})
	}
	switch {
	case gone:
		of.Sign = "-"
		c.found(of)
	case moves:
		of.Line = wanted.Line
		c.field(of, "account", was.Account, wanted.Account)
	}
}

func (c *comparison) rangeOtherwise(of Change, wanted, was *ipam.PlannedElasticRange) bool {
	of.Line = wanted.Line
	device := func(r *ipam.PlannedElasticRange) string {
		if r.Announce == "none" {
			return ""
		}
		return r.Announce
	}
	onCut := func(r *ipam.PlannedElasticRange) string { return cmp.Or(r.OnCut, string(ipam.CutWithdraw)) }
	ttl := func(r *ipam.PlannedElasticRange) string {
		if r.TTL == nil {
			return ""
		}
		text, _ := r.TTL.MarshalText()
		return string(text)
	}
	before := len(c.Changes)
	c.field(of, "host", was.Host, wanted.Host)
	c.field(of, "announce", device(was), device(wanted))
	if wanted.TTL != nil {
		c.field(of, "ttl", ttl(was), ttl(wanted))
	}
	if wanted.OnCut != "" || c.opt.Prune {
		c.field(of, "on_cut", onCut(was), onCut(wanted))
	}
	return len(c.Changes) > before
}

func (c *comparison) accountOtherwise(of Change, wanted, was *ipam.PlannedAccount) bool {
	of.Line = wanted.Line
	quota := func(a *ipam.PlannedAccount) string {
		if a.Quota == nil {
			return ""
		}
		return strconv.Itoa(*a.Quota)
	}
	before := len(c.Changes)
	c.field(of, "domain", was.Domain, wanted.Domain)
	c.field(of, "quota", quota(was), quota(wanted))
	c.field(of, "owners", strings.Join(was.Owners, ", "), strings.Join(wanted.Owners, ", "))
	return len(c.Changes) > before
}

// elasticComes makes what of elastic addresses is to be there, behind the networks.
func (c *comparison) elasticComes(document, now *ipam.PlannedElastic) {
	if c.opt.Network != "" {
		return
	}
	was := elasticOf(now)
	for _, a := range listed(document).Accounts {
		old := was.accounts[a.Account]
		if old == nil {
			c.found(Change{Sign: "+", Kind: accountKind, Name: a.Account, Line: a.Line})
		}
		if old == nil || c.isAnew(&ipam.RemoveAccount{Account: a.Account}) {
			if old != nil && !c.opt.Prune {
				a.Domain, a.Quota = cmp.Or(a.Domain, old.Domain), cmp.Or(a.Quota, old.Quota)
				if len(a.Owners) == 0 {
					a.Owners = old.Owners
				}
			}
			c.edit(comes, a.Line, &a.CreateAccount)
		}
	}
	for _, r := range listed(document).Ranges {
		old := was.ranges[r.Range]
		if old == nil {
			c.found(Change{Sign: "+", Kind: rangeKind, Name: r.Range.String(), Line: r.Line})
		}
		if old == nil || c.isAnew(&ipam.RemoveElasticRange{Range: r.Range}) {
			if old != nil && !c.opt.Prune {
				r.Host, r.Announce = cmp.Or(r.Host, old.Host), cmp.Or(r.Announce, old.Announce)
				r.TTL, r.OnCut = cmp.Or(r.TTL, old.TTL), cmp.Or(r.OnCut, old.OnCut)
			}
			c.edit(comes, r.Line, &r.AddElasticRange)
		}
	}
	for _, a := range listed(document).Addresses {
		c.elasticAddress(&a, was.addresses[a.Address])
	}
	c.end("")
}

// isAnew tells whether what an edit ends is among what goes: it was otherwise, and is made anew.
func (c *comparison) isAnew(ends ipam.Edit) bool {
	for _, part := range c.Parts {
		if slices.ContainsFunc(part.Edits, func(e Edit) bool {
			switch gone := e.Edit.(type) {
			case *ipam.RemoveAccount:
				other, is := ends.(*ipam.RemoveAccount)
				return is && other.Account == gone.Account
			case *ipam.RemoveElasticRange:
				other, is := ends.(*ipam.RemoveElasticRange)
				return is && other.Range == gone.Range
			}
			return false
		}) {
			return true
		}
	}
	return false
}

func (c *comparison) elasticAddress(a, was *ipam.PlannedElasticAddress) {
	of := Change{Kind: elasticKind, Name: a.Address.String(), Line: a.Line}
	account := cmp.Or(a.Account, ipam.DefaultAccount)
	moved := was != nil && a.Account != "" && a.Account != cmp.Or(was.Account, ipam.DefaultAccount)
	if was == nil {
		one := of
		one.Sign, one.Is = "+", account
		c.found(one)
	}
	allocated := was == nil || moved
	if was == nil {
		was = &ipam.PlannedElasticAddress{}
	}
	releaseOn := func(a *ipam.PlannedElasticAddress) string { return cmp.Or(a.ReleaseOn, ipam.ReleaseNever.String()) }
	if (a.ReleaseOn != "" || c.opt.Prune) && !(c.opt.Adds && allocated && !moved) {
		allocated = c.field(of, "release_on", releaseOn(was), releaseOn(a)) || allocated
	}
	if allocated {
		keeps := cmp.Or(a.ReleaseOn, was.ReleaseOn)
		if c.opt.Prune {
			keeps = releaseOn(a)
		}
		c.edit(comes, a.Line, &ipam.AllocateElastic{Account: account, Address: a.Address, ReleaseOn: keeps})
	}
	if c.opt.Adds && was.Instance == "" {
		if a.Instance != "" {
			c.edit(owned, a.Line, &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network,
				EgressOnly: a.EgressOnly})
		}
		return
	}
	associated := c.field(of, "instance", was.Instance, a.Instance)
	if a.Instance != "" {
		if was.Instance != "" || a.Network != "" {
			associated = a.Network != "" && c.field(of, "network", was.Network, a.Network) || associated
		}
		associated = (a.EgressOnly || c.opt.Prune) && c.field(of, "egress_only", strconv.FormatBool(was.EgressOnly),
			strconv.FormatBool(a.EgressOnly)) || associated
		if associated || moved {
			c.edit(owned, a.Line, &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network,
				Move: true, EgressOnly: a.EgressOnly || was.EgressOnly && !c.opt.Prune})
		}
	}
}

// Guest is the guest that a document names beside an association, where it is not clear without it which is meant.
func Guest(document *ipam.Plan, e ipam.Edit) (netip.Addr, bool) {
	of, is := e.(*ipam.AssociateElastic)
	if !is || of.Guest.IsValid() {
		return netip.Addr{}, false
	}
	for _, a := range listed(document.Elastic).Addresses {
		if a.Address == of.Address {
			return a.Guest, a.Guest.IsValid()
		}
	}
	return netip.Addr{}, false
}
