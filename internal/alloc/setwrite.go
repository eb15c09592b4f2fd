package alloc

import (
	"net/netip"
	"slices"
)

// Add puts a into the set. It answers false where a is there already, or lies outside the prefix.
func (s *Set) Add(a netip.Addr) bool {
	x, ok := s.offset(a)
	return ok && s.add(x)
}

// Remove takes a out of the set. It answers false where a is not there.
func (s *Set) Remove(a netip.Addr) bool {
	x, ok := s.offset(a)
	return ok && s.remove(x)
}

func (s *Set) add(x u128) bool {
	block := blockOf(x)
	i, held := s.find(block)
	if !held {
		i++
		s.open(i, block)
	}
	l := &s.leaves[i]
	switch l.shape {
	case fullLeaf:
		return false
	case bitmapLeaf:
		if !l.bits.set(inBlock(x)) {
			return false
		}
		s.single++
		if l.bits.n == s.size {
			s.settle(i)
		}
		return true
	}
	k, found := search(l.list, x)
	if found {
		return false
	}
	if len(l.list) >= s.crowd {
		s.divide(i)
		return s.add(x)
	}
	l.list = slices.Insert(l.list, k, x)
	s.single++
	return true
}

// open makes the leaf at place i a list that block may be added to: the one that is there, if it is a list, or a new
// one.
func (s *Set) open(i int, block u128) {
	if i < len(s.leaves) && s.leaves[i].shape == listLeaf && len(s.leaves[i].list) < s.crowd {
		s.leaves[i].first = block
		return
	}
	s.leaves = slices.Insert(s.leaves, i, leaf{first: block})
}

func (s *Set) remove(x u128) bool {
	block := blockOf(x)
	i, held := s.find(block)
	if !held {
		return false
	}
	if s.leaves[i].shape == fullLeaf {
		i = s.isolate(block)
	}
	l := &s.leaves[i]
	if l.shape == bitmapLeaf {
		if !l.bits.clear(inBlock(x)) {
			return false
		}
		s.single--
		if l.bits.n <= s.crowd/4 {
			s.settle(i)
		}
		return true
	}
	k, found := search(l.list, x)
	if !found {
		return false
	}
	l.list = slices.Delete(l.list, k, k+1)
	s.single--
	s.thin(i)
	return true
}

// divide makes room in a list that is as long as it may be: it becomes a bitmap where all of it is one block, or two
// lists. A bitmap goes back to a list only when it has lost three quarters of what made it one, so that none is turned
// back and forth.
func (s *Set) divide(i int) {
	l := &s.leaves[i]
	k := cutPlace(l.list)
	if k == 0 {
		b := s.bitmap()
		for _, x := range l.list {
			b.set(inBlock(x))
		}
		block := blockOf(l.list[0])
		*l = leaf{first: block, last: block, bits: b, shape: bitmapLeaf}
		return
	}
	right := leaf{first: blockOf(l.list[k]), list: slices.Clone(l.list[k:])}
	l.list = l.list[:k]
	l.shrink()
	s.leaves = slices.Insert(s.leaves, i+1, right)
}

// thin tidies up after a list has lost entries: an empty one goes, and a short one joins a neighbour that has room.
func (s *Set) thin(i int) {
	n := len(s.leaves[i].list)
	if n == 0 {
		s.drop(i)
		return
	}
	if n > s.crowd/4 {
		return
	}
	s.leaves[i].shrink()
	for _, k := range [2]int{i - 1, i} { // with the one before, with the one behind
		if k < 0 || k+1 >= len(s.leaves) {
			continue
		}
		a, b := &s.leaves[k], &s.leaves[k+1]
		if a.shape == listLeaf && b.shape == listLeaf && len(a.list)+len(b.list) <= s.crowd/2 {
			a.list = append(a.list, b.list...)
			s.drop(k + 1)
			return
		}
	}
}

// settle gives a bitmap the shape that suits what is in it: nothing, a list, a bitmap, or full.
func (s *Set) settle(i int) {
	l := &s.leaves[i]
	switch {
	case l.bits.n == 0:
		s.drop(i)
	case l.bits.n <= s.crowd/4:
		list := make([]u128, 0, l.bits.n)
		first := firstOf(l.first)
		for x, ok := l.bits.nextSet(0); ok; x, ok = l.bits.nextSet(x + 1) {
			list = append(list, first.add(u128{0, uint64(x)}))
		}
		*l = leaf{first: l.first, list: list}
		s.thin(i)
	case l.bits.n == s.size && blockOf(s.max) != u128{}:
		// The only block of a small prefix stays a bitmap: it is no great matter, and giving back one address stays
		// cheap.
		s.fill(i)
	}
}

// fill turns a bitmap that is all ones into a full leaf, and joins it with full neighbours.
func (s *Set) fill(i int) {
	l := &s.leaves[i]
	s.spare = l.bits
	s.single -= uint64(s.size)
	s.full = s.full.next()
	*l = leaf{first: l.first, last: l.last, shape: fullLeaf}
	s.join(i)
}

// join makes one leaf of the full leaf at place i and the full ones that touch it.
func (s *Set) join(i int) {
	for _, k := range [2]int{i, i - 1} { // with the one behind, with the one before
		if k < 0 || k+1 >= len(s.leaves) {
			continue
		}
		a, b := &s.leaves[k], &s.leaves[k+1]
		if a.shape == fullLeaf && b.shape == fullLeaf && a.last.next() == b.first {
			a.last = b.last
			s.drop(k + 1)
		}
	}
}

// drop takes out a leaf whose members are counted no more, or by another leaf.
func (s *Set) drop(i int) {
	s.leaves = slices.Delete(s.leaves, i, i+1)
	if len(s.leaves) == 0 {
		s.leaves, s.spare = nil, nil
	}
}

// bitmap returns an empty bitmap for one block.
func (s *Set) bitmap() *bitmap {
	b := s.spare
	if b == nil {
		return newBitmap(s.size)
	}
	s.spare = nil
	b.reset()
	return b
}

// fullBitmap returns a bitmap for one block that is all ones.
func (s *Set) fullBitmap() *bitmap {
	b := s.spare
	if b == nil {
		b = newBitmap(s.size)
		b.setRange(0, s.size-1)
		return b
	}
	s.spare = nil
	return b
}
