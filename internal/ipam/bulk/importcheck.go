package bulk

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
	"berth/store"
)

// importCheck holds a plan against itself and against what is there, in one view, and works out what is to be added. It
// collects what is wrong, with its lines. Nothing is written, and the index is locked for single questions only, so
// that a large plan holds nobody up; what changes between the check and the writing is refused then.
type importCheck struct {
	*ledger.Ledger
	ipam.PlanError
	tx        store.Tx
	networks  []*draftNetwork // in the order of the plan
	byName    map[string]*draftNetwork
	byID      map[ipam.ID]*draftNetwork // of those that are there
	spaces    map[string]*draftSpace
	elastics  []elasticStep // of elastic addresses: what is to be added
	unchanged ipam.Counts
	began     time.Time

	locks    []*ipam.DeployLock // of projects that are being deployed
	reserves []string           // the owners for whom anything is reserved
	names    edit.NewNames      // in DNS, of these and of whom anything is taken for
}

// draftNetwork is a network as it will be.
type draftNetwork struct {
	line     int
	old      bool          // it is there
	n        *ipam.Network // its record, or the one to be made
	subnets  []*draftSubnet
	names    map[string]netip.Prefix // of the subnets that have a name
	dhcp     map[bool]netip.Prefix   // of those that have DHCP, by whether they are IPv6
	reserved draftOwners
	taken    draftOwners
	known    []*wanted // owners of a dynamic network, without an address
}

// draftSpace has the subnets of a space that the plan is about.
type draftSpace struct {
	blocks  *alloc.Blocks // those that the import makes
	subnets map[netip.Prefix]*draftSubnet
	last    *draftSubnet // most questions are about the same one again
}

// checkImport works out what a plan comes to. What is wrong with it is in the PlanError of the answer.
func checkImport(s *ledger.Ledger, tx store.Tx, p *ipam.Plan) (*importCheck, error) {
	ck := &importCheck{Ledger: s, tx: tx, byName: map[string]*draftNetwork{}, byID: map[ipam.ID]*draftNetwork{},
		spaces: map[string]*draftSpace{}, began: s.Now()}
	drafts := make([]*draftNetwork, len(p.Networks)) // nil: any of the space, or one that was refused
	for i := range p.Networks {
		var err error
		if drafts[i], err = ck.network(&p.Networks[i]); err != nil {
			return nil, err
		}
	}
	for i := range p.Networks {
		n := &p.Networks[i]
		if drafts[i] == nil && n.Name != "" {
			continue // refused above
		}
		if err := ck.ranges(n, drafts[i]); err != nil {
			return nil, err
		}
		if err := ck.owners(n, drafts[i]); err != nil {
			return nil, err
		}
	}
	if err := ck.readLocks(); err != nil {
		return nil, err
	}
	for _, d := range ck.networks {
		for _, sub := range d.subnets {
			ck.checkRanges(sub)
		}
		if err := ck.checkOwners(d); err != nil {
			return nil, err
		}
	}
	ck.planElastic(p.Elastic)
	return ck, nil
}

// refuse notes an error as a problem of a line.
func (ck *importCheck) refuse(line int, err error) {
	if err != nil {
		ck.Add(line, "%s", err)
	}
}

// lineBefore points to a line, where it is known.
func lineBefore(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(", before in line %d", line)
}

// network opens a network of the plan, with the subnets that stand in it; nil where it has no name, or is refused.
func (ck *importCheck) network(p *ipam.PlannedNetwork) (*draftNetwork, error) {
	if p.Space != "" {
		ck.refuse(p.Line, ipam.CheckName("space", p.Space))
	}
	if p.Name == "" {
		ck.nameless(p)
		return nil, nil
	}
	if err := ipam.CheckName("network", p.Name); err != nil {
		ck.refuse(p.Line, err)
		return nil, nil
	}
	if before := ck.byName[p.Name]; before != nil {
		ck.Add(p.Line, "the network %s is planned twice%s", p.Name, lineBefore(before.line))
		return nil, nil
	}
	old, err := ck.networkNamed(p.Name)
	if err != nil {
		return nil, err
	}
	if old != nil && old.Stage != "" {
		ck.Add(p.Line, "the network %s is being imported or removed; import again when that has ended", p.Name)
		return nil, nil
	}
	d := ck.draft(old)
	d.line = p.Line
	ck.byName[p.Name] = d
	if old == nil {
		d.n = ck.newNetwork(p)
	} else {
		ck.unchanged.Networks++
		ck.compareNetwork(old, p)
		if err := ck.presentSubnets(d); err != nil {
			return nil, err
		}
	}
	for i := range p.Subnets {
		ck.subnet(d, &p.Subnets[i])
	}
	return d, nil
}

