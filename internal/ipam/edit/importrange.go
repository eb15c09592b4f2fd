package edit

import (
	"cmp"
	"slices"

	"berth/internal/ipam"
)

// importRange is a static band, a pool or an exclusion of a plan.
type importRange struct {
	ipam.Range
	text string // name or note
	line int
	old  bool // it is there
}

// touch has the ranges of a subnet looked at.
func (d *importDraft) touch(sub *importSubnet) {
	if !sub.touched {
		sub.touched, d.touched = true, append(d.touched, sub)
	}
}

// ranges takes the ranges of the plan that stand with no subnet to those that hold them.
func (d *importDraft) ranges(p *ipam.PlannedNetwork, n *importNetwork) {
	place := func(r importRange, list func(*importSubnet) *[]importRange) {
		if !d.given(r) {
			return
		}
		if sub := d.holding(n, cmp.Or(p.Space, ipam.LocalSpace), r.From(), r.line); sub != nil {
			all := list(sub)
			*all = append(*all, r)
			d.touch(sub)
		}
	}
	for _, band := range p.Static {
		place(importRange{Range: band.Range, line: band.Line}, func(s *importSubnet) *[]importRange { return &s.bands })
	}
	for _, pool := range p.Pools {
		place(importRange{Range: pool.Range, text: pool.Name, line: pool.Line},
			func(s *importSubnet) *[]importRange { return &s.pools })
	}
	for _, x := range p.Exclusions {
		place(importRange{Range: x.Range, text: x.Note, line: x.Line},
			func(s *importSubnet) *[]importRange { return &s.exclusions })
	}
}

// given notes where a range is missing.
func (d *importDraft) given(r importRange) bool {
	if r.IsZero() {
		d.Add(r.line, "a range is missing")
	}
	return !r.IsZero()
}

const (
	// importedRanges is how many pools or exclusions one step adds, so that its writes are bounded.
	importedRanges = 100
	// maxSubnetRecord is the size of the largest record of a subnet, with its ranges; a store takes one of 1 MiB.
	maxSubnetRecord = 900_000
)

// addRanges tries what a plan adds to the ranges of a subnet. One that is new is made with its bands and its first
// pools.
func (d *importDraft) addRanges(sub *importSubnet) {
	if sub.refused || sub.in.refused {
		return
	}
	pools, exclusions := []importRange{}, []importRange{}
	for _, pool := range sub.sub.Pools {
		pools = append(pools, importRange{Range: pool.Range, text: pool.Name, old: true})
	}
	for _, x := range sub.sub.Exclusions {
		exclusions = append(exclusions, importRange{Range: x.Range, text: x.Note, old: true})
	}
	d.addBands(sub)
	for _, r := range sub.pools {
		if d.given(r) && r.text != "" {
			d.refuse(r.line, ipam.CheckName("pool", r.text))
		}
	}
	pools = append(pools, sub.pools...)
	for _, r := range sub.exclusions {
		d.refuse(r.line, ipam.CheckNote(r.text))
		if !d.given(r) {
			continue
		}
		if err := sub.sub.OutsideStatic(r.Range); err != nil {
			d.refuse(r.line, err)
			continue
		}
		exclusions = append(exclusions, r)
	}
	if recordSize(pools)+recordSize(exclusions)+recordSize(sub.bands) > maxSubnetRecord {
		d.Add(sub.line, "the subnet %s would have %d pools and %d exclusions, which are more than one subnet can keep",
			sub.sub.CIDR, len(pools), len(exclusions))
		return
	}
	pools = d.apart(sub, "pool", pools, &d.unchanged.Pools)
	exclusions = d.apart(sub, "exclusion", exclusions, &d.unchanged.Exclusions)
	step := func(kind importKind, some []importRange, make func(*stepper) (ipam.Counts, error)) {
		d.queue = append(d.queue, importTrial{of: sub.in, sub: sub, kind: kind, importStep: importStep{
			network: sub.in.n.ID, subnet: sub.sub.ID, line: some[0].line, writes: 4 * importedRanges, make: make}})
	}
	for part := range slices.Chunk(pools, importedRanges) {
		kind := addsRanges
		made := make([]ipam.Pool, len(part))
		for i, r := range part {
			made[i] = ipam.Pool{Name: r.text, Range: r.Range}
		}
		if sub.fresh && len(sub.sub.Pools) == 0 {
			kind, sub.sub.Pools = tries, made
		}
		step(kind, part, func(s *stepper) (_ ipam.Counts, err error) {
			s.sub, err = s.p.AddPools(s.sub, made...)
			return ipam.Counts{Pools: len(made)}, err
		})
	}
	for part := range slices.Chunk(exclusions, importedRanges) {
		made := make([]ipam.Exclusion, len(part))
		for i, r := range part {
			made[i] = ipam.Exclusion{Range: r.Range, Note: r.text}
		}
		step(addsRanges, part, func(s *stepper) (_ ipam.Counts, err error) {
			s.sub, err = s.p.AddExclusions(s.sub, made...)
			return ipam.Counts{Exclusions: len(made)}, err
		})
	}
}

