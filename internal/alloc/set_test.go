package alloc

import (
	"math"
	"net/netip"
	"testing"
	"unsafe"

	"go4.org/netipx"
)

func mustRange(t testing.TB, s string) netipx.IPRange {
	t.Helper()
	r, err := ParseRange(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// take adds the next free address of r.
func take(s *Set, r netipx.IPRange) (netip.Addr, bool) {
	a, ok := s.NextFree(r)
	return a, ok && s.Add(a)
}

// C68: the last of so many addresses taken one after the other.
func TestSetTakesTheLowest(t *testing.T) {
	for _, c := range []struct {
		prefix string
		n      int
		last   string
	}{
		{"192.168.59.0/24", 254, "192.168.59.254"},
		{"192.168.0.0/16", 256, "192.168.1.0"},
		{"192.168.128.0/18", 1023, "192.168.131.255"},
		{"192.168.0.0/16", 65534, "192.168.255.254"},
		{"10.0.0.0/15", 70000, "10.1.17.112"},
		{"fd00::/64", 70000, "fd00::1:1170"},
	} {
		p := netip.MustParsePrefix(c.prefix)
		s := NewSet(p)
		var last netip.Addr
		for i := range c.n {
			a, ok := take(s, Usable(p))
			if !ok || i > 0 && a != last.Next() {
				t.Fatalf("%s: took %s, %v after %s", p, a, ok, last)
			}
			last = a
		}
		if last.String() != c.last || s.Len() != uint64(c.n) {
			t.Errorf("%s: the last of %d is %s, of %d members; want %s", p, c.n, last, s.Len(), c.last)
		}
		checkSet(t, s)
	}
}

// Every edge prefix: all that is usable is taken once, in order, and then no more.
func TestSetFillsEdgePrefixes(t *testing.T) {
	for text, n := range map[string]int{
		"10.0.0.0/24": 254, "10.0.0.0/30": 2, "10.0.0.0/31": 2, "10.0.0.1/32": 1, "255.255.255.254/31": 2,
		"0.0.0.0/32": 1,
		"fd00::/126": 3, "fd00::/127": 2, "fd00::1/128": 1, "fd00::/118": 1023, "10.0.0.0/26": 62, "10.0.0.0/25": 126,
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:0/112": 65535,
	} {
		p := netip.MustParsePrefix(text)
		s := NewSet(p)
		for i := range n {
			if a, ok := take(s, Usable(p)); !ok || !p.Contains(a) {
				t.Fatalf("%s: take %d = %s, %v", p, i, a, ok)
			}
		}
		if a, ok := s.NextFree(Usable(p)); ok {
			t.Errorf("%s: %s is free behind the last", p, a)
		}
		for a := range s.all {
			if !s.Remove(a) {
				t.Fatalf("%s: Remove(%s) = false", p, a)
			}
		}
		if s.Len() != 0 || s.leaves != nil || s.spare != nil {
			t.Errorf("%s: %d members in %d leaves are left", p, s.Len(), len(s.leaves))
		}
	}
}

func TestSetRefusesForeignAddresses(t *testing.T) {
	s := NewSet(netip.MustParsePrefix("10.0.0.77/24"))
	if s.Prefix().String() != "10.0.0.0/24" {
		t.Errorf("Prefix = %s", s.Prefix())
	}
	v6 := NewSet(netip.MustParsePrefix("::/0"))
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("10.0.1.0"), netip.MustParseAddr("9.255.255.255"),
		netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fe80::1%eth0")} {
		if s.Add(a) || s.Contains(a) || s.Remove(a) {
			t.Errorf("%s is taken for an address of %s", a, s.Prefix())
		}
	}
	if zoned := netip.MustParseAddr("fe80::1%eth0"); v6.Add(zoned) || v6.Contains(zoned) {
		t.Error("an address with a zone went in")
	}
	for _, r := range []netipx.IPRange{{}, mustRange(t, "10.0.1.0/24"), mustRange(t, "::/0"),
		netipx.IPRangeFrom(netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.1"))} {
		s.AddRange(r)
		s.RemoveRange(r)
		if a, ok := s.NextFree(r); ok || s.CountIn(r) != 0 || s.Len() != 0 {
			t.Errorf("%v: NextFree = %s, %v, CountIn = %d, Len = %d", r, a, ok, s.CountIn(r), s.Len())
		}
	}
	none := NewSet(netip.Prefix{})
	none.AddRange(mustRange(t, "10.0.0.0/24"))
	if none.Add(netip.MustParseAddr("10.0.0.1")) || none.Len() != 0 || none.Contains(netip.Addr{}) {
		t.Error("a set over no prefix holds something")
	}
}

// Ranges of any size cost a few leaves, and counts stay right up to 2^128.
func TestSetVastRanges(t *testing.T) {
	s := NewSet(netip.MustParsePrefix("::/0"))
	s.AddRange(mustRange(t, "::/0"))
	if _, ok := s.NextFree(mustRange(t, "::/0")); ok || s.Len() != math.MaxUint64 || len(s.leaves) != 1 {
		t.Errorf("full ::/0: Len = %d, %d leaves, something free: %v", s.Len(), len(s.leaves), ok)
	}
	if !s.Contains(netip.MustParseAddr("fd00::1:2:3")) || s.Add(netip.MustParseAddr("fd00::1:2:3")) {
		t.Error("an address of a full block is not there")
	}
	if n := s.CountIn(mustRange(t, "fd00::5+100000")); n != 100000 {
		t.Errorf("CountIn = %d", n)
	}
	hole := netip.MustParseAddr("fd00::1:2:3")
	if !s.Remove(hole) || s.Contains(hole) || s.Remove(hole) {
		t.Error("one address of many was not removed")
	}
	if a, ok := s.NextFree(mustRange(t, "::/0")); !ok || a != hole {
		t.Errorf("NextFree = %s, %v; want %s", a, ok, hole)
	}
	if len(s.leaves) != 3 {
		t.Errorf("%d leaves around one hole", len(s.leaves))
	}
	if !s.Add(hole) || len(s.leaves) != 1 {
		t.Errorf("%d leaves when the hole is filled", len(s.leaves))
	}
	// 2^64 - 2^16 in full blocks and 2^16 - 1 one by one are as many as a uint64 counts; one more is no more.
	for full, want := range map[uint64]uint64{1<<48 - 1: math.MaxUint64, 1<<48 - 2: math.MaxUint64 - 65536} {
		if got := saturate(u128{0, full}, 65535); got != want {
			t.Errorf("%d full blocks and 65535: %d, want %d", full, got, want)
		}
	}
	if got := saturate(u128{0, 1<<48 - 1}, 65536); got != math.MaxUint64 {
		t.Errorf("one more than a uint64 counts: %d", got)
	}
	s.RemoveRange(mustRange(t, "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"))
	if s.Len() != 2 || s.CountIn(mustRange(t, "::+5")) != 1 {
		t.Errorf("Len = %d", s.Len())
	}
	checkSet(t, s)
}

// memory returns the bytes that the leaves of a set hold.
func (s *Set) memory() int {
	n := cap(s.leaves) * int(unsafe.Sizeof(leaf{}))
	for _, l := range s.leaves {
		n += cap(l.list) * entrySize
		if l.bits != nil {
			n += 8 * (cap(l.bits.words) + cap(l.bits.full))
		}
	}
	if s.spare != nil {
		n += 8 * (cap(s.spare.words) + cap(s.spare.full))
	}
	return n
}

// Memory grows with what is used, never with the size of the subnet, and comes back when addresses do
// (GA-28).
func TestSetMemory(t *testing.T) {
	half := func(s *Set) {
		for a := s.prefix.Addr(); s.prefix.Contains(a); a = a.Next().Next() {
			s.Add(a)
		}
	}
	for _, c := range []struct {
		name, prefix string
		fill         func(*Set)
		most         int
	}{
		{"empty", "::/0", func(*Set) {}, 0},
		{"one address of a vast prefix", "::/0", func(s *Set) { s.Add(netip.MustParseAddr("fd00::1")) }, 128},
		{"half of a /24", "10.0.0.0/24", half, 128},
		{"half of a /12", "10.0.0.0/12", half, 16*8320 + 32*80},
		{"all of a /8", "10.0.0.0/8", func(s *Set) { s.AddRange(netipx.RangeOfPrefix(s.prefix)) }, 128},
		{"20,000 scattered in a /64", "fd00::/64", func(s *Set) {
			for _, a := range scattered(s.prefix, 20000) {
				s.Add(a)
			}
		}, 20000 * 40},
		{"two left of 20,000", "fd00::/48", func(s *Set) {
			all := scattered(s.prefix, 20000)
			for _, a := range all {
				s.Add(a)
			}
			for _, a := range all[2:] {
				s.Remove(a)
			}
		}, 12000},
		{"200 left of 20,000", "fd00::/64", func(s *Set) {
			all := scattered(s.prefix, 20000)
			for _, a := range all {
				s.Add(a)
			}
			for i, a := range all {
				if i%100 != 0 {
					s.Remove(a)
				}
			}
			if len(s.leaves) > 2 { // short lists join
				t.Errorf("200 members in %d leaves", len(s.leaves))
			}
		}, 20000}, // the table of leaves keeps its length until the set is empty
	} {
		s := NewSet(netip.MustParsePrefix(c.prefix))
		c.fill(s)
		if n := s.memory(); n > c.most {
			t.Errorf("%s: %d bytes, at most %d allowed", c.name, n, c.most)
		}
		checkSet(t, s)
		s.RemoveRange(netipx.RangeOfPrefix(s.prefix))
		if n := s.memory(); n != 0 || s.Len() != 0 {
			t.Errorf("%s: %d bytes and %d members are left when all is removed", c.name, n, s.Len())
		}
	}
}
