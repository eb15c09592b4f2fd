package bulk

import (
	"cmp"
	"fmt"
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
)

// draftSubnet is a subnet as it will be.
type draftSubnet struct {
	in         *draftNetwork
	line       int
	old        bool         // it is there
	planned    bool         // the plan describes it
	touched    bool         // the plan has something of it or in it
	sub        *ipam.Subnet // its record, or the one to be made, without the ranges of the plan
	bands      []draftRange
	pools      []draftRange
	exclusions []draftRange
}

// draftRange is a static band, a pool or an exclusion.
type draftRange struct {
	ipam.Range
	text string // name or note
	line int
	old  bool // it is there
}

// presentSubnets takes the subnets of a network that is there into its draft.
func (ck *importCheck) presentSubnets(d *draftNetwork) error {
	subnets, err := view.ViewSubnets(ck.Ledger, ck.tx, d.n.ID)
	for _, sub := range subnets {
		ck.space(sub.Space).subnets[sub.CIDR] = &draftSubnet{in: d, old: true, sub: sub}
		d.note(sub)
	}
	return err
}

// note keeps what only one subnet of a network can have.
func (d *draftNetwork) note(sub *ipam.Subnet) {
	if sub.Name != "" {
		d.names[sub.Name] = sub.CIDR
	}
	if sub.DHCP {
		d.dhcp[sub.CIDR.Addr().Is6()] = sub.CIDR
	}
}

// touch has the import look at the subnet.
func (sub *draftSubnet) touch() {
	if !sub.touched {
		sub.touched = true
		sub.in.subnets = append(sub.in.subnets, sub)
	}
}

// subnet takes a subnet of the plan into the draft of its network.
func (ck *importCheck) subnet(d *draftNetwork, p *ipam.PlannedSubnet) {
	if err := edit.CheckPrefix(p.CIDR); err != nil {
		ck.refuse(p.Line, err)
		return
	}
	draft := ck.space(d.n.Space).subnets[p.CIDR]
	switch {
	case draft != nil && draft.planned:
		ck.Add(p.Line, "the subnet %s of space %s is planned twice%s", p.CIDR, d.n.Space, lineBefore(draft.line))
		return
	case draft != nil && draft.in == d:
		ck.unchanged.Subnets++
		ck.compareSubnet(draft.sub, p)
	default:
		if draft = ck.newSubnet(d, p); draft == nil {
			return
		}
	}
	draft.planned, draft.line = true, p.Line
	draft.touch()
	for _, band := range p.Static {
		draft.bands = append(draft.bands, draftRange{Range: band.Range, line: band.Line})
	}
	for _, pool := range p.Pools {
		draft.pools = append(draft.pools, draftRange{Range: pool.Range, text: pool.Name, line: pool.Line})
	}
	for _, x := range p.Exclusions {
		draft.exclusions = append(draft.exclusions, draftRange{Range: x.Range, text: x.Note, line: x.Line})
	}
}

// newSubnet drafts a subnet that is not there; nil where there is no room for it.
func (ck *importCheck) newSubnet(d *draftNetwork, p *ipam.PlannedSubnet) *draftSubnet {
	space := ck.space(d.n.Space)
	if other, overlaps := space.blocks.Overlap(p.CIDR); overlaps {
		ck.Add(p.Line, "the subnet %s overlaps %s of network %s%s", p.CIDR, other, space.subnets[other].in.n.Name,
			lineBefore(space.subnets[other].line))
		return nil
	}
	if why := ck.overlapsPresent(d.n.Space, p.CIDR); why != "" {
		ck.Add(p.Line, "%s", why)
		return nil
	}
	sub := p.Spec().Subnet(ck.Member().Marked(ipam.NewID()), d.n, p.CIDR)
	ck.refuse(p.Line, sub.CheckTexts())
	ck.refuse(p.Line, sub.CheckLAN(d.n))
	if other, taken := d.names[p.Name]; taken {
		ck.Add(p.Line, "two subnets of network %s would be named %s: %s and %s", d.n.Name, p.Name, other, p.CIDR)
	}
	if why := allocator.NotHost(p.CIDR, p.Gateway); p.Gateway.IsValid() && why != "" {
		ck.Add(p.Line, "the gateway %s is %s", p.Gateway, why)
	}
	if other, taken := d.dhcp[p.CIDR.Addr().Is6()]; taken && sub.DHCP { // GA-12
		ck.Add(p.Line, "two subnets of network %s would have DHCP: %s and %s; one cable has one for each family",
			d.n.Name, other, p.CIDR)
	}
	d.note(sub)
	draft := &draftSubnet{in: d, sub: sub}
	space.blocks.Insert(p.CIDR)
	space.subnets[p.CIDR] = draft
	return draft
}

