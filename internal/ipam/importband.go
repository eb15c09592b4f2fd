package ipam

import "slices"

// checkBands gives a new subnet its static bands. Of one that is there they are what they are: an import changes nothing.
func (ck *importCheck) checkBands(sub *draftSubnet) {
	inside := sub.bands[:0]
	for _, r := range sub.bands {
		switch {
		case !ck.inside(sub, "static band", r):
		case !sub.old:
			inside = append(inside, r)
		case !slices.Contains(sub.sub.Static, r.Range):
			ck.Add(r.line, "the subnet %s has no static band %s; make it one with `berth network modify %s --static`, or leave it out", sub.sub.CIDR, r, sub.in.n.Name)
		}
	}
	sub.bands = ck.disjoint(sub, "static band", inside, new(int))
	if len(sub.bands) > maxRanges {
		ck.Add(sub.line, "the subnet %s would have %d static bands; it keeps at most %d, so put ranges that lie side by side into one", sub.sub.CIDR, len(sub.bands), maxRanges)
	}
	for _, r := range sub.bands {
		sub.sub.Static = append(sub.sub.Static, r.Range)
	}
	if !sub.old {
		slices.SortFunc(sub.sub.Static, func(a, b Range) int { return a.From().Compare(b.From()) })
	}
}
