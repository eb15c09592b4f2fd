package alloc

import (
	"iter"
	"net/netip"

	"go4.org/netipx"
)

// Set is a set of addresses of one prefix, of either family and any length. It keeps runs of consecutive addresses in a
// B-tree, so a full subnet takes one run. Each method takes time in proportion to the logarithm of the number of runs,
// except CountIn.
//
// Methods that only read may run at the same time, but not beside one that writes.
type Set struct {
	prefix netip.Prefix
	whole  run // the prefix
	runs   runs
	n      uint64 // members
}

// NewSet returns the empty set over p, whose host bits it ignores. A set over an invalid p stays empty.
func NewSet(p netip.Prefix) *Set {
	return &Set{prefix: p.Masked(), whole: runOf(p), runs: newRuns()}
}

// Len returns the number of members.
func (s *Set) Len() uint64 { return s.n }

// Contains reports whether a is in the set.
func (s *Set) Contains(a netip.Addr) bool {
	if !s.prefix.Contains(a) {
		return false
	}
	x := valueOf(a)
	r, ok := s.runs.upTo(x)
	return ok && r.holds(x)
}

// Add puts a into the set. It returns false if a is in it already, or lies outside the prefix.
func (s *Set) Add(a netip.Addr) bool {
	x := valueOf(a)
	if !s.prefix.Contains(a) || !s.runs.add(run{x, x}) {
		return false
	}
	s.n++
	return true
}

// Remove takes a out of the set. It returns false if a is not in it.
func (s *Set) Remove(a netip.Addr) bool {
	x := valueOf(a)
	if !s.prefix.Contains(a) || !s.runs.remove(run{x, x}) {
		return false
	}
	s.n--
	return true
}

// NextFree returns the lowest address of r that lies in the prefix and is not in the set. It returns false if there is
// none.
func (s *Set) NextFree(r netipx.IPRange) (netip.Addr, bool) {
	in, ok := s.cut(r)
	if !ok {
		return netip.Addr{}, false
	}
	x := in.first
	if taken, ok := s.runs.upTo(x); ok && taken.holds(x) {
		if !taken.last.less(in.last) {
			return netip.Addr{}, false
		}
		x = taken.last.next()
	}
	return x.addr(r.From().Is4()), true
}

// NextTaken returns the lowest address of r that is in the set. It returns false if there is none.
func (s *Set) NextTaken(r netipx.IPRange) (addr netip.Addr, found bool) {
	for taken := range s.takenIn(r) {
		return taken.first.addr(r.From().Is4()), true
	}
	return netip.Addr{}, false
}

// CountIn returns how many addresses of r the set holds. It visits each run in r.
func (s *Set) CountIn(r netipx.IPRange) (n uint64) {
	for taken := range s.takenIn(r) {
		n += taken.last.sub(taken.first).lo + 1
	}
	return n
}

// takenIn yields the parts of the runs that lie in r, in order.
func (s *Set) takenIn(r netipx.IPRange) iter.Seq[run] {
	return func(yield func(run) bool) {
		in, ok := s.cut(r)
		if !ok {
			return
		}
		from := in.first
		if before, ok := s.runs.upTo(from); ok {
			from = before.first
		}
		s.runs.Ascend(run{first: from}, func(taken run) bool {
			if in.last.less(taken.first) {
				return false
			}
			if taken.last.less(in.first) {
				return true
			}
			return yield(run{higher(taken.first, in.first), lower(taken.last, in.last)})
		})
	}
}

// cut returns the part of r that lies in the prefix. It returns false if there is none.
func (s *Set) cut(r netipx.IPRange) (run, bool) {
	if !s.prefix.IsValid() || !r.IsValid() || r.From().BitLen() != s.prefix.Addr().BitLen() {
		return run{}, false
	}
	first, last := higher(valueOf(r.From()), s.whole.first), lower(valueOf(r.To()), s.whole.last)
	return run{first, last}, !last.less(first)
}