// draft begins the draft of a network that is there, or of a new one where it is nil.
func (ck *importCheck) draft(old *ipam.Network) *draftNetwork {
	d := &draftNetwork{old: old != nil, n: old, names: map[string]netip.Prefix{}, dhcp: map[bool]netip.Prefix{}}
	if old != nil {
		ck.byID[old.ID] = d
	}
	ck.networks = append(ck.networks, d)
	return d
}

// nameless refuses what only a network with a name can have.
func (ck *importCheck) nameless(p *ipam.PlannedNetwork) {
	if p.MACPrefix != "" || len(p.Tags) > 0 || len(p.Links) > 0 || p.Sticky != nil || p.Quarantine != nil ||
		p.Headroom != 0 || p.Elastic != "" || p.Probe != "" || p.PutBack != "" || p.Type != "" || len(p.OwnerRules) > 0 {
		ck.Add(p.Line, "the network has no name")
	}
	for _, sub := range p.Subnets {
		ck.Add(sub.Line, "the subnet %s is of no network; name the network that it is to be in", sub.CIDR)
	}
}

// networkNamed reads the network of a name, nil where there is none.
func (ck *importCheck) networkNamed(name string) (*ipam.Network, error) {
	raw, err := ck.tx.Get(ledger.NameKey(nil, name))
	if err != nil {
		return nil, err
	}
	if len(raw) != len(ipam.ID{}) {
		return nil, nil
	}
	return view.ViewNetwork(ck.Ledger, ck.tx, ipam.ID(raw))
}

func (ck *importCheck) newNetwork(p *ipam.PlannedNetwork) *ipam.Network {
	n := &ipam.Network{ID: ck.Member().Marked(ipam.NewID()), Name: p.Name, Space: p.Space, Planned: true}
	if n.Space == "" {
		n.Space = ipam.LocalSpace
	}
	set := ipam.ModifyNetwork{MACPrefix: &p.MACPrefix, Sticky: p.Sticky, Quarantine: p.Quarantine}
	ck.refuse(p.Line, edit.SetFields(&set, n))
	var err error
	n.Type, err = ipam.ParseNetworkType(p.Type)
	ck.refuse(p.Line, err)
	ck.refuse(p.Line, edit.SetHeadroom(n, p.Headroom))
	ck.refuse(p.Line, edit.SetProbe(n, p.Probe))
	ck.refuse(p.Line, edit.SetPutBack(n, p.PutBack))
	n.Elastic = ck.elastic(p)
	if n.Elastic != ipam.ElasticOff && n.Type == ipam.VIP {
		ck.Add(p.Line, "network %s is of the type vip, whose addresses are no containers': it has elastic addresses off",
			p.Name)
	}
	ck.rules(n, p)
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		value := p.Tags[key]
		ck.refuse(p.Line, n.SetTag(key, &value))
	}
	ck.refuse(p.Line, n.CheckTags())
	for _, link := range p.Links {
		if slices.ContainsFunc(n.Links, func(other ipam.Link) bool { return other.Host == link.Host }) {
			ck.Add(p.Line, "the network %s has two links on the host %s, and can have one", p.Name, link.Host)
			continue
		}
		ck.refuse(p.Line, edit.SetLink(n, link))
	}
	return n
}

// rules gives a new network its rules for owners.
func (ck *importCheck) rules(n *ipam.Network, p *ipam.PlannedNetwork) {
	for _, r := range p.OwnerRules {
		switch {
		case slices.ContainsFunc(n.Rules, func(other ipam.OwnerRule) bool { return other.Pattern == r.Pattern }):
			ck.Add(p.Line, "the network %s has two rules for the owners %s, and can have one; put both into one",
				p.Name, r.Pattern)
		case r.Owner == "" && r.Pool == "":
			ck.Add(p.Line, "the rule of network %s for the owners %q says neither owner nor pool", p.Name, r.Pattern)
		default:
			ck.refuse(p.Line, n.SetRule(r))
		}
	}
}

