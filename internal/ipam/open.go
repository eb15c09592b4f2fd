package ipam

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// openPool is what a pool leaves for automatic addresses: its host addresses less the exclusions and static bands (GA-8).
type openPool struct {
	Pool
	ranges []netipx.IPRange // disjoint, the lowest first
}

// contains tells whether an automatic request may be given addr.
func (p *openPool) contains(addr netip.Addr) bool {
	i, found := slices.BinarySearchFunc(p.ranges, addr, func(r netipx.IPRange, a netip.Addr) int { return r.From().Compare(a) })
	return found || i > 0 && p.ranges[i-1].Contains(addr)
}

// within is the part of the pool that lies in r.
func (p *openPool) within(r netipx.IPRange) openPool {
	part := openPool{Pool: p.Pool}
	for _, own := range p.ranges {
		if both, ok := intersect(own, r); ok {
			part.ranges = append(part.ranges, both)
		}
	}
	return part
}

// openPools are the pools of sub, in order. They are worked out once for each state of the subnet's record.
func (sx *subnetIndex) openPools(sub *Subnet) []openPool {
	if sx.openOf == sub {
		return sx.open
	}
	open, closed := make([]openPool, 0, len(sub.Pools)), sub.closed()
	for _, p := range sub.Pools {
		open = append(open, openPool{p, openRanges(p.Range.IPRange, sx.usable, closed)})
	}
	sx.open, sx.openOf = open, sub
	return open
}

// closed is where nothing automatic comes from: the exclusions and the static bands, which never overlap one another, in
// order (GA-8, BO-10).
func (sub *Subnet) closed() []Range {
	all := make([]Range, 0, len(sub.Exclusions)+len(sub.Static))
	for _, x := range sub.Exclusions {
		all = append(all, x.Range)
	}
	if len(sub.Static) > 0 {
		all = append(all, sub.Static...)
		slices.SortFunc(all, func(a, b Range) int { return a.From().Compare(b.From()) })
	}
	return all
}

// openRanges is the part of r that is usable and not closed.
func openRanges(r, usable netipx.IPRange, closed []Range) (left []netipx.IPRange) {
	r, ok := intersect(r, usable)
	if !ok {
		return nil
	}
	for _, x := range closed[endingBefore(closed, r.From()):] {
		if r.To().Less(x.From()) {
			break
		}
		if r.From().Less(x.From()) {
			left = append(left, netipx.IPRangeFrom(r.From(), x.From().Prev()))
		}
		if !x.To().Less(r.To()) {
			return left
		}
		r = netipx.IPRangeFrom(x.To().Next(), r.To())
	}
	return append(left, r)
}

// endingBefore counts the ranges, disjoint and in order, that end before addr.
func endingBefore(ranges []Range, addr netip.Addr) int {
	n, _ := slices.BinarySearchFunc(ranges, addr, func(r Range, a netip.Addr) int { return r.To().Compare(a) })
	return n
}

// exclusionsBefore counts the exclusions that end before addr.
func (sub *Subnet) exclusionsBefore(addr netip.Addr) int {
	n, _ := slices.BinarySearchFunc(sub.Exclusions, addr, func(x Exclusion, a netip.Addr) int { return x.Range.To().Compare(a) })
	return n
}

// overlappingPool is a pool that has an address of r, nil where none has.
func (sub *Subnet) overlappingPool(r Range) *Pool {
	for i := range sub.Pools {
		if sub.Pools[i].Range.Overlaps(r.IPRange) {
			return &sub.Pools[i]
		}
	}
	return nil
}

// placeOfExclusion is where an exclusion of r belongs among the others, and the one that has an address of r, nil where none
// has.
func (sub *Subnet) placeOfExclusion(r Range) (at int, other *Exclusion) {
	at = sub.exclusionsBefore(r.From())
	if at < len(sub.Exclusions) && sub.Exclusions[at].Range.Overlaps(r.IPRange) {
		return at, &sub.Exclusions[at]
	}
	return at, nil
}

// exclusion is the one that addr lies in, nil where it lies in none.
func (sub *Subnet) exclusion(addr netip.Addr) *Exclusion {
	n := sub.exclusionsBefore(addr)
	if n < len(sub.Exclusions) && sub.Exclusions[n].Range.Contains(addr) {
		return &sub.Exclusions[n]
	}
	return nil
}

// intersect is the part that a and b share; false where they share nothing, or are of different families.
func intersect(a, b netipx.IPRange) (netipx.IPRange, bool) {
	if a.From().Is4() != b.From().Is4() {
		return netipx.IPRange{}, false
	}
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	r := netipx.IPRangeFrom(from, to)
	return r, r.IsValid()
}

// covers tells whether all of r is in p.
func covers(p netip.Prefix, r netipx.IPRange) bool { return p.Contains(r.From()) && p.Contains(r.To()) }
