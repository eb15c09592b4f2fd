package alloc

import (
	"net/netip"
	"slices"
	"sort"
)

// Blocks is a collection of prefixes of either family that never overlap: the subnets of one space. Every question
// takes time in proportion to the length of an address and to what it answers, not to the number of prefixes. Host bits
// of what it is given are ignored.
//
// Methods that only read may run beside one another; one that writes may not run beside any other.
type Blocks struct {
	v4, v6 *node
	n      int
}

// NewBlocks returns an empty collection.
func NewBlocks() *Blocks { return new(Blocks) }

// Len returns how many prefixes there are.
func (b *Blocks) Len() int { return b.n }

// Insert puts p in. It answers false where p overlaps what is there, or is not valid.
func (b *Blocks) Insert(p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	root := b.root(p)
	top, ok := (*root).insert(&node{area: areaOf(p), free: nothing})
	if ok {
		*root = top
		b.n++
	}
	return ok
}

// Remove takes exactly p out. It answers false where p is not there, whatever else overlaps it.
func (b *Blocks) Remove(p netip.Prefix) bool {
	if !p.IsValid() {
		return false
	}
	root := b.root(p)
	top, ok := (*root).remove(areaOf(p))
	if ok {
		*root = top
		b.n--
	}
	return ok
}

// Overlap returns the lowest member that has an address in common with p; false where there is none.
func (b *Blocks) Overlap(p netip.Prefix) (netip.Prefix, bool) {
	if !p.IsValid() {
		return netip.Prefix{}, false
	}
	for m := range (*b.root(p)).under(areaOf(p)).members {
		return m.prefix(p.Addr().Is4()), true
	}
	return netip.Prefix{}, false
}

// In returns the members that have an address in common with base, the lowest first.
func (b *Blocks) In(base netip.Prefix) []netip.Prefix {
	if !base.IsValid() {
		return nil
	}
	var in []netip.Prefix
	for m := range (*b.root(base)).under(areaOf(base)).members {
		in = append(in, m.prefix(base.Addr().Is4()))
	}
	return in
}

// Carve returns the lowest prefix of the given length inside base that overlaps no member and nothing of avoid; false
// where there is none. It inserts nothing. The prefixes to avoid may be of any family and size, and overlap; they are
// looked at one by one, so that the time grows with their number.
func (b *Blocks) Carve(base netip.Prefix, bits int, avoid []netip.Prefix) (netip.Prefix, bool) {
	if !base.IsValid() || bits < base.Bits() || bits > base.Addr().BitLen() {
		return netip.Prefix{}, false
	}
	in := areaOf(base)
	key, ok := carve(in, bits, (*b.root(base)).under(in), obstacles(base, avoid))
	if !ok {
		return netip.Prefix{}, false
	}
	return area{key, bits}.prefix(base.Addr().Is4()), true
}

func (b *Blocks) root(p netip.Prefix) **node {
	if p.Addr().Is4() {
		return &b.v4
	}
	return &b.v6
}

// obstacles returns what of avoid lies in base or around it, in order, the larger of two that begin together first.
func obstacles(base netip.Prefix, avoid []netip.Prefix) []area {
	var all []area
	for _, p := range avoid {
		if p.Overlaps(base) { // false for another family, and for one that is not valid
			all = append(all, areaOf(p))
		}
	}
	slices.SortFunc(all, func(a, b area) int {
		if c := a.key.compare(b.key); c != 0 {
			return c
		}
		return a.bits - b.bits
	})
	return all
}

// carve returns where the lowest free area of the given length in r begins. n is the tree of the members in r, or the
// member around it; avoid is what else lies in r, or around it, in order, so that one around r is the first. Only areas
// with something of avoid in them can be searched in vain, so at most len(avoid) * 128 are.
func carve(r area, bits int, n *node, avoid []area) (u128, bool) {
	switch {
	case n == nil && len(avoid) == 0:
		return r.key, true
	case r.bits == bits || n.freeIn(r.bits) > bits:
		return u128{}, false
	case len(avoid) > 0 && avoid[0].bits <= r.bits:
		return u128{}, false
	}
	left, right := r.halves()
	low, high := n.halves(r.bits)
	k := sort.Search(len(avoid), func(i int) bool { return !avoid[i].key.less(right.key) })
	if key, ok := carve(left, bits, low, avoid[:k]); ok {
		return key, true
	}
	return carve(right, bits, high, avoid[k:])
}