// compareNetwork refuses what the plan wants otherwise than it is: an import adds, and changes nothing.
func (ck *importCheck) compareNetwork(old *ipam.Network, p *ipam.PlannedNetwork) {
	differs := func(what, is, wanted string) {
		if is == "" {
			is = "none"
		}
		ck.AddHelp(ipam.Advise(ipam.DoModifyNetwork, p.Name).OrLeaveOut(), p.Line,
			"the %s of network %s is %s and not %s", what,
			p.Name, is, wanted)
	}
	if p.Space != "" && p.Space != old.Space {
		ck.Add(p.Line, "there is a network %s in the space %s, and a name is one network's only; choose another",
			p.Name, old.Space)
	}
	if p.MACPrefix != "" && !strings.EqualFold(p.MACPrefix, old.MACPrefix) {
		differs("MAC prefix", old.MACPrefix, p.MACPrefix)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		if is, ok := old.Tags[key]; !ok || is != p.Tags[key] {
			differs("tag "+key, is, p.Tags[key])
		}
	}
	for _, link := range p.Links {
		i := slices.IndexFunc(old.Links, func(other ipam.Link) bool { return other.Host == link.Host })
		switch {
		case i < 0:
			differs("link on the host "+link.Host, "", link.Mode+" "+link.Link)
		case old.Links[i] != link:
			differs("link on the host "+link.Host, old.Links[i].Mode+" "+old.Links[i].Link, link.Mode+" "+link.Link)
		}
	}
	if t, err := ipam.ParseNetworkType(p.Type); err != nil {
		ck.refuse(p.Line, err)
	} else if p.Type != "" && t != old.Type {
		ck.Add(p.Line, "network %s is of the type %s and not %s, and stays so; leave the type out, or choose another "+
			"network", p.Name, old.Type, t)
	}
	for _, r := range p.OwnerRules {
		i := slices.IndexFunc(old.Rules, func(other ipam.OwnerRule) bool { return other.Pattern == r.Pattern })
		switch {
		case i < 0:
			differs("rule for the owners "+r.Pattern, "", r.String())
		case old.Rules[i] != r:
			differs("rule for the owners "+r.Pattern, old.Rules[i].String(), r.String())
		}
	}
	if p.Sticky != nil && *p.Sticky == old.Policy.Forget {
		differs("stickiness", fmt.Sprint(!old.Policy.Forget), fmt.Sprint(*p.Sticky))
	}
	if p.Quarantine != nil && *p.Quarantine != ipam.Duration(old.Policy.Quarantine) {
		differs("quarantine", old.Policy.Quarantine.String(), time.Duration(*p.Quarantine).String())
	}
	if mode := ck.elastic(p); p.Elastic != "" && mode != old.Elastic {
		differs("mode of elastic addresses", old.Elastic.String(), mode.String())
	}
	if p.Headroom != 0 && p.Headroom != old.Headroom {
		differs("headroom", fmt.Sprint(old.Headroom), fmt.Sprint(p.Headroom))
	}
	if p.Probe != "" && p.Probe != old.Probe {
		differs("interface to be probed by", old.Probe, p.Probe)
	}
	if mode, err := ipam.ParsePutBackMode(p.PutBack); err != nil {
		ck.refuse(p.Line, err)
	} else if p.PutBack != "" && mode != old.PutBack {
		differs("mode of putting back", old.PutBack.String(), mode.String())
	}
}

// elastic is the mode of elastic addresses of a network.
func (ck *importCheck) elastic(p *ipam.PlannedNetwork) ipam.ElasticMode {
	if p.Elastic == "" {
		return ipam.ElasticOff
	}
	mode, err := ipam.ParseElasticMode(p.Elastic)
	ck.refuse(p.Line, err)
	return mode
}

func (ck *importCheck) space(name string) *draftSpace {
	sp := ck.spaces[name]
	if sp == nil {
		sp = &draftSpace{blocks: alloc.NewBlocks(), subnets: map[netip.Prefix]*draftSubnet{}}
		ck.spaces[name] = sp
	}
	return sp
}
