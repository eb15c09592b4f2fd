package alloc

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// u128 is an unsigned number of 128 bits: an address, or its distance from the first one of a prefix. netip and netipx
// keep theirs to themselves, and going through netip.Addr for every step of a search costs more than the search.
type u128 struct {
	hi, lo uint64
}

// valueOf returns a as a number; an IPv4 address is one of 32 bits.
func valueOf(a netip.Addr) u128 {
	if a.Is4() {
		b := a.As4()
		return u128{0, uint64(binary.BigEndian.Uint32(b[:]))}
	}
	b := a.As16()
	return u128{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

// addr is the reverse of valueOf.
func (v u128) addr(is4 bool) netip.Addr {
	if is4 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(v.lo))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], v.hi)
	binary.BigEndian.PutUint64(b[8:], v.lo)
	return netip.AddrFrom16(b)
}

func (v u128) less(w u128) bool {
	return v.hi < w.hi || v.hi == w.hi && v.lo < w.lo
}

func (v u128) compare(w u128) int {
	switch {
	case v == w:
		return 0
	case v.less(w):
		return -1
	}
	return 1
}

func (v u128) add(w u128) u128 {
	lo, carry := bits.Add64(v.lo, w.lo, 0)
	hi, _ := bits.Add64(v.hi, w.hi, carry)
	return u128{hi, lo}
}

func (v u128) sub(w u128) u128 {
	lo, borrow := bits.Sub64(v.lo, w.lo, 0)
	hi, _ := bits.Sub64(v.hi, w.hi, borrow)
	return u128{hi, lo}
}

func (v u128) next() u128 { return v.add(u128{0, 1}) }
func (v u128) prev() u128 { return v.sub(u128{0, 1}) }

// shl shifts to the left; n may be 128 and more.
func (v u128) shl(n int) u128 {
	if n >= 64 {
		return u128{v.lo << (n - 64), 0}
	}
	return u128{v.hi<<n | v.lo>>(64-n), v.lo << n}
}

func (v u128) or(w u128) u128 { return u128{v.hi | w.hi, v.lo | w.lo} }

// parts256 is n parts of 256 of v.
func (v u128) parts256(n uint8) u128 {
	times := func(v u128) u128 {
		carry, lo := bits.Mul64(v.lo, uint64(n))
		return u128{v.hi*uint64(n) + carry, lo}
	}
	whole := times(u128{v.hi >> 8, v.hi<<56 | v.lo>>8})
	rest := times(u128{0, v.lo & 255})
	return whole.add(u128{0, rest.lo >> 8})
}
