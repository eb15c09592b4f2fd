package edit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// importNetwork is a network of which a plan has something.
type importNetwork struct {
	fresh   bool          // it is made
	n       *ipam.Network // its record, or the one that is made
	refused bool
	steps   [importKinds][]importStep // that have added something in the draft
	added   ipam.Counts

	reserved, taken importOwners
	known           []*importOwned // owners of a dynamic network, without an address
}

// importSubnet is a subnet of which a plan has something.
type importSubnet struct {
	in      *importNetwork
	fresh   bool
	line    int
	sub     *ipam.Subnet // its record, or the one that is made, with the ranges that it is made with
	refused bool
	touched bool // by ranges

	bands, pools, exclusions []importRange // of the plan
}

func (d *importDraft) draftOf(n *ipam.Network, fresh bool) *importNetwork {
	draft := &importNetwork{n: n, fresh: fresh}
	d.networks, d.byID[n.ID] = append(d.networks, draft), draft
	return draft
}

// network opens a network of the plan, with the subnets that stand in it; nil where it has no name, or is refused.
func (d *importDraft) network(p *ipam.PlannedNetwork) *importNetwork {
	if p.Space != "" {
		d.refuse(p.Line, ipam.CheckName("space", p.Space))
	}
	if p.Name == "" {
		d.nameless(p)
		return nil
	}
	if err := ipam.CheckName("network", p.Name); err != nil {
		d.refuse(p.Line, err)
		return nil
	}
	if !d.once(p.Line, "the network %s", p.Name) {
		return nil
	}
	old := ledger.Ask(d.draft, func(ix *ledger.Index) *ipam.Network {
		if nx := ix.NetworkIndex(ix.NetworkNamed(p.Name)); nx != nil {
			return nx.Record()
		}
		return nil
	})
	var n *importNetwork
	switch {
	case old == nil:
		n = d.draftOf(d.newNetwork(p), true)
		d.queue = append(d.queue, importTrial{of: n, kind: makesNetwork, failed: func() { n.refused = true },
			importStep: importStep{line: p.Line, writes: 10,
				make: func(s *stepper) (ipam.Counts, error) { return ipam.Counts{Networks: 1}, s.makeNetwork(n.n) }}})
	case old.Stage != "":
		d.Add(p.Line, "the network %s is being imported or removed; import again when that has ended", p.Name)
		return nil
	default:
		if n = d.byID[old.ID]; n == nil {
			n = d.draftOf(old, false)
		}
		d.unchanged.Networks++
		d.compareNetwork(old, p)
	}
	for i := range p.Subnets {
		d.subnet(n, &p.Subnets[i])
	}
	return n
}

// nameless refuses what only a network with a name can have.
func (d *importDraft) nameless(p *ipam.PlannedNetwork) {
	if len(importSettings(p)) > 0 || p.Type != "" || p.Elastic != "" {
		d.Add(p.Line, "the network has no name")
	}
	for _, sub := range p.Subnets {
		d.Add(sub.Line, "the subnet %s is of no network; name the network that it is to be in", sub.CIDR)
	}
}

// importSetting is one thing that a plan says of a network.
type importSetting struct {
	what string
	set  ipam.ModifyNetwork
	is   func(*ipam.Network) string // as people read it; empty: none
}

