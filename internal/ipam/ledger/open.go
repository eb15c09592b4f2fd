package ledger

import (
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
)

// OpenPool is a pool with the part of it that automatic addresses come from: its host addresses less the exclusions and
// static bands.
type OpenPool struct {
	ipam.Pool
	Ranges []netipx.IPRange // disjoint, the lowest first
}

// Contains reports whether an automatic request may get addr.
func (p *OpenPool) Contains(addr netip.Addr) bool {
	i, found := slices.BinarySearchFunc(p.Ranges, addr,
		func(r netipx.IPRange, a netip.Addr) int { return r.From().Compare(a) })
	return found || i > 0 && p.Ranges[i-1].Contains(addr)
}

// Within is the part of the pool that lies in r.
func (p *OpenPool) Within(r netipx.IPRange) OpenPool {
	part := OpenPool{Pool: p.Pool}
	for _, own := range p.Ranges {
		if both, ok := Intersect(own, r); ok {
			part.Ranges = append(part.Ranges, both)
		}
	}
	return part
}

// OpenPools returns the pools of sub, in order. They are computed once per version of the subnet's record.
func (sx *SubnetIndex) OpenPools(sub *ipam.Subnet) []OpenPool {
	if sx.openOf == sub {
		return sx.open
	}
	open, closed := make([]OpenPool, 0, len(sub.Pools)), ClosedRanges(sub)
	for _, p := range sub.Pools {
		open = append(open, OpenPool{p, OpenRanges(p.Range.IPRange, sx.usable, closed)})
	}
	sx.open, sx.openOf = open, sub
	return open
}

// ClosedRanges are the exclusions and static bands of a subnet, lowest first. They never overlap, and no automatic
// address comes from them.
func ClosedRanges(sub *ipam.Subnet) []ipam.Range {
	all := make([]ipam.Range, 0, len(sub.Exclusions)+len(sub.Static))
	for _, x := range sub.Exclusions {
		all = append(all, x.Range)
	}
	if len(sub.Static) > 0 {
		all = append(all, sub.Static...)
		slices.SortFunc(all, func(a, b ipam.Range) int { return a.From().Compare(b.From()) })
	}
	return all
}

// OpenRanges returns the parts of r that are usable and not closed.
func OpenRanges(r, usable netipx.IPRange, closed []ipam.Range) (left []netipx.IPRange) {
	r, ok := Intersect(r, usable)
	if !ok {
		return nil
	}
	for _, x := range closed[ipam.EndingBefore(closed, r.From()):] {
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

// Intersect returns the part that a and b share. It returns false if they share nothing or have different families.
func Intersect(a, b netipx.IPRange) (netipx.IPRange, bool) {
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
