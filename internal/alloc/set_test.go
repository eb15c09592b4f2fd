package alloc

import (
	"net/netip"
	"slices"
	"testing"

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

// C68: the last of n addresses that are taken in turn.
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

// For every edge prefix, each usable address is taken once, in order, and then none is free.
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
		for _, a := range slices.Collect(s.all) {
			if !s.Remove(a) {
				t.Fatalf("%s: Remove(%s) = false", p, a)
			}
		}
		if s.Len() != 0 || s.runs.Len() != 0 {
			t.Errorf("%s: %d members in %d runs are left", p, s.Len(), s.runs.Len())
		}
	}
}

func TestSetRefusesForeignAddresses(t *testing.T) {
	s := NewSet(netip.MustParsePrefix("10.0.0.77/24"))
	v6 := NewSet(netip.MustParsePrefix("::/0"))
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("10.0.1.0"), netip.MustParseAddr("9.255.255.255"),
		netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fe80::1%eth0")} {
		if s.Add(a) || s.Contains(a) || s.Remove(a) {
			t.Errorf("%s is taken for an address of %s", a, s.prefix)
		}
	}
	if zoned := netip.MustParseAddr("fe80::1%eth0"); v6.Add(zoned) || v6.Contains(zoned) {
		t.Error("an address with a zone went in")
	}
	for _, r := range []netipx.IPRange{{}, mustRange(t, "10.0.1.0/24"), mustRange(t, "::/0"),
		netipx.IPRangeFrom(netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.1"))} {
		if a, ok := s.NextFree(r); ok || s.CountIn(r) != 0 || s.Len() != 0 {
			t.Errorf("%v: NextFree = %s, %v, CountIn = %d, Len = %d", r, a, ok, s.CountIn(r), s.Len())
		}
	}
	none := NewSet(netip.Prefix{})
	if none.Add(netip.MustParseAddr("10.0.0.1")) || none.Len() != 0 || none.Contains(netip.Addr{}) {
		t.Error("a set over no prefix holds something")
	}
}

// Nothing follows the last address.
func TestSetEnds(t *testing.T) {
	s := NewSet(netip.MustParsePrefix("::/0"))
	first, last := netip.MustParseAddr("::"), netip.MustParseAddr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	for _, a := range []netip.Addr{first, last} {
		if !s.Add(a) || s.Add(a) {
			t.Errorf("%s went in twice, or not", a)
		}
	}
	if all := slices.Collect(s.all); !slices.Equal(all, []netip.Addr{first, last}) || s.runs.Len() != 2 {
		t.Errorf("%v in %d runs", all, s.runs.Len())
	}
	checkSet(t, s)
}

// Memory grows with use, never with the size of the subnet, and is freed when addresses are removed (GA-28).
func TestSetMemory(t *testing.T) {
	for _, c := range []struct {
		name, prefix string
		step, n      int // distance between members, and their number
		runs         int
	}{
		{"one address of a vast prefix", "::/0", 1, 1, 1},
		{"all of a /12", "10.0.0.0/12", 1, 1 << 20, 1},
		{"half of a /16", "10.0.0.0/16", 2, 1 << 15, 1 << 15},
		{"20,000 in a /64", "fd00::/64", 7, 20000, 20000},
	} {
		p := netip.MustParsePrefix(c.prefix)
		s := NewSet(p)
		at := func(i int) netip.Addr { return valueOf(p.Addr()).add(u128{0, uint64(i * c.step)}).addr(p.Addr().Is4()) }
		for i := range c.n {
			s.Add(at(i))
		}
		if s.runs.Len() != c.runs || s.Len() != uint64(c.n) {
			t.Errorf("%s: %d members in %d runs, want %d in %d", c.name, s.Len(), s.runs.Len(), c.n, c.runs)
		}
		for i := range c.n {
			s.Remove(at(i))
		}
		if s.runs.Len() != 0 || s.Len() != 0 {
			t.Errorf("%s: %d members in %d runs are left", c.name, s.Len(), s.runs.Len())
		}
	}
}
