package alloc

import (
	"slices"
	"sort"
)

// blockBits is the size of a block: 2^16 addresses, so that a bitmap over one has 8 KiB and its summary 16 words. Only
// the single block of a prefix with fewer addresses is smaller.
const blockBits = 16

// blockOf returns the number of the block that the offset x lies in, counted from the prefix's first.
func blockOf(x u128) u128 { return u128{x.hi >> blockBits, x.hi<<(64-blockBits) | x.lo>>blockBits} }

// inBlock returns where in its block the offset x lies.
func inBlock(x u128) int { return int(x.lo & (1<<blockBits - 1)) }

// firstOf and lastOf return the first and the last offset of a block.
func firstOf(block u128) u128 { return block.shl(blockBits) }
func lastOf(block u128) u128 {
	x := firstOf(block)
	x.lo |= 1<<blockBits - 1
	return x
}

// leaf holds the members of a stretch of blocks, in one of three shapes. A list is the sorted offsets of its members;
// it covers all blocks from first up to the next leaf. A bitmap covers one block. A full leaf covers the blocks from
// first to last, of which every address is a member, and needs no memory for them. No block lies in two leaves.
type leaf struct {
	first u128
	last  u128     // of a full leaf and of a bitmap
	list  []u128   // only of a list, and never empty there
	bits  *bitmap  // only of a bitmap
	shape leafKind // which of them
}

type leafKind uint8

const (
	listLeaf leafKind = iota
	bitmapLeaf
	fullLeaf
)

// holds says whether a block at or behind first is the leaf's business.
func (l *leaf) holds(block u128) bool {
	return l.shape == listLeaf || !l.last.less(block)
}

// singles counts the members that a leaf holds one by one.
func (l *leaf) singles() uint64 {
	switch l.shape {
	case listLeaf:
		return uint64(len(l.list))
	case bitmapLeaf:
		return uint64(l.bits.n)
	}
	return 0
}

// blocks counts the blocks of a full leaf.
func (l *leaf) blocks() u128 {
	if l.shape != fullLeaf {
		return u128{}
	}
	return l.last.sub(l.first).next()
}

// search returns the place of the first entry that is not less than x, and whether it is x.
func search(list []u128, x u128) (int, bool) {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if list[mid].less(x) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(list) && list[lo] == x
}

// runEnd returns the last offset of the run of neighbours that begins at list[i]. Entries are sorted and differ, so
// they are neighbours as long as their distance is that of their places.
func runEnd(list []u128, i int) u128 {
	end := len(list) - 1
	if list[end].sub(list[i]) == (u128{0, uint64(end - i)}) {
		return list[end] // taking one address after the other makes lists of this kind
	}
	n := sort.Search(len(list)-i, func(k int) bool {
		return list[i+k].sub(list[i]) != u128{0, uint64(k)}
	})
	return list[i+n-1]
}

// has says whether the offset x, which lies in one of the leaf's blocks, is a member.
func (l *leaf) has(x u128) bool {
	switch l.shape {
	case fullLeaf:
		return true
	case bitmapLeaf:
		return l.bits.has(inBlock(x))
	}
	_, found := search(l.list, x)
	return found
}

// takenUntil returns the last offset of the run of members that begins at x, as far as this leaf goes; false where x
// is no member. x lies in one of the leaf's blocks.
func (l *leaf) takenUntil(x u128) (u128, bool) {
	switch l.shape {
	case fullLeaf:
		return lastOf(l.last), true
	case bitmapLeaf:
		free, ok := l.bits.nextClear(inBlock(x))
		if !ok {
			return lastOf(l.first), true
		}
		return firstOf(l.first).add(u128{0, uint64(free)}).prev(), free > inBlock(x)
	}
	i, found := search(l.list, x)
	if !found {
		return u128{}, false
	}
	return runEnd(l.list, i), true
}

// nextTaken returns the lowest member from the offset x on; false where the leaf has none there.
func (l *leaf) nextTaken(x u128) (u128, bool) {
	if l.shape == listLeaf {
		i, _ := search(l.list, x)
		if i == len(l.list) {
			return u128{}, false
		}
		return l.list[i], true
	}
	if first := firstOf(l.first); x.less(first) {
		x = first
	}
	switch {
	case lastOf(l.last).less(x):
		return u128{}, false
	case l.shape == fullLeaf:
		return x, true
	}
	set, ok := l.bits.nextSet(inBlock(x))
	return firstOf(l.first).add(u128{0, uint64(set)}), ok
}

// count returns how many members lie in the offsets from a to z, both included.
func (l *leaf) count(a, z u128) u128 {
	if l.shape == listLeaf {
		from, to := l.part(a, z)
		return u128{0, uint64(to - from)}
	}
	first, last := firstOf(l.first), lastOf(l.last)
	if z.less(first) || last.less(a) {
		return u128{}
	}
	if first.less(a) {
		first = a
	}
	if z.less(last) {
		last = z
	}
	if l.shape == fullLeaf {
		return last.sub(first).next()
	}
	return u128{0, uint64(l.bits.count(inBlock(first), inBlock(last)))}
}

// before returns what the leaf holds below a block that is its business, and false where that is nothing. It takes over
// the leaf's memory.
func (l *leaf) before(block u128) (leaf, bool) {
	if l.shape != listLeaf {
		// a bitmap has but one block
		return leaf{first: l.first, last: block.prev(), shape: fullLeaf}, l.first.less(block)
	}
	i, _ := search(l.list, firstOf(block))
	rest := leaf{first: l.first, list: l.list[:i]}
	rest.shrink()
	return rest, i > 0
}

// after returns what the leaf holds above a block that it does not begin behind, and false where that is nothing.
func (l *leaf) after(block u128) (leaf, bool) {
	if l.shape != listLeaf {
		return leaf{first: block.next(), last: l.last, shape: fullLeaf}, block.less(l.last)
	}
	i, found := search(l.list, lastOf(block))
	if found {
		i++
	}
	if i == len(l.list) {
		return leaf{}, false
	}
	return leaf{first: blockOf(l.list[i]), list: slices.Clone(l.list[i:])}, true
}

// part returns the places of the entries of a list that lie in the offsets from a to z, both included.
func (l *leaf) part(a, z u128) (from, to int) {
	if l.list[0].less(a) {
		from, _ = search(l.list, a)
	}
	if to = len(l.list); z.less(l.list[to-1]) {
		var found bool
		if to, found = search(l.list, z); found {
			to++
		}
	}
	return from, to
}

// shrink gives back the memory of a list that has become far shorter than it was.
func (l *leaf) shrink() {
	if cap(l.list) > 8 && cap(l.list) > 4*len(l.list) {
		l.list = append(make([]u128, 0, 2*len(l.list)), l.list...)
	}
}

// cutPlace returns where to cut a list in two, as near to its middle as can be without cutting through a block;
// 0 where all of it is one block.
func cutPlace(list []u128) int {
	for d := 0; d <= len(list)/2; d++ {
		for _, i := range [2]int{len(list)/2 - d, len(list)/2 + d} {
			if i > 0 && i < len(list) && blockOf(list[i-1]) != blockOf(list[i]) {
				return i
			}
		}
	}
	return 0
}
