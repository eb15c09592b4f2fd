package bulk

import (
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
)

// maxSubnetRecord is the size of the largest record of a subnet, with its pools and exclusions; a store takes one of 1
// MiB.
const maxSubnetRecord = 900_000

// checkRanges holds the bands, pools and exclusions of a subnet against it and one another, and leaves those that are
// to be added.
func (ck *importCheck) checkRanges(sub *draftSubnet) {
	ck.checkBands(sub)
	pools, exclusions := []draftRange{}, []draftRange{}
	for _, pool := range sub.sub.Pools {
		pools = append(pools, draftRange{Range: pool.Range, text: pool.Name, old: true})
	}
	for _, x := range sub.sub.Exclusions {
		exclusions = append(exclusions, draftRange{Range: x.Range, text: x.Note, old: true})
	}
	for _, r := range sub.pools {
		if r.text != "" {
			ck.refuse(r.line, ipam.CheckName("pool", r.text))
		}
		if ck.given(r) { // one without a host address may be what a removal has left
			pools = append(pools, r)
		}
	}
	for _, r := range sub.exclusions {
		ck.refuse(r.line, ipam.CheckNote(r.text))
		if ck.given(r) {
			exclusions = append(exclusions, r)
		}
	}
	sub.pools = ck.apart(sub, "pool", pools, &ck.unchanged.Pools)
	sub.exclusions = ck.apart(sub, "exclusion", exclusions, &ck.unchanged.Exclusions)
	for _, r := range sub.exclusions {
		ck.refuse(r.line, sub.sub.OutsideStatic(r.Range))
	}
	if n := recordSize(pools) + recordSize(exclusions) + recordSize(sub.bands); n > maxSubnetRecord ||
		len(pools) > ipam.MaxRanges || len(exclusions) > ipam.MaxRanges {
		ck.Add(sub.line, "the subnet %s would have %d pools and %d exclusions, which are more than one subnet can keep",
			sub.sub.CIDR,
			len(pools), len(exclusions))
	}
}

// checkBands gives a new subnet its static bands. Of one that is there they are what they are: an import changes
// nothing.
func (ck *importCheck) checkBands(sub *draftSubnet) {
	bands := sub.bands[:0]
	for _, r := range sub.bands {
		switch {
		case !ck.given(r):
		case !sub.old:
			bands = append(bands, r)
		case !slices.Contains(sub.sub.Static, r.Range):
			ck.AddHelp(ipam.Advise(ipam.DoAddStatic, sub.in.n.Name).OrLeaveOut(), r.line,
				"the subnet %s has no static band %s", sub.sub.CIDR, r)
		}
	}
	sub.bands = ck.apart(sub, "static band", bands, new(int))
	if len(sub.bands) > ipam.MaxRanges {
		ck.Add(sub.line, "the subnet %s would have %d static bands; it keeps at most %d, so put ranges that lie side "+
			"by side into one", sub.sub.CIDR, len(sub.bands), ipam.MaxRanges)
	}
	for _, r := range sub.bands {
		sub.sub.Static = append(sub.sub.Static, r.Range)
	}
	if !sub.old {
		slices.SortFunc(sub.sub.Static, func(a, b ipam.Range) int { return a.From().Compare(b.From()) })
	}
}

// recordSize is about how many bytes ranges take in the record of a subnet.
func recordSize(list []draftRange) int {
	n := len(list) * 40
	for i := range list {
		n += 2*len(list[i].text) + 2*len(list[i].From().String())
	}
	return n
}

// given notes where a range is missing.
func (ck *importCheck) given(r draftRange) bool {
	if r.IsZero() {
		ck.Add(r.line, "a range is missing")
	}
	return !r.IsZero()
}

// apart refuses ranges that are not inside the subnet or overlap, and answers with those that are to be added, in the
// order of the plan. all begins with those that are there.
func (ck *importCheck) apart(sub *draftSubnet, noun string, all []draftRange, unchanged *int) (left []draftRange) {
	ranges := make([]ipam.Range, len(all))
	for i := range all {
		ranges[i] = all[i].Range
	}
	misplaced := make([]bool, len(all))
	for _, m := range edit.MisplacedIn(sub.sub.CIDR, ranges) {
		r := &all[m.At]
		misplaced[m.At] = true
		if m.Over < 0 {
			ck.Add(r.line, "the %s %s is not inside the subnet %s", noun, r, sub.sub.CIDR)
			continue
		}
		other := &all[m.Over]
		if other.Range == r.Range && other.old && (r.text == "" || r.text == other.text) {
			*unchanged++
		} else {
			ck.overlap(sub, noun, other, r)
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
func (ck *importCheck) overlap(sub *draftSubnet, noun string, a, b *draftRange) {
	if b.old || !a.old && b.line < a.line {
		a, b = b, a
	}
	where := lineBefore(a.line)
	if a.old {
		where = ", which is there"
	}
	switch {
	case a.Range == b.Range && a.old:
		ck.Add(b.line, "the %s %s of the subnet %s is there as %q and not as %q; change it, or leave the text out",
			noun, b, sub.sub.CIDR, a.text, b.text)
	case a.Range == b.Range:
		ck.Add(b.line, "the %s %s of the subnet %s is planned twice%s", noun, b, sub.sub.CIDR, where)
	default:
		ck.Add(b.line, "the %s %s of the subnet %s overlaps %s%s", noun, b, sub.sub.CIDR, a, where)
	}
}