// overlapsPresent says which subnet that is there overlaps one of the plan; empty where none does.
func (ck *importCheck) overlapsPresent(space string, cidr netip.Prefix) string {
	return ledger.Ask(ck.Ledger, func(ix *ledger.Index) string {
		present := ix.Overlapping(space, cidr)
		if present == nil {
			return ""
		}
		other := present.Record().CIDR
		name := "?"
		if n := ix.Network(present.Record().Network); n != nil {
			name = n.Name
		}
		if other == cidr {
			return fmt.Sprintf("network %s has the subnet %s of space %s already", name, cidr, space)
		}
		return fmt.Sprintf("the subnet %s overlaps %s, which network %s has in the space %s", cidr, other, name, space)
	})
}

// compareSubnet refuses what the plan wants otherwise than it is.
func (ck *importCheck) compareSubnet(old *ipam.Subnet, p *ipam.PlannedSubnet) {
	for _, differs := range p.Against(old) {
		ck.AddHelp(ipam.Advise(ipam.DoChangeSubnet).OrLeaveOut(), p.Line, "the %s of the subnet %s is %s and not %s",
			differs.What, p.CIDR, differs.Is, differs.Wanted)
	}
}

// ranges takes the ranges of the plan that stand with no subnet into the drafts of those that hold them.
func (ck *importCheck) ranges(p *ipam.PlannedNetwork, d *draftNetwork) error {
	for _, band := range p.Static {
		r := draftRange{Range: band.Range, line: band.Line}
		sub, err := ck.holdingRange(p, d, r)
		if err != nil {
			return err
		}
		if sub != nil {
			sub.bands = append(sub.bands, r)
		}
	}
	for _, pool := range p.Pools {
		r := draftRange{Range: pool.Range, text: pool.Name, line: pool.Line}
		sub, err := ck.holdingRange(p, d, r)
		if err != nil {
			return err
		}
		if sub != nil {
			sub.pools = append(sub.pools, r)
		}
	}
	for _, x := range p.Exclusions {
		r := draftRange{Range: x.Range, text: x.Note, line: x.Line}
		sub, err := ck.holdingRange(p, d, r)
		if err != nil {
			return err
		}
		if sub != nil {
			sub.exclusions = append(sub.exclusions, r)
		}
	}
	return nil
}

func (ck *importCheck) holdingRange(p *ipam.PlannedNetwork, d *draftNetwork, r draftRange) (*draftSubnet, error) {
	if r.IsZero() {
		ck.Add(r.line, "a range is missing")
		return nil, nil
	}
	return ck.holding(p, d, r.From(), r.line)
}

// holding finds the subnet that has an address: one of d, or, where that is nil, any of the space. It notes a problem
// and answers nil where there is none.
func (ck *importCheck) holding(p *ipam.PlannedNetwork, d *draftNetwork, addr netip.Addr,
	line int) (*draftSubnet, error) {
	name := cmp.Or(p.Space, ipam.LocalSpace)
	if d != nil {
		name = d.n.Space
	}
	sub, err := ck.subnetAt(ck.space(name), name, addr)
	switch {
	case err != nil:
		return nil, err
	case sub == nil && d != nil:
		ck.Add(line, "no subnet of network %s holds %s", d.n.Name, addr)
		return nil, nil
	case sub == nil:
		ck.Add(line, "no subnet of the space %s holds %s", name, addr)
		return nil, nil
	case d != nil && sub.in != d:
		ck.Add(line, "%s is in the subnet %s of network %s, and not in network %s", addr, sub.sub.CIDR, sub.in.n.Name,
			d.n.Name)
		return nil, nil
	case sub.in.n.Stage != "":
		ck.Add(line, "%s is in network %s, which is being imported or removed; import again when that has ended", addr,
			sub.in.n.Name)
		return nil, nil
	}
	sub.touch()
	return sub, nil
}

// subnetAt is the subnet of a space that has an address, of the plan or of what is there; nil where none has.
func (ck *importCheck) subnetAt(sp *draftSpace, name string, addr netip.Addr) (*draftSubnet, error) {
	if sp.last != nil && sp.last.sub.CIDR.Contains(addr) {
		return sp.last, nil
	}
	host := netip.PrefixFrom(addr, addr.BitLen())
	if cidr, ok := sp.blocks.Overlap(host); ok {
		sp.last = sp.subnets[cidr]
		return sp.last, nil
	}
	known := ck.presentAt(name, host)
	if known.Value == nil {
		return nil, nil
	}
	old, err := view.ViewSubnet(ck.tx, known)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, nil
	}
	if sub := sp.subnets[old.CIDR]; sub != nil {
		sp.last = sub
		return sub, nil
	}
	n, err := view.ViewNetwork(ck.Ledger, ck.tx, old.Network)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, nil
	}
	d := ck.byID[n.ID]
	if d == nil {
		d = ck.draft(n)
	}
	sp.last = &draftSubnet{in: d, old: true, sub: old}
	sp.subnets[old.CIDR] = sp.last
	return sp.last, nil
}

// presentAt is what the index knows of the subnet that has an address.
func (ck *importCheck) presentAt(space string, host netip.Prefix) ledger.Cached[ipam.Subnet] {
	return ledger.Ask(ck.Ledger, func(ix *ledger.Index) (known ledger.Cached[ipam.Subnet]) {
		if sx := ix.Overlapping(space, host); sx != nil {
			known = sx.Cached()
		}
		return known
	})
}
