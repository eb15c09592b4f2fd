package alloc

import (
	"math"
	"math/bits"
	"net/netip"

	"go4.org/netipx"
)

// Set is a set of addresses of one prefix, of either family and any length. Finding the next free address, adding and
// removing one take some tens of nanoseconds whether the set is empty or almost full; memory is some 27
// bytes for a scattered member, 8 KiB for a crowded block of 2^16 addresses, and nothing for a full one.
//
// Methods that only read may run beside one another; one that writes may not run beside any other.
type Set struct {
	prefix netip.Prefix
	base   u128 // the prefix's first address
	max    u128 // the offset of its last one
	is4    bool
	width  int // bits of an address; 0 over an invalid prefix

	leaves []leaf // in order; empty ones are taken out
	single uint64 // members in lists and bitmaps
	full   u128   // blocks in full leaves

	size  int // addresses in a block
	crowd int // entries that a list has at most: as many as take the memory of a bitmap
	// all ones, from the block that became full last: so giving back and taking at the edge of full is cheap
	spare *bitmap
}

// entrySize is the bytes that a list takes for one entry.
const entrySize = 16

// NewSet returns the empty set over p; host bits of p are ignored. A set over an invalid p stays empty.
func NewSet(p netip.Prefix) *Set {
	p = p.Masked()
	if !p.IsValid() {
		return &Set{}
	}
	r := netipx.RangeOfPrefix(p)
	s := &Set{prefix: p, base: valueOf(r.From()), is4: p.Addr().Is4(), width: p.Addr().BitLen()}
	s.max = valueOf(r.To()).sub(s.base)
	s.size = 1 << min(blockBits, s.width-p.Bits())
	s.crowd = max(4, s.size/8/entrySize)
	return s
}

// Prefix returns the prefix whose addresses the set may hold.
func (s *Set) Prefix() netip.Prefix { return s.prefix }

// Len returns how many addresses the set holds, at most the largest uint64.
func (s *Set) Len() uint64 {
	return saturate(s.full, s.single)
}

// saturate returns the addresses of some full blocks and n further ones, at most the largest uint64.
func saturate(full u128, n uint64) uint64 {
	if full.hi != 0 || full.lo>>(64-blockBits) != 0 {
		return math.MaxUint64
	}
	sum, carry := bits.Add64(full.lo<<blockBits, n, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// Contains says whether a is in the set.
func (s *Set) Contains(a netip.Addr) bool {
	x, ok := s.offset(a)
	if !ok {
		return false
	}
	i, held := s.find(blockOf(x))
	return held && s.leaves[i].has(x)
}

// NextFree returns the lowest address of r that lies in the prefix and is not in the set; false where there is none.
func (s *Set) NextFree(r netipx.IPRange) (netip.Addr, bool) {
	x, end, ok := s.cut(r)
	if !ok {
		return netip.Addr{}, false
	}
	i, held := s.find(blockOf(x))
	for held {
		last, taken := s.leaves[i].takenUntil(x)
		if !taken {
			break
		}
		if !last.less(end) {
			return netip.Addr{}, false
		}
		x = last.next()
		// x is free unless the next leaf begins with its block. Full leaves never touch one another, and a list or
		// bitmap that is entered at its beginning has a free address: so this goes round three times at most.
		i++
		held = i < len(s.leaves) && s.leaves[i].first == blockOf(x)
	}
	return s.base.add(x).addr(s.is4), true
}

// NextTaken returns the lowest address of r that is in the set; false where there is none.
func (s *Set) NextTaken(r netipx.IPRange) (netip.Addr, bool) {
	x, end, ok := s.cut(r)
	if !ok {
		return netip.Addr{}, false
	}
	i, _ := s.find(blockOf(x))
	for i = max(i, 0); i < len(s.leaves) && !blockOf(end).less(s.leaves[i].first); i++ {
		taken, ok := s.leaves[i].nextTaken(x)
		switch {
		case !ok:
		case end.less(taken):
			return netip.Addr{}, false
		default:
			return s.base.add(taken).addr(s.is4), true
		}
	}
	return netip.Addr{}, false
}

// CountIn returns how many addresses of r the set holds, at most the largest uint64. Its time grows with the size of r
// where that is crowded: some 500 ns for the bits of one block.
func (s *Set) CountIn(r netipx.IPRange) uint64 {
	x, end, ok := s.cut(r)
	if !ok {
		return 0
	}
	if x == (u128{}) && end == s.max {
		return s.Len()
	}
	var n u128 // the whole of ::/0, which it could not count, is answered above
	i, _ := s.find(blockOf(x))
	for i = max(i, 0); i < len(s.leaves) && !blockOf(end).less(s.leaves[i].first); i++ {
		n = n.add(s.leaves[i].count(x, end))
	}
	if n.hi != 0 {
		return math.MaxUint64
	}
	return n.lo
}

// offset returns how far a lies behind the prefix's first address; false where it lies outside.
func (s *Set) offset(a netip.Addr) (u128, bool) {
	if s.is4 {
		x := valueOf(a).sub(s.base) // below the base it comes round to something far above max
		return x, a.Is4() && !s.max.less(x)
	}
	if !s.prefix.Contains(a) {
		return u128{}, false
	}
	return valueOf(a).sub(s.base), true
}

// cut returns the offsets of the first and the last address of the part of r that lies in the prefix; false where
// there is none.
func (s *Set) cut(r netipx.IPRange) (first, last u128, ok bool) {
	from, to := r.From(), r.To() // they have no zones: netipx makes no range with one
	if s.width == 0 || from.BitLen() != s.width || to.BitLen() != from.BitLen() {
		return u128{}, u128{}, false
	}
	first, last = valueOf(from), valueOf(to)
	top := s.base.add(s.max)
	if last.less(first) || last.less(s.base) || top.less(first) {
		return u128{}, u128{}, false
	}
	if first.less(s.base) {
		first = s.base
	}
	if top.less(last) {
		last = top
	}
	return first.sub(s.base), last.sub(s.base), true
}

// find returns the place of the last leaf that does not begin behind block (-1: there is none), and whether block is
// that leaf's business.
func (s *Set) find(block u128) (int, bool) {
	lo, hi := 0, len(s.leaves)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if block.less(s.leaves[mid].first) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo - 1, lo > 0 && s.leaves[lo-1].holds(block)
}
