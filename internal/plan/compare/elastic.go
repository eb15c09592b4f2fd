package compare

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// elasticNow is what there is of elastic addresses, or is to be, by names.
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

// elasticGoes has go what of elastic addresses goes, or is made anew: before the networks, to which they lead.
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
			said := *is
			said.TTL = cmp.Or(is.TTL, old.TTL) // nobody takes it back
			if !c.opt.Prune {
				said.OnCut = cmp.Or(is.OnCut, old.OnCut)
			}
			c.remake(of, is.Line, remove, rangeSettings(old), rangeSettings(&said))
		} else {
			c.gone(of, remove)
		}
	}
	for i := range was.Accounts {
		old := &was.Accounts[i]
		of, remove := Change{Kind: accountKind, Name: old.Account}, &ipam.RemoveAccount{Account: old.Account}
		if is := wanted.accounts[old.Account]; is != nil {
			c.remake(of, is.Line, remove, accountSettings(old), accountSettings(is))
		} else {
			c.gone(of, remove)
		}
	}
	c.end("")
}

// gone removes a thing that the document does not have, where such things go.
func (c *comparison) gone(of Change, remove ipam.Edit) {
	if c.opt.Prune {
		c.found("-", of, "", "")
		c.edit(goes, 0, remove)
	}
}

// remake removes a thing of which something is otherwise, so that it is made anew: no edit changes it.
func (c *comparison) remake(of Change, line int, remove ipam.Edit, was, is []setting) {
	of.Line = line
	for i, one := range is {
		if c.field(of, one.name, was[i].text, one.text) {
			c.remade[of.Kind+of.Name] = true
		}
	}
	if c.remade[of.Kind+of.Name] {
		c.edit(goes, line, remove)
	}
}

// isMade tells whether a thing is to be made: it is not there, or is made anew.
func (c *comparison) isMade(of Change, there bool) bool {
	if !there {
		c.found("+", of, "", "")
	}
	return !there || c.remade[of.Kind+of.Name]
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
		c.found("-", of, "", "")
	case moves:
		of.Line = wanted.Line
		c.field(of, "account", was.Account, wanted.Account)
	}
}

// setting is what is said of a thing by a name.
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

// elasticComes makes what of elastic addresses is to be there, behind the networks.
func (c *comparison) elasticComes(wanted, was *elasticNow) {
	if c.opt.Network != "" {
		return
	}
	for _, a := range wanted.Accounts {
		old := was.accounts[a.Account]
		if !c.isMade(Change{Kind: accountKind, Name: a.Account, Line: a.Line}, old != nil) {
			continue
		}
		if old != nil && !c.opt.Prune {
			a.Domain, a.Quota = cmp.Or(a.Domain, old.Domain), cmp.Or(a.Quota, old.Quota)
			if len(a.Owners) == 0 {
				a.Owners = old.Owners
			}
		}
		c.edit(comes, a.Line, &a.CreateAccount)
	}
	for _, r := range wanted.Ranges {
		old := was.ranges[r.Range]
		if !c.isMade(Change{Kind: rangeKind, Name: r.Range.String(), Line: r.Line}, old != nil) {
			continue
		}
		if old != nil && !c.opt.Prune {
			r.Host, r.Announce = cmp.Or(r.Host, old.Host), cmp.Or(r.Announce, old.Announce)
			r.TTL, r.OnCut = cmp.Or(r.TTL, old.TTL), cmp.Or(r.OnCut, old.OnCut)
		}
		c.edit(comes, r.Line, &r.AddElasticRange)
	}
	for i := range wanted.Addresses {
		c.elasticAddress(&wanted.Addresses[i], was.addresses[wanted.Addresses[i].Address])
	}
	c.end("")
}

func (c *comparison) elasticAddress(a, was *ipam.PlannedElasticAddress) {
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
	if p := document.Elastic; p != nil {
		for i := range p.Addresses {
			if a := &p.Addresses[i]; a.Address == of.Address {
				return a.Guest, a.Guest.IsValid()
			}
		}
	}
	return netip.Addr{}, false
}
