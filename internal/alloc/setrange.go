package alloc

import (
	"slices"

	"go4.org/netipx"
)

// few is how many addresses are added one by one rather than by way of a bitmap.
const few = 32

// AddRange puts every address of r that lies in the prefix into the set. Whole blocks of it take no memory, so that it
// costs at most two bitmaps of 8 KiB, however large r is.
func (s *Set) AddRange(r netipx.IPRange) {
	a, z, ok := s.cut(r)
	if !ok {
		return
	}
	s.overBlocks(a, z, s.addPart, func(first, last u128) {
		s.replace(first, last, leaf{first: first, last: last, shape: fullLeaf})
		i, _ := s.find(first)
		s.join(i)
	})
}

// RemoveRange takes every address of r out of the set. A full block that loses a part of its addresses becomes a bitmap
// of 8 KiB, so that it costs at most two of them, however large r is.
func (s *Set) RemoveRange(r netipx.IPRange) {
	a, z, ok := s.cut(r)
	if !ok {
		return
	}
	s.overBlocks(a, z, s.removePart, func(first, last u128) {
		s.replace(first, last)
	})
}

// overBlocks divides the offsets from a to z, both included, into parts of one block, for part, and whole blocks, for
// whole.
func (s *Set) overBlocks(a, z u128, part, whole func(first, last u128)) {
	if blockOf(s.max) == (u128{}) {
		part(a, z) // a small prefix has no whole blocks
		return
	}
	first, last := blockOf(a), blockOf(z)
	if a != firstOf(first) {
		part(a, lower(z, lastOf(first)))
		if first == last {
			return
		}
		first = first.next()
	}
	if z != lastOf(last) {
		part(firstOf(last), z)
		if first == last {
			return
		}
		last = last.prev()
	}
	if !last.less(first) {
		whole(first, last)
	}
}

func lower(a, b u128) u128 {
	if b.less(a) {
		return b
	}
	return a
}

// addPart adds the offsets from a to z, both included, which lie in one block.
func (s *Set) addPart(a, z u128) {
	if inBlock(z)-inBlock(a) < few {
		for k := range inBlock(z) - inBlock(a) + 1 { // counted, because behind the last offset of ::/0 comes 0 again
			s.add(a.add(u128{0, uint64(k)}))
		}
		return
	}
	i := s.isolate(blockOf(a))
	b := s.leaves[i].bits
	s.single -= uint64(b.n)
	b.setRange(inBlock(a), inBlock(z))
	s.single += uint64(b.n)
	s.settle(i)
}

// removePart removes the offsets from a to z, both included, which lie in one block.
func (s *Set) removePart(a, z u128) {
	i, held := s.find(blockOf(a))
	if !held {
		return
	}
	l := &s.leaves[i]
	if l.shape == listLeaf {
		from, to := l.part(a, z)
		if from < to {
			l.list = slices.Delete(l.list, from, to)
			s.single -= uint64(to - from)
			s.thin(i)
		}
		return
	}
	i = s.isolate(blockOf(a))
	b := s.leaves[i].bits
	s.single -= uint64(b.n)
	b.clearRange(inBlock(a), inBlock(z))
	s.single += uint64(b.n)
	s.settle(i)
}

// isolate makes a bitmap of a block, whatever holds it now, and returns its leaf's place. The bitmap may be empty or
// full: the caller changes it and settles it.
func (s *Set) isolate(block u128) int {
	i, held := s.find(block)
	if held && s.leaves[i].shape == bitmapLeaf {
		return i
	}
	var b *bitmap
	switch {
	case held && s.leaves[i].shape == fullLeaf:
		b = s.fullBitmap()
	case held:
		b = s.bitmap()
		l := &s.leaves[i]
		from, to := l.part(firstOf(block), lastOf(block))
		for _, x := range l.list[from:to] {
			b.set(inBlock(x))
		}
	default:
		b = s.bitmap()
	}
	s.replace(block, block, leaf{first: block, last: block, bits: b, shape: bitmapLeaf})
	i, _ = s.find(block)
	return i
}

// replace takes everything in the blocks from first to last out of the set and puts the given leaf, if any, in its
// place.
func (s *Set) replace(first, last u128, with ...leaf) {
	i, held := s.find(first)
	if !held {
		i++
	}
	end := i
	for end < len(s.leaves) && !last.less(s.leaves[end].first) {
		end++
	}
	if end > i {
		if rest, ok := s.leaves[i].before(first); ok {
			with = slices.Insert(with, 0, rest)
		}
		if rest, ok := s.leaves[end-1].after(last); ok {
			with = append(with, rest)
		}
	}
	for k := range s.leaves[i:end] {
		s.single -= s.leaves[i+k].singles()
		s.full = s.full.sub(s.leaves[i+k].blocks())
	}
	for k := range with {
		s.single += with[k].singles()
		s.full = s.full.add(with[k].blocks())
	}
	s.leaves = slices.Replace(s.leaves, i, end, with...)
	if len(s.leaves) == 0 {
		s.leaves, s.spare = nil, nil
	}
}