// importSettings are the things that a plan says of a network, but for its type and its elastic addresses.
func importSettings(p *ipam.PlannedNetwork) (all []importSetting) {
	say := func(what string, set ipam.ModifyNetwork, is func(*ipam.Network) string) {
		all = append(all, importSetting{what, set, is})
	}
	if p.MACPrefix != "" {
		say("MAC prefix", ipam.ModifyNetwork{MACPrefix: &p.MACPrefix}, func(n *ipam.Network) string { return n.MACPrefix })
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		value := p.Tags[key]
		say("tag "+key, ipam.ModifyNetwork{Tags: map[string]*string{key: &value}},
			func(n *ipam.Network) string { return n.Tags[key] })
	}
	for _, link := range p.Links {
		say("link on the host "+link.Host, ipam.ModifyNetwork{Links: []ipam.Link{link}}, func(n *ipam.Network) string {
			for _, l := range n.Links {
				if l.Host == link.Host {
					return l.Mode + " " + l.Link
				}
			}
			return ""
		})
	}
	for _, r := range p.OwnerRules {
		say("rule for the owners "+r.Pattern, ipam.ModifyNetwork{OwnerRules: []ipam.OwnerRule{r}},
			func(n *ipam.Network) string {
				for _, other := range n.Rules {
					if other.Pattern == r.Pattern {
						return other.String()
					}
				}
				return ""
			})
	}
	if p.Sticky != nil {
		say("stickiness", ipam.ModifyNetwork{Sticky: p.Sticky},
			func(n *ipam.Network) string { return fmt.Sprint(!n.Policy.Forget) })
	}
	if p.Quarantine != nil {
		say("quarantine", ipam.ModifyNetwork{Quarantine: p.Quarantine},
			func(n *ipam.Network) string { return n.Policy.Quarantine.String() })
	}
	if p.Headroom != 0 {
		say("headroom", ipam.ModifyNetwork{Headroom: &p.Headroom},
			func(n *ipam.Network) string { return fmt.Sprint(n.Headroom) })
	}
	if p.Probe != "" {
		say("interface to be probed by", ipam.ModifyNetwork{Probe: &p.Probe},
			func(n *ipam.Network) string { return n.Probe })
	}
	if p.PutBack != "" {
		say("mode of putting back", ipam.ModifyNetwork{PutBack: &p.PutBack},
			func(n *ipam.Network) string { return n.PutBack.String() })
	}
	return all
}

// settle gives a network what the plan says of it.
func (d *importDraft) settle(n *ipam.Network, p *ipam.PlannedNetwork) {
	said := map[string]bool{}
	for _, one := range importSettings(p) {
		if said[one.what] {
			d.Add(p.Line, "the %s of network %s is planned twice; say it once", one.what, p.Name)
		}
		said[one.what] = true
		d.refuse(p.Line, SetFields(&one.set, n))
	}
	if p.Elastic == "" {
		return
	}
	mode, err := ipam.ParseElasticMode(p.Elastic)
	d.refuse(p.Line, err)
	n.Elastic = mode
}

func (d *importDraft) newNetwork(p *ipam.PlannedNetwork) *ipam.Network {
	n := &ipam.Network{ID: d.Member().Marked(ipam.NewID()), Name: p.Name, Space: cmp.Or(p.Space, ipam.LocalSpace),
		Planned: true}
	var err error
	n.Type, err = ipam.ParseNetworkType(p.Type)
	d.refuse(p.Line, err)
	d.settle(n, p)
	if n.Elastic != ipam.ElasticOff && n.Type == ipam.VIP {
		d.Add(p.Line, "network %s is of the type vip, whose addresses are no containers': it has elastic addresses off",
			p.Name)
	}
	return n
}

// compareNetwork refuses what the plan wants otherwise than it is: an import adds, and changes nothing.
func (d *importDraft) compareNetwork(old *ipam.Network, p *ipam.PlannedNetwork) {
	if p.Space != "" && p.Space != old.Space {
		d.Add(p.Line, "there is a network %s in the space %s, and a name is one network's only; choose another",
			p.Name, old.Space)
	}
	if t, err := ipam.ParseNetworkType(p.Type); err != nil {
		d.refuse(p.Line, err)
	} else if p.Type != "" && t != old.Type {
		d.Add(p.Line, "network %s is of the type %s and not %s, and stays so; leave the type out, or choose another "+
			"network", p.Name, old.Type, t)
	}
	wanted := *old
	wanted.Tags, wanted.Links, wanted.Rules = maps.Clone(old.Tags), slices.Clone(old.Links), slices.Clone(old.Rules)
	d.settle(&wanted, p)
	settings := importSettings(p)
	if p.Elastic != "" {
		settings = append(settings, importSetting{what: "mode of elastic addresses",
			is: func(n *ipam.Network) string { return n.Elastic.String() }})
	}
	for _, one := range settings {
		if is, wants := one.is(old), one.is(&wanted); is != wants {
			d.AddHelp(ipam.Advise(ipam.DoModifyNetwork, p.Name).OrLeaveOut(), p.Line,
				"the %s of network %s is %s and not %s", one.what, p.Name, cmp.Or(is, "none"),
				cmp.Or(wants, "none"))
		}
	}
}

