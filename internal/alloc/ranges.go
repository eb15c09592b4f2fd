package alloc

import (
	"math/big"
	"math/bits"
	"net/netip"

	"go4.org/netipx"
)

// Usable returns the addresses of p that may ever be given to somebody. Host bits of p are ignored; an invalid p has
// the zero range, which is not valid either.
//
//   - IPv4: all but the network and the broadcast address; both addresses of a /31 (RFC 3021), the one of a /32.
//   - IPv6: all but the first, which is the subnet-router anycast address (RFC 4291, 2.6.1); both addresses of a /127
//     (RFC 6164), the one of a /128.
func Usable(p netip.Prefix) netipx.IPRange {
	if !p.IsValid() {
		return netipx.IPRange{}
	}
	r := netipx.RangeOfPrefix(p)
	host := r.From().BitLen() - p.Bits()
	switch {
	case host <= 1:
		return r
	case r.From().Is4():
		return netipx.IPRangeFrom(r.From().Next(), r.To().Prev())
	default:
		return netipx.IPRangeFrom(r.From().Next(), r.To())
	}
}

// Size returns how many addresses r has, exactly: up to 2^128. An invalid r has none.
func Size(r netipx.IPRange) *big.Int {
	if !r.IsValid() {
		return new(big.Int)
	}
	if r.From().Is4() { // lists of many subnets ask for many sizes
		return new(big.Int).SetUint64(valueOf(r.To()).lo - valueOf(r.From()).lo + 1)
	}
	from, to := new(big.Int).SetBytes(r.From().AsSlice()), new(big.Int).SetBytes(r.To().AsSlice())
	return to.Sub(to, from).Add(to, big.NewInt(1))
}

// Place is an address of r: the n-th of a sequence in which the first one is the first of r, and each next one lies in
// the middle of a gap between those before it that is as large as any (van der Corput).
func Place(r netipx.IPRange, n uint8) netip.Addr {
	if n == 0 {
		return r.From()
	}
	from := valueOf(r.From())
	size := valueOf(r.To()).sub(from)
	return from.add(size.parts256(bits.Reverse8(n))).addr(r.From().Is4())
}
