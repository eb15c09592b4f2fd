package alloc

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Blocks is a collection of prefixes of either family that never overlap. Host bits of what it is given are ignored. It
// is not safe for use by several goroutines at once.
type Blocks struct {
	all []netip.Prefix
}

// NewBlocks returns an empty collection.
func NewBlocks() *Blocks { return new(Blocks) }

// Len returns how many prefixes there are.
func (b *Blocks) Len() int { return len(b.all) }

// Insert puts p in. It answers false where p overlaps what is there, or is not valid.
func (b *Blocks) Insert(p netip.Prefix) bool {
	p = p.Masked()
	if _, taken := b.Overlap(p); taken || !p.IsValid() {
		return false
	}
	b.all = append(b.all, p)
	slices.SortFunc(b.all, netip.Prefix.Compare)
	return true
}

// Remove takes exactly p out. It answers false where p is not there, whatever else overlaps it.
func (b *Blocks) Remove(p netip.Prefix) bool {
	i := slices.Index(b.all, p.Masked())
	if i < 0 || !p.IsValid() {
		return false
	}
	b.all = slices.Delete(b.all, i, i+1)
	return true
}

// Overlap returns the lowest member that has an address in common with p; false where there is none.
func (b *Blocks) Overlap(p netip.Prefix) (netip.Prefix, bool) {
	for _, m := range b.all {
		if m.Overlaps(p) {
			return m, true
		}
	}
	return netip.Prefix{}, false
}

// Carve returns the lowest prefix of the given length inside base that overlaps no member and nothing of avoid; false
// where there is none. It inserts nothing. The prefixes to avoid may be of any family and size, and overlap.
func (b *Blocks) Carve(base netip.Prefix, bits int, avoid []netip.Prefix) (netip.Prefix, bool) {
	base = base.Masked()
	if !base.IsValid() || bits < base.Bits() || bits > base.Addr().BitLen() {
		return netip.Prefix{}, false
	}
	for p := netip.PrefixFrom(base.Addr(), bits); base.Contains(p.Addr()); {
		end := netipx.PrefixLastIP(p)
		clear := true
		for _, m := range slices.Concat(b.all, avoid) {
			if m.Overlaps(p) {
				clear = false
				if last := netipx.PrefixLastIP(m); end.Less(last) {
					end = last
				}
			}
		}
		if clear {
			return p, true
		}
		p = netip.PrefixFrom(end.Next(), bits)
	}
	return netip.Prefix{}, false
}

// In returns the members that have an address in common with base, the lowest first.
func (b *Blocks) In(base netip.Prefix) []netip.Prefix {
	var in []netip.Prefix
	for _, m := range b.all {
		if m.Overlaps(base) {
			in = append(in, m)
		}
	}
	return in
}
