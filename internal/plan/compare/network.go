package compare

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// networksGo removes the networks that the document does not have, if Prune asks for it.
func (c *comparison) networksGo(wanted, there map[string]*network) {
	if !c.opt.Prune {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if wanted[name] != nil || c.opt.Network != "" && c.opt.Network != name {
			continue
		}
		c.found("-", Change{Kind: "network", Name: name}, "", "")
		released := map[string]bool{}
		for _, a := range there[name].Addresses {
			if !released[a.Owner] {
				c.edit(goes, 0, &ipam.ReleaseAddress{Network: name, Owner: a.Owner})
			}
			released[a.Owner] = true
		}
		c.edit(goes, 0, &ipam.RemoveNetwork{Network: name, Force: true})
		c.end(cmp.Or(there[name].Space, ipam.LocalSpace))
	}
}

// newNetwork adds a network that only the document has, and returns an empty one to compare it with.
func (c *comparison) newNetwork(n *network) *network {
	f := &n.PlannedNetwork
	c.found("+", Change{Kind: "network", Name: f.Name, Line: f.Line}, "", "")
	c.edit(goes, f.Line, f.Create())
	if f.Elastic != "" && f.Elastic != ipam.ElasticOff.String() {
		c.edit(last, f.Line, &ipam.ModifyNetwork{Network: f.Name, Elastic: &f.Elastic})
	}
	return &network{PlannedNetwork: ipam.PlannedNetwork{Name: f.Name}}
}

// network finds the differences of a network itself.
func (c *comparison) network(n, is *network) {
	f, was := &n.PlannedNetwork, &is.PlannedNetwork
	of := Change{Kind: "network", Name: f.Name, Line: f.Line}
	if f.Space != "" && f.Space != cmp.Or(was.Space, ipam.LocalSpace) {
		c.Add(f.Line, "network %s is in the space %s, not in %s, and cannot move; name another network, or remove "+
			"this one first", f.Name, cmp.Or(was.Space, ipam.LocalSpace), f.Space)
	}
	manual := ipam.Manual.String()
	if wanted := cmp.Or(f.Type, manual); (said(f, "type") || c.opt.Prune) && wanted != cmp.Or(was.Type, manual) {
		c.Add(f.Line, "network %s has the type %s, not %s, and its type cannot change; name another network, or "+
			"remove this one first", f.Name, cmp.Or(was.Type, manual), wanted)
	}
	e := &ipam.ModifyNetwork{Network: f.Name}
	edited := c.tags(of, e, f.Tags, was.Tags)
	edited = c.links(of, e, f.Links, was.Links) || edited
	edited = c.rules(of, e, f.OwnerRules, was.OwnerRules) || edited
	wanted, before := inForce(f), inForce(was)
	edited = c.settings(of, e, &wanted, &before, func(key string) bool {
		return key != "name" && key != "elastic" && (c.opt.Prune && key != "former_names" || said(f, key))
	}) || edited
	if edited {
		c.edit(changes, f.Line, e)
	}
	off := ipam.ElasticOff.String()
	if wanted := cmp.Or(f.Elastic, off); (said(f, "elastic") || c.opt.Prune) &&
		c.field(of, "elastic", cmp.Or(was.Elastic, off), wanted, nil) {
		c.edit(last, f.Line, &ipam.ModifyNetwork{Network: f.Name, Elastic: &wanted})
	}
}

// inForce returns a document's network with defaults for fields that it leaves out.
func inForce(said *ipam.PlannedNetwork) ipam.PlannedNetwork {
	n := *said
	n.MACPrefix, n.Sticky = strings.ToLower(n.MACPrefix), cmp.Or(n.Sticky, new(true))
	n.Quarantine, n.PutBack = cmp.Or(n.Quarantine, new(ipam.Duration(0))), cmp.Or(n.PutBack, "default")
	return n
}

