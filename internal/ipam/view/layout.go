package view

import (
	"context"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// coverage is what is planned for the addresses of a subnet, as ordered ranges that cover it. It ignores leases and
// reservations.
type coverage []stretch

// stretch is a range of the coverage with one state.
type stretch struct {
	netipx.IPRange
	state      ipam.AddressState // excluded, free or outside
	pool, note string
}

// coverageOf returns the coverage of a part of a subnet.
func coverageOf(sx *ledger.SubnetIndex, within netip.Prefix) coverage {
	sub := sx.Record()
	all := make(coverage, 0, len(sub.Pools)+2*len(sub.Exclusions)+len(sub.Static)+2) // a hole splits a pool in two
	r := netipx.RangeOfPrefix(within)
	put := func(one netipx.IPRange, s stretch) {
		if both, ok := ledger.Intersect(one, r); ok {
			s.IPRange = both
			all = append(all, s)
		}
	}
	for _, p := range sx.OpenPools(sub) {
		for _, open := range p.Ranges {
			put(open, stretch{state: ipam.AddressFree, pool: p.Name})
		}
	}
	usable, whole := sx.Usable(), netipx.RangeOfPrefix(sub.CIDR)
	closed := func(one ipam.Range, note string) {
		if both, ok := ledger.Intersect(one.IPRange, usable); ok {
			put(both, stretch{state: ipam.AddressExcluded, note: note})
		}
	}
	for _, x := range sub.Exclusions {
		closed(x.Range, x.Note)
	}
	for _, band := range sub.Static {
		closed(band, "for static use")
	}
	if whole.From() != usable.From() {
		put(netipx.IPRangeFrom(whole.From(), usable.From().Prev()), noHost())
	}
	if whole.To() != usable.To() {
		put(netipx.IPRangeFrom(usable.To().Next(), whole.To()), noHost())
	}
	slices.SortFunc(all, func(a, b stretch) int { return a.From().Compare(b.From()) })
	return all.filled(r)
}

func noHost() stretch { return stretch{state: ipam.AddressExcluded, note: "no host address"} }

// filled adds the gaps between the ranges in r, as ranges outside all pools.
func (g coverage) filled(r netipx.IPRange) coverage {
	all := make(coverage, 0, 2*len(g)+1)
	next, more := r.From(), true
	for _, s := range g {
		if next.Less(s.From()) {
			all = append(all, stretch{IPRange: netipx.IPRangeFrom(next, s.From().Prev()), state: ipam.AddressOutside})
		}
		all = append(all, s)
		if more = s.To().Less(r.To()); more {
			next = s.To().Next()
		}
	}
	if more {
		all = append(all, stretch{IPRange: netipx.IPRangeFrom(next, r.To()), state: ipam.AddressOutside})
	}
	return all
}

// at returns the index of the range that contains an address, or of the next one after it.
func (g coverage) at(addr netip.Addr) int {
	i, _ := slices.BinarySearchFunc(g, addr, func(s stretch, a netip.Addr) int { return s.To().Compare(a) })
	return i
}

// Layout describes how the addresses of a subnet, by id, are used. Its parts come from memory, its rows from the
// records.
func (s Views) Layout(ctx context.Context, subnet ipam.ID, f ipam.LayoutFilter) (ipam.Layout, error) {
	out := ipam.Layout{Within: f.Within.Masked()}
	l, err := s.homes.Having(subnet)
	if err != nil {
		return out, err
	}
	g, err := inSubnet(ctx, s, subnet, func(l *ledger.Ledger, c *ledger.Change, sx *ledger.SubnetIndex,
		_ *ipam.Network) (coverage, error) {
		out.Subnet = describe(l, c.Index(), sx.Record(), sx)
		if cidr := out.Subnet.CIDR; !f.Within.IsValid() {
			out.Within = cidr
		} else if !cidr.Contains(out.Within.Addr()) || out.Within.Bits() < cidr.Bits() {
			return nil, ipam.Refuse(ipam.ErrInvalid, "%s is not in the subnet %s", out.Within, cidr)
		}
		return coverageOf(sx, out.Within), nil
	})
	if err != nil {
		return out, err
	}
	var parts []netip.Prefix
	err = l.View(ctx, func(tx store.Tx) (err error) {
		rows := rowing{s: l, sub: &out.Subnet, coverage: g, f: f}
		if out.Rows, out.Next, err = rows.read(tx, out.Within); err != nil {
			return err
		}
		parts, err = partsOf(tx, subnet, out.Within)
		return err
	})
	if err != nil {
		return out, err
	}
	l.Read(func(ix *ledger.Index) {
		sx := ix.Subnet(subnet)
		if sx == nil {
			return // the subnet was removed meanwhile; its rows were read before
		}
		n := newCounting(sx, out.Within, l.Now())
		out.Sum = n.in([]netipx.IPRange{netipx.RangeOfPrefix(out.Within)})[0]
		ranges := make([]netipx.IPRange, len(parts))
		for i, p := range parts {
			ranges[i] = netipx.RangeOfPrefix(p)
		}
		for i, counts := range n.in(ranges) {
			out.Parts = append(out.Parts, ipam.LayoutPart{Prefix: parts[i], StateCounts: counts})
		}
	})
	return out, nil
}

// partBits is how many bits distinguish the parts of a layout.
const partBits = 8

// mostSplit is the most host bits of a prefix that is split into equal parts. In a larger IPv6 prefix nearly all parts
// would be empty.
const mostSplit = 24

// partsOf returns the parts into which a prefix is divided, or none if it has few addresses.
func partsOf(tx store.Tx, subnet ipam.ID, within netip.Prefix) (parts []netip.Prefix, err error) {
	hosts := within.Addr().BitLen() - within.Bits()
	switch {
	case hosts <= partBits:
		return nil, nil
	case within.Addr().Is4() || hosts <= mostSplit:
		bits := within.Bits() + partBits
		next := netip.PrefixFrom(within.Addr(), bits)
		for range ipam.MaxParts {
			parts = append(parts, next)
			next = netip.PrefixFrom(ipam.LastAddr(next).Next(), bits)
		}
		return parts, nil
	}
	for bits := within.Addr().BitLen() - partBits; bits > within.Bits(); bits -= partBits {
		if parts, err = takenParts(tx, subnet, within, bits); err != nil || len(parts) <= ipam.MaxParts {
			return parts, err
		}
	}
	return []netip.Prefix{within}, nil
}

// takenParts returns the parts, of a length in bits, in which an address has a record. It returns more than MaxParts
// only to show that there are more.
func takenParts(tx store.Tx, subnet ipam.ID, within netip.Prefix, bits int) (parts []netip.Prefix, err error) {
	r := ledger.LeasesOf(subnet)
	r.From, r.Limit = ledger.LeaseKey(nil, subnet, within.Addr()), 1
	for len(parts) <= ipam.MaxParts {
		var part netip.Prefix
		for rec, err := range tx.Scan(r) {
			if err != nil {
				return nil, err
			}
			_, addr, _ := ledger.LeaseKeyParts(rec.Key)
			part = netip.PrefixFrom(addr, bits).Masked()
		}
		if !part.IsValid() || !within.Contains(part.Addr()) {
			return parts, nil
		}
		parts = append(parts, part)
		next := ipam.LastAddr(part).Next()
		if !next.IsValid() || !within.Contains(next) {
			return parts, nil
		}
		r.From = ledger.LeaseKey(nil, subnet, next)
	}
	return parts, nil
}
