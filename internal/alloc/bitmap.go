package alloc

import "math/bits"

// bitmap is which addresses of one block are in the set. Above the words lies a summary, one bit per word, which is set
// where the word is all ones: so the next free address is found in a few steps however full the block is.
type bitmap struct {
	words, full []uint64
	n           int // how many bits are set
}

// newBitmap returns an empty bitmap for size addresses.
func newBitmap(size int) *bitmap {
	words := (size + 63) / 64
	return &bitmap{words: make([]uint64, words), full: make([]uint64, (words+63)/64)}
}

func (b *bitmap) has(x int) bool { return b.words[x>>6]>>(x&63)&1 != 0 }

// set sets bit x; false where it was set.
func (b *bitmap) set(x int) bool {
	w := &b.words[x>>6]
	if *w>>(x&63)&1 != 0 {
		return false
	}
	*w |= 1 << (x & 63)
	if *w == ^uint64(0) {
		b.full[x>>12] |= 1 << (x >> 6 & 63)
	}
	b.n++
	return true
}

// clear clears bit x; false where it was clear.
func (b *bitmap) clear(x int) bool {
	w := &b.words[x>>6]
	if *w>>(x&63)&1 == 0 {
		return false
	}
	*w &^= 1 << (x & 63)
	b.full[x>>12] &^= 1 << (x >> 6 & 63)
	b.n--
	return true
}

// nextClear returns the lowest clear bit from x on. In a bitmap of less than 64 bits it may lie behind the last one.
func (b *bitmap) nextClear(x int) (int, bool) {
	w := x >> 6
	if m := ^b.words[w] >> (x & 63) << (x & 63); m != 0 {
		return w<<6 + bits.TrailingZeros64(m), true
	}
	w++
	q := w >> 6
	if q == len(b.full) {
		return 0, false
	}
	m := ^b.full[q] >> (w & 63) << (w & 63)
	for m == 0 {
		if q++; q == len(b.full) {
			return 0, false
		}
		m = ^b.full[q]
	}
	if w = q<<6 + bits.TrailingZeros64(m); w >= len(b.words) {
		return 0, false
	}
	return w<<6 + bits.TrailingZeros64(^b.words[w]), true
}

// nextSet returns the lowest set bit from x on.
func (b *bitmap) nextSet(x int) (int, bool) {
	for w := x >> 6; w < len(b.words); w++ {
		m := b.words[w]
		if w == x>>6 {
			m = m >> (x & 63) << (x & 63)
		}
		if m != 0 {
			return w<<6 + bits.TrailingZeros64(m), true
		}
	}
	return 0, false
}

// span is the part of word w that lies in the bits from a to b, both included.
func span(w, a, b int) uint64 {
	m := ^uint64(0)
	if w == a>>6 {
		m &= ^uint64(0) << (a & 63)
	}
	if w == b>>6 {
		m &= ^uint64(0) >> (63 - b&63)
	}
	return m
}

// count returns how many bits from a to z, both included, are set.
func (b *bitmap) count(a, z int) int {
	first, last := a>>6, z>>6
	n := bits.OnesCount64(b.words[first] & span(first, a, z))
	if first == last {
		return n
	}
	for _, word := range b.words[first+1 : last] {
		n += bits.OnesCount64(word)
	}
	return n + bits.OnesCount64(b.words[last]&span(last, a, z))
}

// setRange sets the bits from a to z, both included.
func (b *bitmap) setRange(a, z int) {
	b.n += z - a + 1 - b.count(a, z)
	for w := a >> 6; w <= z>>6; w++ {
		b.words[w] |= span(w, a, z)
		if b.words[w] == ^uint64(0) {
			b.full[w>>6] |= 1 << (w & 63)
		}
	}
}

// clearRange clears the bits from a to z, both included.
func (b *bitmap) clearRange(a, z int) {
	b.n -= b.count(a, z)
	for w := a >> 6; w <= z>>6; w++ {
		b.words[w] &^= span(w, a, z)
		b.full[w>>6] &^= 1 << (w & 63)
	}
}

// reset clears all bits.
func (b *bitmap) reset() {
	clear(b.words)
	clear(b.full)
	b.n = 0
}