func (c *comparison) tags(of Change, e *ipam.ModifyNetwork, tags, was map[string]string) (edited bool) {
	e.Tags = map[string]*string{}
	tag := func(key string, to *string) {
		is := ""
		if to != nil {
			is = *to
		}
		of.Field = "tag " + key
		c.found("~", of, was[key], is)
		e.Tags[key] = to
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if old, there := was[key]; !there || old != tags[key] {
			tag(key, new(tags[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		if _, stays := tags[key]; !stays && c.opt.Prune {
			tag(key, nil)
		}
	}
	return len(e.Tags) > 0
}

func (c *comparison) links(of Change, e *ipam.ModifyNetwork, links, was []ipam.Link) (edited bool) {
	text := func(all []ipam.Link, host string) string {
		i := slices.IndexFunc(all, func(l ipam.Link) bool { return l.Host == host })
		if i < 0 {
			return ""
		}
		return all[i].Mode + " " + all[i].Link
	}
	for _, l := range links {
		if c.field(of, "link of "+l.Host, text(was, l.Host), text(links, l.Host), nil) {
			e.Links = append(e.Links, l)
		}
	}
	for _, l := range was {
		if text(links, l.Host) == "" && c.field(of, "link of "+l.Host, text(was, l.Host), "", nil) {
			e.Links = append(e.Links, ipam.Link{Host: l.Host})
		}
	}
	return len(e.Links) > 0
}

// rules compares owner rules, whose order matters. Rules that the document does not name keep their place, unless the
// order of the others changes. Then they come last.
func (c *comparison) rules(of Change, e *ipam.ModifyNetwork, rules, was []ipam.OwnerRule) (edited bool) {
	named := func(r ipam.OwnerRule) bool {
		return slices.ContainsFunc(rules, func(other ipam.OwnerRule) bool { return other.Pattern == r.Pattern })
	}
	rest := slices.DeleteFunc(slices.Clone(was), named)
	kept := slices.DeleteFunc(slices.Clone(was), func(r ipam.OwnerRule) bool { return !named(r) })
	if slices.Equal(kept, rules) && (len(rest) == 0 || !c.opt.Prune) {
		return false
	}
	wanted := slices.Clone(rules)
	if !c.opt.Prune {
		wanted = append(wanted, rest...)
	}
	of.Field = "owner_rules"
	c.found("~", of, ruleText(was), ruleText(wanted))
	for _, r := range was {
		e.OwnerRules = append(e.OwnerRules, ipam.OwnerRule{Pattern: r.Pattern})
	}
	e.OwnerRules = append(e.OwnerRules, wanted...)
	return true
}

func ruleText(all []ipam.OwnerRule) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ";")
}

// subnets finds the differences of subnets. It matches a subnet by its prefix, else by its name, else by the only one
// that it overlaps. So a prefix can change.
func (c *comparison) subnets(n, is *network) {
	matched := map[netip.Prefix]bool{} // of the present ones
	pairs := make([]*ipam.PlannedSubnet, len(n.Subnets))
	there := map[netip.Prefix]*ipam.PlannedSubnet{}
	for j := range is.Subnets {
		there[is.Subnets[j].CIDR] = &is.Subnets[j]
	}
	for i := range n.Subnets {
		if old := there[n.Subnets[i].CIDR]; old != nil && !matched[old.CIDR] {
			pairs[i], matched[old.CIDR] = old, true
		}
	}
	moved := []func(a, b *ipam.PlannedSubnet) bool{
		func(a, b *ipam.PlannedSubnet) bool { return a.Name != "" && a.Name == b.Name },
		func(a, b *ipam.PlannedSubnet) bool { return a.CIDR.Overlaps(b.CIDR) },
	}
	if c.opt.Adds {
		moved = nil // the present ones stay where they are
	}
	for _, same := range moved {
		for i := range n.Subnets {
			for j := range is.Subnets {
				old := &is.Subnets[j]
				if pairs[i] == nil && !matched[old.CIDR] && same(&n.Subnets[i], old) {
					pairs[i], matched[old.CIDR] = old, true
				}
			}
		}
	}
	name := n.Name
	for i := range is.Subnets {
		if old := &is.Subnets[i]; c.opt.Prune && !matched[old.CIDR] {
			c.found("-", Change{Kind: "subnet", Name: old.CIDR.String(), Network: name}, "", "")
			c.edit(changes, 0, &ipam.RemoveSubnet{Network: name, Subnet: old.CIDR.String()})
		}
	}
	for i := range n.Subnets {
		sub := &n.Subnets[i]
		if pairs[i] == nil {
			c.found("+", Change{Kind: "subnet", Name: sub.CIDR.String(), Network: name, Line: sub.Line}, "", "")
			c.edit(subnets, sub.Line, &ipam.AddSubnet{Network: name, SubnetSpec: *sub.Spec()})
			continue
		}
		c.subnet(name, sub, pairs[i])
	}
}

func (c *comparison) subnet(network string, sub, was *ipam.PlannedSubnet) {
	of := Change{Kind: "subnet", Name: was.CIDR.String(), Network: network, Line: sub.Line}
	e := &ipam.ModifySubnet{Network: network, Subnet: was.CIDR.String()}
	edited := c.settings(of, e, sub, was, func(key string) bool {
		return key != "gateway_note" && key != "dhcp_id" && (c.opt.Prune || said(sub, key))
	})
	note := sub.GatewayNote // a note stays with the gateway, whichever address it has
	stays(c, "gateway_note", &note, was.GatewayNote, sub.Cleared)
	switch {
	case e.Gateway != nil && !e.Gateway.IsValid(): // its note goes with it
	case c.field(of, "gateway_note", was.GatewayNote, note, sub.Cleared), e.Gateway != nil && was.GatewayNote != "":
		e.GatewayNote, edited = &note, true
	}
	if (said(sub, "dhcp_id") || c.opt.Prune && sub.FromDHCP()) &&
		c.field(of, "dhcp_id", was.DHCPID.String(), sub.DHCPID.String(), nil) {
		e.DHCPID, edited = &sub.DHCPID, true
	}
	if edited {
		c.edit(subnets, sub.Line, e)
	}
}
