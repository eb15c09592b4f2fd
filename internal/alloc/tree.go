package alloc

import "net/netip"

// area is a prefix as a number: the address moved up to the highest of 128 bits, so that both families look alike.
type area struct {
	key  u128
	bits int
}

func areaOf(p netip.Prefix) area {
	bits := p.Bits()
	return area{valueOf(p.Addr()).shl(128 - p.Addr().BitLen()).mask(bits), bits}
}

func (a area) prefix(is4 bool) netip.Prefix {
	key := a.key
	if is4 {
		key = u128{0, key.hi >> 32}
	}
	return netip.PrefixFrom(key.addr(is4), a.bits)
}

// common returns how many leading bits a and b share, at most the length of the shorter one.
func (a area) common(b area) int {
	same := u128{a.key.hi ^ b.key.hi, a.key.lo ^ b.key.lo}.leadingZeros()
	return min(same, a.bits, b.bits)
}

func (a area) covers(b area) bool { return a.common(b) == a.bits }

func (a area) halves() (left, right area) {
	bit := u128{0, 1}.shl(127 - a.bits)
	return area{a.key, a.bits + 1}, area{a.key.add(bit), a.bits + 1}
}

// node is a place in a tree of disjoint areas, in which those without a fork are left out: a member, which has no
// children, or the smallest area around two or more members, which has two. A nil node is an empty tree.
type node struct {
	area
	free  int // length of the largest free area in it, so that a search never enters a part in vain
	child [2]*node
}

// nothing is the free of a node in which nothing is free: longer than any prefix.
const nothing = 129

func (n *node) isMember() bool { return n.child[0] == nil }

// freeIn returns the length of the largest free area in the area of the given length around n, or in n where that is
// larger. Where n is smaller, the half beside it is free.
func (n *node) freeIn(bits int) int {
	switch {
	case n == nil:
		return bits
	case n.bits > bits:
		return bits + 1
	}
	return n.free
}

// halves returns the trees of the two halves of the area of the given length around n.
func (n *node) halves(bits int) (low, high *node) {
	switch {
	case n == nil:
		return nil, nil
	case n.bits == bits:
		return n.child[0], n.child[1]
	case n.key.bit(bits) == 0:
		return n, nil
	}
	return nil, n
}

// update works out what is free from the children.
func (n *node) update() {
	n.free = min(n.child[0].freeIn(n.bits+1), n.child[1].freeIn(n.bits+1))
}

// insert puts the member m into the tree and returns its new top; false where m overlaps another, and nothing changes.
func (n *node) insert(m *node) (*node, bool) {
	if n == nil {
		return m, true
	}
	common := n.common(m.area)
	switch {
	case common == m.bits || common == n.bits && n.isMember():
		return n, false
	case common == n.bits:
		c := &n.child[m.key.bit(common)]
		top, ok := (*c).insert(m)
		if ok {
			*c = top
			n.update()
		}
		return n, ok
	}
	fork := &node{area: area{n.key.mask(common), common}}
	fork.child[n.key.bit(common)] = n
	fork.child[m.key.bit(common)] = m
	fork.update()
	return fork, true
}

// remove takes the member a out of the tree and returns its new top; false where it is not there.
func (n *node) remove(a area) (*node, bool) {
	switch {
	case n == nil || n.isMember() && n.area != a:
		return n, false
	case n.isMember():
		return nil, true
	case n.bits >= a.bits || !n.covers(a):
		return n, false
	}
	side := a.key.bit(n.bits)
	top, ok := n.child[side].remove(a)
	if !ok {
		return n, false
	}
	if top == nil {
		return n.child[1-side], true
	}
	n.child[side] = top
	n.update()
	return n, true
}

// under returns the part of the tree whose members are those that overlap a.
func (n *node) under(a area) *node {
	for n != nil {
		common := n.common(a)
		switch {
		case common == a.bits || common == n.bits && n.isMember():
			return n
		case common < n.bits:
			return nil
		}
		n = n.child[a.key.bit(common)]
	}
	return nil
}

// members yields the members of the tree in order.
func (n *node) members(yield func(area) bool) {
	n.walk(yield)
}

func (n *node) walk(yield func(area) bool) bool {
	switch {
	case n == nil:
		return true
	case n.isMember():
		return yield(n.area)
	}
	return n.child[0].walk(yield) && n.child[1].walk(yield)
}
