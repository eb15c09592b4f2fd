package compare

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// elasticNow is the present or wanted state of elastic addresses, by names.
type elasticNow struct {
	*ipam.PlannedElastic
	accounts  map[string]*ipam.PlannedAccount
	ranges    map[ipam.Range]*ipam.PlannedElasticRange
	addresses map[netip.Addr]*ipam.PlannedElasticAddress
}

func elasticOf(p *ipam.PlannedElastic) *elasticNow {
	if p == nil {
		p = &ipam.PlannedElastic{}
	}
	return &elasticNow{p, byName(p.Accounts, func(a *ipam.PlannedAccount) string { return a.Account }),
		byName(p.Ranges, func(r *ipam.PlannedElasticRange) ipam.Range { return r.Range }),
		byName(p.Addresses, func(a *ipam.PlannedElasticAddress) netip.Addr { return a.Address })}
}

func byName[T any, K comparable](all []T, name func(*T) K) map[K]*T {
	by := map[K]*T{}
	for i := range all {
		by[name(&all[i])] = &all[i]
	}
	return by
}

const (
	accountKind = "account"
	rangeKind   = "elastic range"
	elasticKind = "elastic address"
)

// elasticGoes removes elastic objects that go or are made again, before the networks to which they lead.
func (c *comparison) elasticGoes(wanted, was *elasticNow) {
	if c.opt.Network != "" {
		return
	}
	for i := range was.Addresses {
		c.elasticEnds(wanted, &was.Addresses[i])
	}
	for i := range was.Ranges {
		old := &was.Ranges[i]
		of, remove := Change{Kind: rangeKind, Name: old.Range.String()}, &ipam.RemoveElasticRange{Range: old.Range}
		if is := wanted.ranges[old.Range]; is != nil {
			said := c.rangeOver(*is, old)
			c.remake(of, is.Line, remove, rangeSettings(old), rangeSettings(&said))
		} else {
			c.gone(of, remove)
		}
	}
	for i := range was.Accounts {
		old := &was.Accounts[i]
		of, remove := Change{Kind: accountKind, Name: old.Account}, &ipam.RemoveAccount{Account: old.Account}
		if is := wanted.accounts[old.Account]; is != nil {
			said := c.accountOver(*is, old)
			c.remake(of, is.Line, remove, accountSettings(old), accountSettings(&said))
		} else {
			c.gone(of, remove)
		}
	}
	c.end("")
}

// gone removes a thing that the document does not have, if Prune asks for it.
func (c *comparison) gone(of Change, remove ipam.Edit) {
	if c.opt.Prune {
		c.found("-", of, "", "")
		c.edit(goes, 0, remove)
	}
}

// remake removes a changed thing that no edit can change, so that it is made again.
func (c *comparison) remake(of Change, line int, remove ipam.Edit, was, is []setting) {
	of.Line = line
	for i, one := range is {
		if of.Field = one.name; one != was[i] {
			c.found("~", of, was[i].text, one.text)
			c.remade[of.Kind+of.Name] = true
		}
	}
	if c.remade[of.Kind+of.Name] {
		c.edit(goes, line, remove)
	}
}

// isMade reports whether a thing must be made, because it does not exist or is made again.
func (c *comparison) isMade(of Change, there bool) bool {
	if !there {
		c.found("+", of, "", "")
	}
	return !there || c.remade[of.Kind+of.Name]
}

// swaps reports whether an address goes to another instance while its own gets another address. An instance has only
// one address, so this association must end before others begin.
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

// elasticEnds ends an association, or releases an address, that the document gives to nobody or to another.
func (c *comparison) elasticEnds(document *elasticNow, was *ipam.PlannedElasticAddress) {
	wanted := document.addresses[was.Address]
	of := Change{Kind: elasticKind, Name: was.Address.String()}
	moves := wanted != nil && wanted.Account != "" && wanted.Account != cmp.Or(was.Account, ipam.DefaultAccount)
	gone := wanted == nil && c.opt.Prune
	ends := wanted != nil && wanted.Instance == "" && (c.opt.Prune || wanted.Cleared.Has("instance"))
	if was.Instance != "" && (gone || moves || ends || document.swaps(was)) {
		c.edit(goes, 0, &ipam.DisassociateElastic{Address: was.Address})
	}
	if gone || moves {
		c.edit(goes, 0, &ipam.ReleaseElastic{Address: was.Address})
	}
	switch {
	case gone:
		c.found("-", of, "", "")
	case moves:
		of.Line = wanted.Line
		c.field(of, "account", was.Account, wanted.Account, nil)
	}
}

// setting is a named field of a thing.
type setting struct{ name, text string }

func rangeSettings(r *ipam.PlannedElasticRange) []setting {
	device, ttl := r.Announce, ""
	if device == "none" {
		device = ""
	}
	if r.TTL != nil {
		ttl = time.Duration(*r.TTL).String()
	}
	return []setting{{"host", r.Host}, {"announce", device}, {"ttl", ttl},
		{"on_cut", cmp.Or(r.OnCut, string(ipam.CutWithdraw))}}
}

