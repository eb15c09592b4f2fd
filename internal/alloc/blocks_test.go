package alloc

import (
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

func prefixes(t testing.TB, texts ...string) []netip.Prefix {
	t.Helper()
	var all []netip.Prefix
	for _, s := range texts {
		p, err := ParsePrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func blocksOf(t testing.TB, texts ...string) *Blocks {
	t.Helper()
	b := NewBlocks()
	for _, p := range prefixes(t, texts...) {
		if !b.Insert(p) {
			t.Fatalf("Insert(%s) = false", p)
		}
	}
	return b
}

// C32, C65 and C66 of the collected cases, and the other relations between two prefixes. LN-5
func TestBlocksInsertRefusesOverlaps(t *testing.T) {
	for _, c := range []struct {
		there, new string
		ok         bool
	}{
		{"192.168.0.0/24", "192.168.0.128/28", false}, // C32
		{"192.168.0.0/24", "192.168.1.0/24", true},
		{"192.168.0.0/24", "f1ee::/64", true},
		{"10.0.0.0/8", "11.0.0.0/8", true}, // C65
		{"10.0.0.0/8", "10.0.0.0/8", false},
		{"10.0.0.0/8", "8.0.0.0/6", false},
		{"c000::/2", "8000::/1", false}, // C66
		{"0.0.0.0/0", "10.0.0.1/32", false},
		{"10.0.0.1/32", "0.0.0.0/0", false},
		{"::/0", "10.0.0.0/8", true},
		{"::/0", "::1/128", false},
		{"fd00::/127", "fd00::2/127", true},
		{"fd00::/128", "fd00::1/128", true},
	} {
		b := blocksOf(t, c.there)
		p := prefixes(t, c.new)[0]
		m, taken := b.Overlap(p)
		if taken == c.ok || taken && m.String() != c.there {
			t.Errorf("beside %s: Overlap(%s) = %v, %v", c.there, p, m, taken)
		}
		if got := b.Insert(p); got != c.ok {
			t.Errorf("beside %s: Insert(%s) = %v", c.there, p, got)
		}
		if want := 1 + len(b.In(p)); taken && b.Len() != 1 || !taken && b.Len() != want {
			t.Errorf("beside %s: %d members after Insert(%s)", c.there, b.Len(), p)
		}
	}
	// The last prefix of C65 has host bits: it means 8.0.0.0/6.
	if blocksOf(t, "10.0.0.0/8").Insert(netip.MustParsePrefix("10.0.0.0/6")) {
		t.Error("10.0.0.0/6 went in beside 10.0.0.0/8")
	}
	b := NewBlocks()
	if _, taken := b.Overlap(netip.Prefix{}); taken || b.Insert(netip.Prefix{}) || b.Remove(netip.Prefix{}) ||
		b.In(netip.Prefix{}) != nil {
		t.Error("the zero prefix is taken for one")
	}
}

func TestBlocksCarve(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []string
		base    string
		bits    int
		avoid   []string
		want    string // "" if there is none
	}{
		{"empty", nil, "10.0.0.0/8", 24, nil, "10.0.0.0/24"},
		{"the base itself", nil, "10.0.0.0/8", 8, nil, "10.0.0.0/8"},
		{"larger than the base", nil, "10.0.0.0/8", 7, nil, ""},
		{"longer than an address", nil, "10.0.0.0/8", 33, nil, ""},
		{"behind a member", []string{"10.0.0.0/24"}, "10.0.0.0/8", 24, nil, "10.0.1.0/24"},
		{"aligned behind a small member", []string{"10.0.0.7/32"}, "10.0.0.0/8", 16, nil, "10.1.0.0/16"},
		{"in a gap", []string{"10.0.0.0/24", "10.0.2.0/23"}, "10.0.0.0/8", 24, nil, "10.0.1.0/24"},
		{"past a gap too small", []string{"10.0.0.0/24", "10.0.2.0/23"}, "10.0.0.0/8", 23, nil, "10.0.4.0/23"},
		{"member around the base", []string{"10.0.0.0/8"}, "10.3.0.0/16", 24, nil, ""},
		{"member is the base", []string{"10.0.0.0/8"}, "10.0.0.0/8", 24, nil, ""},
		{"exhausted", []string{"10.0.0.0/25", "10.0.0.128/25"}, "10.0.0.0/24", 26, nil, ""},
		{"avoid around the base", nil, "10.3.0.0/16", 24, []string{"10.0.0.0/8"}, ""},
		{"avoid the default route", nil, "10.3.0.0/16", 24, []string{"0.0.0.0/0"}, ""},
		{"avoid another family", nil, "10.3.0.0/16", 24, []string{"::/0"}, "10.3.0.0/24"},
		{"avoid overlapping each other", nil, "10.0.0.0/8", 24,
			[]string{"10.0.1.0/24", "10.0.0.0/16", "10.0.0.0/24", "10.1.0.0/24", "10.0.0.0/16"}, "10.1.1.0/24"},
		{"avoid and members by turns", []string{"10.0.0.0/24", "10.0.2.0/24"}, "10.0.0.0/22", 24,
			[]string{"10.0.1.9/32", "10.0.3.0/25"}, ""},
		{"unique local", []string{"fd00:1:2::/64"}, "fd00:1:2::/48", 64, []string{"fd00:1:2:1::5/128"},
			"fd00:1:2:2::/64"},
		{"single IPv6 addresses", []string{"::/127"}, "::/0", 128, nil, "::2/128"},
		{"the last IPv4 address", []string{"255.255.255.254/32"}, "255.255.255.254/31", 32, nil, "255.255.255.255/32"},
	} {
		b := blocksOf(t, c.members...)
		got, ok := b.Carve(prefixes(t, c.base)[0], c.bits, prefixes(t, c.avoid...))
		if ok != (c.want != "") || ok && got.String() != c.want {
			t.Errorf("%s: Carve = %v, %v; want %q", c.name, got, ok, c.want)
		}
		if b.Len() != len(c.members) {
			t.Errorf("%s: Carve inserted something", c.name)
		}
	}
}

// A base or avoided prefix with host bits means the prefix that contains it.
func TestBlocksCarveIgnoresHostBits(t *testing.T) {
	avoid := []netip.Prefix{netip.MustParsePrefix("10.0.0.77/24"), {}}
	got, ok := NewBlocks().Carve(netip.MustParsePrefix("10.9.9.9/8"), 24, avoid)
	if want := netip.MustParsePrefix("10.0.1.0/24"); !ok || got != want {
		t.Errorf("Carve = %v, %v; want %v", got, ok, want)
	}
	if _, ok := NewBlocks().Carve(netip.Prefix{}, 24, nil); ok {
		t.Error("something was carved from the zero prefix")
	}
}

// slowBlocks is the obvious Blocks: a list.
type slowBlocks []netip.Prefix

func (b slowBlocks) in(p netip.Prefix) []netip.Prefix {
	var in []netip.Prefix
	for _, m := range b {
		if m.Overlaps(p) {
			in = append(in, m)
		}
	}
	slices.SortFunc(in, netip.Prefix.Compare)
	return in
}

// carve tries each place in turn, so base must not be too large.
func (b slowBlocks) carve(base netip.Prefix, bits int, avoid []netip.Prefix) (netip.Prefix, bool) {
	all := slices.Concat(b, avoid)
	for p := netip.PrefixFrom(base.Addr(), bits); bits >= base.Bits() && base.Overlaps(p); {
		if !slices.ContainsFunc(all, p.Overlaps) {
			return p, true
		}
		next := netipx.PrefixLastIP(p).Next()
		if !next.IsValid() {
			break
		}
		p = netip.PrefixFrom(next, bits)
	}
	return netip.Prefix{}, false
}

// drawPrefix draws a prefix from a small neighbourhood in the middle of an address, so that prefixes meet often.
func drawPrefix(t *rapid.T, label string) netip.Prefix {
	base := rapid.SampledFrom([]netip.Prefix{
		netip.MustParsePrefix("10.20.0.0/24"), netip.MustParsePrefix("255.255.255.0/24"),
		netip.MustParsePrefix("0.0.0.0/24"),
		netip.MustParsePrefix("fd00:1:2:30::/56"), netip.MustParsePrefix("::/120"),
	}).Draw(t, label+" base")
	host := u128{0, uint64(rapid.IntRange(0, 255).Draw(t, label+" host"))}.shl(max(0,
		base.Addr().BitLen()-base.Bits()-8))
	bits := rapid.SampledFrom([]int{0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 8, 8}).Draw(t, label+" bits")
	p := netip.PrefixFrom(valueOf(base.Addr()).add(host).addr(base.Addr().Is4()), base.Bits()+bits)
	if rapid.IntRange(0, 60).Draw(t, label+" wide") == 0 {
		p = netip.PrefixFrom(p.Addr(), rapid.IntRange(0, base.Bits()).Draw(t, label+" short"))
	}
	return p.Masked()
}

func TestBlocksAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fast, slow := NewBlocks(), slowBlocks{}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				p := drawPrefix(t, "p")
				want := len(slow.in(p)) == 0
				if got := fast.Insert(p); got != want {
					t.Fatalf("Insert(%s) = %v", p, got)
				}
				if want {
					slow = append(slow, p)
				}
			},
			"remove": func(t *rapid.T) {
				p := drawPrefix(t, "p")
				if len(slow) > 0 && rapid.Bool().Draw(t, "a member") {
					p = rapid.SampledFrom(slow).Draw(t, "member")
				}
				i := slices.Index(slow, p)
				if got := fast.Remove(p); got != (i >= 0) {
					t.Fatalf("Remove(%s) = %v", p, got)
				}
				if i >= 0 {
					slow = slices.Delete(slow, i, i+1)
				}
			},
			"carve": func(t *rapid.T) {
				base := drawPrefix(t, "base")
				bits := base.Bits() + rapid.IntRange(-1, 9).Draw(t, "longer")
				bits = min(max(bits, 0), base.Addr().BitLen())
				var avoid []netip.Prefix
				for range rapid.IntRange(0, 6).Draw(t, "avoid") {
					avoid = append(avoid, drawPrefix(t, "avoid"))
				}
				want, wantOK := slow.carve(base, bits, avoid)
				got, ok := fast.Carve(base, bits, avoid)
				if got != want || ok != wantOK {
					t.Fatalf("Carve(%s, %d, %v) = %v, %v; want %v, %v", base, bits, avoid, got, ok, want, wantOK)
				}
				if ok && rapid.Bool().Draw(t, "keep") && fast.Insert(got) {
					slow = append(slow, got)
				}
			},
			"": func(t *rapid.T) {
				p := drawPrefix(t, "look")
				in := slow.in(p)
				if got := fast.In(p); !slices.Equal(got, in) {
					t.Fatalf("In(%s) = %v, want %v", p, got, in)
				}
				if m, ok := fast.Overlap(p); ok != (len(in) > 0) || ok && m != in[0] {
					t.Fatalf("Overlap(%s) = %v, %v, want %v", p, m, ok, in)
				}
				if fast.Len() != len(slow) {
					t.Fatalf("Len = %d, want %d", fast.Len(), len(slow))
				}
				want := [2]runs{newRuns(), newRuns()}
				for _, p := range slow {
					want[p.Addr().BitLen()/128].add(runOf(p))
				}
				for i, got := range [2]runs{fast.taken4, fast.taken6} {
					if !slices.Equal(got.Items(), want[i].Items()) {
						t.Fatalf("taken are %v, want %v", got.Items(), want[i].Items())
					}
				}
			},
		})
	})
}
