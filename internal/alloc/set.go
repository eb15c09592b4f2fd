package alloc

import (
	"math"
	"math/big"
	"net/netip"

	"go4.org/netipx"
)

// Set is a set of addresses of one prefix. It is not safe for use by several goroutines at once.
type Set struct {
	prefix netip.Prefix
	set    *netipx.IPSet
}

// NewSet returns the empty set over p; host bits of p are ignored. A set over an invalid p stays empty.
func NewSet(p netip.Prefix) *Set {
	return &Set{prefix: p.Masked(), set: new(netipx.IPSet)}
}

// Prefix returns the prefix whose addresses the set may hold.
func (s *Set) Prefix() netip.Prefix { return s.prefix }

// Add puts a into the set. It answers false where a is there already, or lies outside the prefix.
func (s *Set) Add(a netip.Addr) bool {
	if !s.prefix.Contains(a) || s.set.Contains(a) {
		return false
	}
	s.AddRange(netipx.IPRangeFrom(a, a))
	return true
}

// Remove takes a out of the set. It answers false where a is not there.
func (s *Set) Remove(a netip.Addr) bool {
	if !s.Contains(a) {
		return false
	}
	s.RemoveRange(netipx.IPRangeFrom(a, a))
	return true
}

// Contains says whether a is in the set.
func (s *Set) Contains(a netip.Addr) bool { return s.set.Contains(a) }

// Len returns how many addresses the set holds, at most the largest uint64.
func (s *Set) Len() uint64 { return s.CountIn(netipx.RangeOfPrefix(s.prefix)) }

// CountIn returns how many addresses of r the set holds, at most the largest uint64.
func (s *Set) CountIn(r netipx.IPRange) uint64 {
	n := new(big.Int)
	for _, m := range s.set.Ranges() {
		if c, ok := cut(m, r); ok {
			n.Add(n, Size(c))
		}
	}
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// NextFree returns the lowest address of r that lies in the prefix and is not in the set; false where there is none.
func (s *Set) NextFree(r netipx.IPRange) (netip.Addr, bool) {
	r, ok := s.cut(r)
	if !ok {
		return netip.Addr{}, false
	}
	var b netipx.IPSetBuilder
	b.AddRange(r)
	b.RemoveSet(s.set)
	free, err := b.IPSet()
	if err != nil || len(free.Ranges()) == 0 {
		return netip.Addr{}, false
	}
	return free.Ranges()[0].From(), true
}

// AddRange puts every address of r that lies in the prefix into the set. Memory does not grow with the size of r.
func (s *Set) AddRange(r netipx.IPRange) {
	s.edit(r, (*netipx.IPSetBuilder).AddRange)
}

// RemoveRange takes every address of r out of the set. Memory does not grow with the size of r.
func (s *Set) RemoveRange(r netipx.IPRange) {
	s.edit(r, (*netipx.IPSetBuilder).RemoveRange)
}

func (s *Set) edit(r netipx.IPRange, change func(*netipx.IPSetBuilder, netipx.IPRange)) {
	r, ok := s.cut(r)
	if !ok {
		return
	}
	var b netipx.IPSetBuilder
	b.AddSet(s.set)
	change(&b, r)
	if set, err := b.IPSet(); err == nil {
		s.set = set
	}
}

// cut returns the part of r that lies in the prefix.
func (s *Set) cut(r netipx.IPRange) (netipx.IPRange, bool) {
	if !s.prefix.IsValid() {
		return netipx.IPRange{}, false
	}
	return cut(netipx.RangeOfPrefix(s.prefix), r)
}

// cut returns what a and b have in common.
func cut(a, b netipx.IPRange) (netipx.IPRange, bool) {
	if !a.IsValid() || !b.IsValid() || a.From().BitLen() != b.From().BitLen() {
		return netipx.IPRange{}, false
	}
	from, to := a.From(), a.To()
	if from.Less(b.From()) {
		from = b.From()
	}
	if b.To().Less(to) {
		to = b.To()
	}
	return netipx.IPRangeFrom(from, to), !to.Less(from)
}