func accountSettings(a *ipam.PlannedAccount) []setting {
	quota := ""
	if a.Quota != nil {
		quota = strconv.Itoa(*a.Quota)
	}
	return []setting{{"domain", a.Domain}, {"quota", quota}, {"owners", strings.Join(a.Owners, ", ")}}
}

// rangeOver returns a document's range, with the present values of fields that it leaves out. The TTL always stays.
func (c *comparison) rangeOver(r ipam.PlannedElasticRange, was *ipam.PlannedElasticRange) ipam.PlannedElasticRange {
	r.TTL = cmp.Or(r.TTL, was.TTL)
	stays(c, "host", &r.Host, was.Host, r.Cleared)
	stays(c, "announce", &r.Announce, was.Announce, r.Cleared)
	stays(c, "on_cut", &r.OnCut, was.OnCut, r.Cleared)
	return r
}

// accountOver returns a document's account, with the present values of fields that it leaves out.
func (c *comparison) accountOver(a ipam.PlannedAccount, was *ipam.PlannedAccount) ipam.PlannedAccount {
	stays(c, "domain", &a.Domain, was.Domain, a.Cleared)
	stays(c, "quota", &a.Quota, was.Quota, a.Cleared)
	if len(a.Owners) == 0 && !c.opt.Prune {
		a.Owners = was.Owners
	}
	return a
}

// elasticComes adds elastic objects, after the networks.
func (c *comparison) elasticComes(wanted, was *elasticNow) {
	if c.opt.Network != "" {
		return
	}
	for _, a := range wanted.Accounts {
		old := was.accounts[a.Account]
		if !c.isMade(Change{Kind: accountKind, Name: a.Account, Line: a.Line}, old != nil) {
			continue
		}
		if old != nil {
			a = c.accountOver(a, old)
		}
		c.edit(comes, a.Line, &a.CreateAccount)
	}
	for _, r := range wanted.Ranges {
		old := was.ranges[r.Range]
		if !c.isMade(Change{Kind: rangeKind, Name: r.Range.String(), Line: r.Line}, old != nil) {
			continue
		}
		if old != nil {
			r = c.rangeOver(r, old)
		}
		c.edit(comes, r.Line, &r.AddElasticRange)
	}
	for i := range wanted.Addresses {
		c.elasticAddress(wanted.Addresses[i], was.addresses[wanted.Addresses[i].Address])
	}
	c.end("")
}

func (c *comparison) elasticAddress(a ipam.PlannedElasticAddress, was *ipam.PlannedElasticAddress) {
	of := Change{Kind: elasticKind, Name: a.Address.String(), Line: a.Line}
	account := cmp.Or(a.Account, ipam.DefaultAccount)
	moved := was != nil && a.Account != "" && a.Account != cmp.Or(was.Account, ipam.DefaultAccount)
	if was == nil {
		c.found("+", of, "", account)
	}
	allocated := was == nil || moved
	if was == nil {
		was = &ipam.PlannedElasticAddress{}
	}
	stays(c, "release_on", &a.ReleaseOn, was.ReleaseOn, a.Cleared)
	never := ipam.ReleaseNever.String()
	before, wanted := cmp.Or(was.ReleaseOn, never), cmp.Or(a.ReleaseOn, never)
	if !(c.opt.Adds && allocated && !moved) {
		allocated = c.field(of, "release_on", before, wanted, nil) || allocated
	}
	if allocated {
		c.edit(comes, a.Line, &ipam.AllocateElastic{Account: account, Address: a.Address, ReleaseOn: wanted})
	}
	if c.opt.Adds && was.Instance == "" {
		if a.Instance != "" {
			c.edit(owned, a.Line, &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network,
				EgressOnly: a.EgressOnly})
		}
		return
	}
	associated := c.field(of, "instance", was.Instance, a.Instance, a.Cleared)
	if a.Instance == "" {
		return
	}
	stays(c, "egress_only", &a.EgressOnly, was.EgressOnly, a.Cleared)
	associated = a.Network != "" && c.field(of, "network", was.Network, a.Network, nil) || associated
	associated = c.field(of, "egress_only", strconv.FormatBool(was.EgressOnly), strconv.FormatBool(a.EgressOnly),
		nil) || associated
	if associated || moved {
		c.edit(owned, a.Line, &ipam.AssociateElastic{Address: a.Address, Instance: a.Instance, Network: a.Network,
			Move: true, EgressOnly: a.EgressOnly})
	}
}

// Guest returns the guest that a document names for an association, which is needed if the association alone is
// ambiguous.
func Guest(document *ipam.Plan, e ipam.Edit) (netip.Addr, bool) {
	of, is := e.(*ipam.AssociateElastic)
	if !is || of.Guest.IsValid() {
		return netip.Addr{}, false
	}
	if p := document.Elastic; p != nil {
		for i := range p.Addresses {
			if a := &p.Addresses[i]; a.Address == of.Address {
				return a.Guest, a.Guest.IsValid()
			}
		}
	}
	return netip.Addr{}, false
}
