package alloc

import (
	"net/netip"
	"slices"

	"github.com/tidwall/btree"
	"go4.org/netipx"
)

// Blocks is a collection of prefixes of either family that do not overlap: the subnets of one space. It ignores host
// bits.
//
// Methods that only read may run at the same time, but not beside one that writes.
type Blocks struct {
	members        *btree.BTreeG[netip.Prefix] // by their first addresses
	taken4, taken6 runs                        // their addresses
}

// NewBlocks returns an empty collection.
func NewBlocks() *Blocks {
	byFirst := func(a, b netip.Prefix) bool { return a.Addr().Less(b.Addr()) }
	return &Blocks{btree.NewBTreeGOptions(byFirst, btree.Options{NoLocks: true}), newRuns(), newRuns()}
}

// Len returns the number of prefixes.
func (b *Blocks) Len() int { return b.members.Len() }

// Insert adds p. It returns false if p overlaps a member, or is invalid.
func (b *Blocks) Insert(p netip.Prefix) bool {
	if _, taken := b.Overlap(p); taken || !p.IsValid() {
		return false
	}
	b.members.Set(p.Masked())
	b.taken(p).add(runOf(p))
	return true
}

// Remove removes the member p. It returns false if there is no such member, whatever overlaps p.
func (b *Blocks) Remove(p netip.Prefix) bool {
	p = p.Masked()
	if m, ok := b.members.Get(p); !ok || m != p {
		return false
	}
	b.members.Delete(p)
	b.taken(p).remove(runOf(p))
	return true
}

// Overlap returns the lowest member that has an address in common with p. It returns false if there is none.
func (b *Blocks) Overlap(p netip.Prefix) (lowest netip.Prefix, found bool) {
	b.overlapping(p, func(m netip.Prefix) bool {
		lowest, found = m, true
		return false
	})
	return lowest, found
}

// In returns the members that have an address in common with base, the lowest first.
func (b *Blocks) In(base netip.Prefix) (all []netip.Prefix) {
	b.overlapping(base, func(m netip.Prefix) bool {
		all = append(all, m)
		return true
	})
	return all
}

func (b *Blocks) overlapping(p netip.Prefix, yield func(netip.Prefix) bool) {
	if !p.IsValid() {
		return
	}
	from := p.Masked()
	b.members.Descend(from, func(m netip.Prefix) bool {
		if m.Overlaps(p) { // it begins before p
			from = m
		}
		return false
	})
	b.members.Ascend(from, func(m netip.Prefix) bool { return m.Overlaps(p) && yield(m) })
}

// Carve returns the lowest prefix of the given length in base that overlaps no member and nothing of avoid. It returns
// false if there is none. It inserts nothing. The prefixes to avoid may be of any family and size, and may overlap.
// Time grows with the number of runs of members in base and of prefixes to avoid.
func (b *Blocks) Carve(base netip.Prefix, bits int, avoid []netip.Prefix) (netip.Prefix, bool) {
	if !base.IsValid() || bits < base.Bits() || bits > base.Addr().BitLen() {
		return netip.Prefix{}, false
	}
	taken, obstacles := b.taken(base), obstaclesIn(base, avoid)
	in, host := runOf(base), u128{0, 1}.shl(base.Addr().BitLen()-bits).prev()
	for block := (run{in.first, in.first.add(host)}); ; {
		for len(obstacles) > 0 && obstacles[0].last.less(block.first) {
			obstacles = obstacles[1:]
		}
		var behind u128 // the last address of what is in the way
		if r, ok := taken.upTo(block.last); ok && !r.last.less(block.first) {
			behind = r.last
		} else if len(obstacles) > 0 && !block.last.less(obstacles[0].first) {
			behind = obstacles[0].last
		} else {
			return netip.PrefixFrom(block.first.addr(base.Addr().Is4()), bits), true
		}
		if !behind.or(host).less(in.last) {
			return netip.Prefix{}, false
		}
		block.first = behind.or(host).next()
		block.last = block.first.add(host)
	}
}

func (b *Blocks) taken(p netip.Prefix) runs {
	if p.Addr().Is4() {
		return b.taken4
	}
	return b.taken6
}

// obstaclesIn returns the prefixes that overlap base, by their first addresses.
func obstaclesIn(base netip.Prefix, avoid []netip.Prefix) (all []run) {
	for _, p := range avoid {
		if p.Overlaps(base) { // false for another family, and for an invalid prefix
			all = append(all, runOf(p))
		}
	}
	slices.SortFunc(all, func(a, b run) int { return a.first.compare(b.first) })
	return all
}

// runOf returns the addresses of a prefix.
func runOf(p netip.Prefix) run {
	r := netipx.RangeOfPrefix(p)
	return run{valueOf(r.From()), valueOf(r.To())}
}