// addBands gives a new subnet its static bands. Of one that is there they are what they are: an import changes
// nothing.
func (d *importDraft) addBands(sub *importSubnet) {
	for _, r := range sub.bands {
		if d.given(r) && !sub.fresh && !slices.Contains(sub.sub.Static, r.Range) {
			d.AddHelp(ipam.Advise(ipam.DoAddStatic, sub.in.n.Name).OrLeaveOut(), r.line,
				"the subnet %s has no static band %s", sub.sub.CIDR, r)
		}
	}
	if !sub.fresh || len(sub.bands) == 0 {
		return
	}
	sub.sub.Static = nil
	for _, r := range d.apart(sub, "static band", sub.bands, new(int)) {
		sub.sub.Static = append(sub.sub.Static, r.Range)
	}
	slices.SortFunc(sub.sub.Static, func(a, b ipam.Range) int { return a.From().Compare(b.From()) })
	d.queue = append(d.queue, importTrial{of: sub.in, sub: sub, kind: tries, importStep: importStep{
		network: sub.in.n.ID, subnet: sub.sub.ID, line: sub.line, writes: 4,
		make: func(s *stepper) (ipam.Counts, error) {
			edited := *s.sub
			edited.Static, s.sub = sub.sub.Static, &edited
			return ipam.Counts{}, s.SetSubnet(&edited)
		}}})
}

// recordSize is about how many bytes ranges take in the record of a subnet.
func recordSize(list []importRange) int {
	n := len(list) * 40
	for i := range list {
		n += 2*len(list[i].text) + 2*len(list[i].From().String())
	}
	return n
}

// apart refuses ranges that are not inside the subnet or overlap, and answers with those that are to be added, in the
// order of the plan. all begins with those that are there.
func (d *importDraft) apart(sub *importSubnet, noun string, all []importRange, unchanged *int) (left []importRange) {
	all = slices.DeleteFunc(all, func(r importRange) bool { return r.IsZero() }) // of which was told
	ranges := make([]ipam.Range, len(all))
	for i := range all {
		ranges[i] = all[i].Range
	}
	misplaced := make([]bool, len(all))
	for _, m := range MisplacedIn(sub.sub.CIDR, ranges) {
		r := &all[m.At]
		misplaced[m.At] = true
		if m.Over < 0 {
			d.Add(r.line, "the %s %s is not inside the subnet %s", noun, r, sub.sub.CIDR)
			continue
		}
		other := &all[m.Over]
		if other.Range == r.Range && other.old && (r.text == "" || r.text == other.text) {
			*unchanged++
		} else {
			d.overlap(sub, noun, other, r)
		}
	}
	for i := range all {
		if !misplaced[i] && !all[i].old {
			left = append(left, all[i])
		}
	}
	return left
}

// overlap notes that two ranges overlap, at the later of them.
func (d *importDraft) overlap(sub *importSubnet, noun string, a, b *importRange) {
	if b.old || !a.old && b.line < a.line {
		a, b = b, a
	}
	where := lineBefore(a.line)
	if a.old {
		where = ", which is there"
	}
	switch {
	case a.Range == b.Range && a.old:
		d.Add(b.line, "the %s %s of the subnet %s is there as %q and not as %q; change it, or leave the text out",
			noun, b, sub.sub.CIDR, a.text, b.text)
	case a.Range == b.Range:
		d.Add(b.line, "the %s %s of the subnet %s is planned twice%s", noun, b, sub.sub.CIDR, where)
	default:
		d.Add(b.line, "the %s %s of the subnet %s overlaps %s%s", noun, b, sub.sub.CIDR, a, where)
	}
}