// makeNetwork makes a network that nobody sees yet.
func (s *stepper) makeNetwork(planned *ipam.Network) error {
	made := *planned
	n := &made
	if err := NameFree(s.Change, n.Name); err != nil {
		return err
	}
	if err := s.EnsureSpace(n.Space); err != nil {
		return err
	}
	n.Created, n.Stage = s.Now(), ipam.Arriving
	if m := s.Member(); m != nil {
		n.Importer = &ipam.Importer{Host: s.Host(), Session: m.Session}
	}
	s.p, s.sub = PlanOf(s.Change, n), nil
	if _, err := s.p.Tell(&ipam.Event{Verb: ipam.NetworkCreated}, nil, FactsOfNetwork(n)); err != nil {
		return err
	}
	return s.SetNetwork(n.ID, n)
}

// reveal lets the network be seen, with all that is in it.
func (s *stepper) reveal() (ipam.Counts, error) {
	n := *s.p.N
	n.Stage, n.Importer, n.Revision = "", nil, s.Index().LastEvent()
	s.p.N = &n
	return ipam.Counts{}, s.SetNetwork(n.ID, &n)
}

// subnet takes a subnet of the plan into the draft, or holds it against the one that is there.
func (d *importDraft) subnet(n *importNetwork, p *ipam.PlannedSubnet) {
	if err := CheckPrefix(p.CIDR); err != nil {
		d.refuse(p.Line, err)
		return
	}
	if !d.once(p.Line, "the subnet %s of space %s", p.CIDR, n.n.Space) {
		return
	}
	old := ledger.Ask(d.draft, func(ix *ledger.Index) *ipam.Subnet {
		if sx := ix.Subnet(ix.SubnetAt(n.n.Space, p.CIDR)); sx != nil && sx.Record().Network == n.n.ID {
			return sx.Record()
		}
		return nil
	})
	sub := &importSubnet{in: n, sub: old, line: p.Line, fresh: old == nil}
	if old != nil {
		d.unchanged.Subnets++
		for _, differs := range p.Against(old) {
			d.AddHelp(ipam.Advise(ipam.DoChangeSubnet).OrLeaveOut(), p.Line, "the %s of the subnet %s is %s and not %s",
				differs.What, p.CIDR, differs.Is, differs.Wanted)
		}
	} else {
		sub.sub = p.Spec().Subnet(d.ids[0], n.n, p.CIDR)
		d.ids = d.ids[1:]
		d.queue = append(d.queue, importTrial{of: n, kind: makesSubnet,
			failed: func() { sub.refused, d.refused = true, append(d.refused, sub) },
			importStep: importStep{network: n.n.ID, line: p.Line, writes: 10,
				make: func(s *stepper) (ipam.Counts, error) { return s.makeSubnet(sub.sub) }}})
	}
	d.subnets[sub.sub.ID] = sub
	for _, band := range p.Static {
		sub.bands = append(sub.bands, importRange{Range: band.Range, line: band.Line})
	}
	for _, pool := range p.Pools {
		sub.pools = append(sub.pools, importRange{Range: pool.Range, text: pool.Name, line: pool.Line})
	}
	for _, x := range p.Exclusions {
		sub.exclusions = append(sub.exclusions, importRange{Range: x.Range, text: x.Note, line: x.Line})
	}
	d.touch(sub)
}

func (s *stepper) makeSubnet(planned *ipam.Subnet) (ipam.Counts, error) {
	made := *planned
	s.sub = &made
	return ipam.Counts{Subnets: 1, Pools: len(made.Pools)}, s.p.MakeSubnet(s.sub)
}
