package alloc

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

func TestUsable(t *testing.T) {
	for _, c := range []struct{ prefix, want string }{
		{"0.0.0.0/0", "0.0.0.1-255.255.255.254"},
		{"10.0.0.0/8", "10.0.0.1-10.255.255.254"},
		{"192.168.1.77/24", "192.168.1.1-192.168.1.254"}, // host bits are ignored
		{"192.168.1.0/30", "192.168.1.1-192.168.1.2"},
		{"192.168.1.0/31", "192.168.1.0/31"}, // RFC 3021
		{"192.168.1.1/31", "192.168.1.0/31"},
		{"255.255.255.254/31", "255.255.255.254/31"},
		{"192.168.1.1/32", "192.168.1.1"},
		{"0.0.0.0/32", "0.0.0.0"},
		{"::/0", "::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fd00::/64", "fd00::1-fd00::ffff:ffff:ffff:ffff"}, // RFC 4291, 2.6.1
		{"fd00::/126", "fd00::1-fd00::3"},
		{"fd00::/127", "fd00::/127"}, // RFC 6164
		{"fd00::1/128", "fd00::1"},
	} {
		if got := FormatRange(Usable(netip.MustParsePrefix(c.prefix))); got != c.want {
			t.Errorf("Usable(%s) = %s, want %s", c.prefix, got, c.want)
		}
	}
	if r := Usable(netip.Prefix{}); r.IsValid() {
		t.Errorf("the zero prefix has usable addresses: %v", r)
	}
}

// GA-7
func TestParseRange(t *testing.T) {
	for _, c := range []struct{ in, from, to, format string }{
		{"10.0.0.1-10.0.0.9", "10.0.0.1", "10.0.0.9", "10.0.0.1-10.0.0.9"},
		{"10.0.0.1-10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.1"},
		{"10.0.0.0-10.0.0.255", "10.0.0.0", "10.0.0.255", "10.0.0.0/24"},
		{"10.0.0.1-9", "10.0.0.1", "10.0.0.9", "10.0.0.1-10.0.0.9"},
		{"10.0.0.0-255", "10.0.0.0", "10.0.0.255", "10.0.0.0/24"},
		{"10.0.0.1+9", "10.0.0.1", "10.0.0.9", "10.0.0.1-10.0.0.9"},
		{"10.0.0.1+1", "10.0.0.1", "10.0.0.1", "10.0.0.1"},
		{"0.0.0.0+4294967296", "0.0.0.0", "255.255.255.255", "0.0.0.0/0"},
		{"255.255.255.255+1", "255.255.255.255", "255.255.255.255", "255.255.255.255"},
		{"10.0.0.0/31", "10.0.0.0", "10.0.0.1", "10.0.0.0/31"},
		{"10.0.0.7/32", "10.0.0.7", "10.0.0.7", "10.0.0.7"},
		{"10.0.0.7", "10.0.0.7", "10.0.0.7", "10.0.0.7"},
		{"0.0.0.0/0", "0.0.0.0", "255.255.255.255", "0.0.0.0/0"},
		{"fd00::1-fd00:0:0::F", "fd00::1", "fd00::f", "fd00::1-fd00::f"},
		{"FD00::10+16", "fd00::10", "fd00::1f", "fd00::10/124"},
		{"::+340282366920938463463374607431768211456", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::/0"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff+1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fd00::/64", "fd00::", "fd00::ffff:ffff:ffff:ffff", "fd00::/64"},
		{"::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::/0"},
	} {
		r, err := ParseRange(c.in)
		if err != nil || r.From().String() != c.from || r.To().String() != c.to {
			t.Errorf("ParseRange(%q) = %v, %v", c.in, r, err)
			continue
		}
		if got := FormatRange(r); got != c.format {
			t.Errorf("FormatRange(%v) = %q, want %q", r, got, c.format)
		}
	}
}

// Every refusal says what is wrong, and names the right form if there is one. C31
func TestParseRangeRefuses(t *testing.T) {
	for _, c := range []struct{ in, says string }{
		{"1.2.4", "is not an IPv4 or IPv6 address"}, // C31
		{"a-b,c-d", `"a" is not an IPv4 or IPv6 address`},
		{"192.168.1.1-192.168.1.1/25", `"192.168.1.1/25" is not an IPv4 or IPv6 address`},
		{"10.0.0.9-10.0.0.1", "it is reversed; write 10.0.0.1-10.0.0.9"},
		{"10.0.0.1-fd00::1", "one end is IPv4 and the other IPv6"},
		{"fd00::1-10.0.0.1", "one end is IPv4 and the other IPv6"},
		{"::ffff:1.2.3.4", "mapped into IPv6; write 1.2.3.4"},
		{"::ffff:1.2.3.0/120", "mapped into IPv6; write 1.2.3.0"},
		{"::ffff:1.2.3.0-::ffff:1.2.3.9", "mapped into IPv6; write 1.2.3.0"},
		{"::fffe:ffff:ffff+2", "mapped into IPv6"},
		{"fe80::1%eth0", "has a zone"},
		{"fe80::%eth0/64", "has a zone"},
		{"10.0.0.7/24", "it has host bits; the subnet that holds 10.0.0.7 is 10.0.0.0/24"},
		{"fd00::1/64", "is fd00::/64"},
		{"10.0.0.1+0", "a count of at least 1"},
		{"10.0.0.1+00", "a count of at least 1"},
		{"10.0.0.1+007", "write 10.0.0.1+7"},
		{"10.0.0.1+", `"" is not a count`},
		{"10.0.0.1+-1", "is not an IPv4 or IPv6 address"},
		{"x+5", `"x" is not an IPv4 or IPv6 address`},
		{"10.0.0.1+x", `"x" is not a count`},
		{"255.255.255.255+2", "goes past the last IPv4 address; only 1 addresses are left from 255.255.255.255 on"},
		{"10.0.0.0+4294967296", "goes past the last IPv4 address"},
		{"::1+340282366920938463463374607431768211456", "goes past the last IPv6 address"},
		{"::1+" + strings.Repeat("9", 10000), "goes past the last IPv6 address"},
		{"10.0.0.0/33", "a number from 0 to 32"},
		{"fd00::/129", "a number from 0 to 128"},
		{"10.0.0.0/", `"" is not a length`},
		{"10.0.0.0/255.255.254.0", `"255.255.254.0" is a mask; write 10.0.0.0/23`},
		{"10.0.0.0/255.0.255.0", `"255.0.255.0" is not a length`},
		{"2001:db8::/255.255.254.0", `"255.255.254.0" is not a length`},
		{"10.0.0.0/-1", "is not an IPv4 or IPv6 address"},
		{"10.0.0.0/08", "write 10.0.0.0/8"},
		{"10.0.0.0/8/9", `"8/9" is not a length`},
		{"010.000.0.1", "leading zeros, which some programs read as octal; write 10.0.0.1"},
		{"10.0.0.01-10.0.0.9", "write 10.0.0.1"},
		{"", "an address is missing"},
		{"-", "an address is missing"},
		{"10.0.0.1-", "an address is missing"},
		{"/24", "an address is missing"},
		{" 10.0.0.1", "contains blanks"},
		{"10.0.0.1 - 10.0.0.2", "contains blanks"},
		{"10.0.0.1\n", "contains blanks"},
		{"10.0.0.1-10.0.0.4, 10.0.0.7-10.0.0.9", "these are 2 ranges; give each one by itself, 10.0.0.1-10.0.0.4 first"},
		{"10.0.0.1 10.0.0.2;10.0.0.3", "these are 3 ranges"},
		{"10.0.0.9-1", "it is reversed; write 10.0.0.1-10.0.0.9"},
		{"10.0.0.1-256", `"256" cannot be the last number of an IPv4 address; ` +
			"write a range like 10.0.0.10-10.0.0.20, or 10.0.0.10-20"},
		{"10.0.0.1-09", `"09" cannot be the last number of an IPv4 address`},
		{"fd00::1-9", "write both addresses in full"},
		{"100-150", `"100" is not an IPv4 or IPv6 address; write an address like 10.0.0.10, or a range like 10.0.0.10-`},
		{"10.0.0.1-10.0.9", `"10.0.9" is not an IPv4 or IPv6 address; write an address like 10.0.0.10, or a range`},
		{"10.0.0.1..10.0.0.9", "or a range like 10.0.0.10-10.0.0.20, or 10.0.0.10-20 for short"},
		{"10.0.0.1_9", "or a range like"},
		{"10.0.0.1-10.0.0.2-10.0.0.3", "is not an IPv4 or IPv6 address"},
	} {
		r, err := ParseRange(c.in)
		if err == nil || !errors.Is(err, errRange) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("ParseRange(%q) = %v, %v; want an error with %q", c.in, r, err, c.says)
		}
	}
}

func TestParsePrefix(t *testing.T) {
	for in, want := range map[string]string{"10.0.0.0/8": "10.0.0.0/8", "0.0.0.0/0": "0.0.0.0/0",
		"FD00:0::/64": "fd00::/64", "10.0.0.1/32": "10.0.0.1/32"} {
		if p, err := ParsePrefix(in); err != nil || p.String() != want {
			t.Errorf("ParsePrefix(%q) = %v, %v", in, p, err)
		}
	}
	for in, says := range map[string]string{
		"10.0.0.1":           "it has no length",
		"10.0.0.0-10.0.0.1":  "it has no length",
		"10.0.0.1/8":         "the subnet that holds 10.0.0.1 is 10.0.0.0/8",
		"::ffff:10.0.0.0/96": "mapped into IPv6; write 10.0.0.0",
		"10.0.0.0/+8":        `"+8" is not a length`,
		"10.0.0.0/1000":      "a number from 0 to 32",
		"10.0.0.0 /8":        "contains blanks",
		"10.0.0.0/ 8":        `" 8" is not a length`,
		"10.1/16":            `"10.1" is not an IPv4 or IPv6 address`,
	} {
		p, err := ParsePrefix(in)
		if err == nil || !errors.Is(err, errPrefix) || !strings.Contains(err.Error(), says) {
			t.Errorf("ParsePrefix(%q) = %v, %v; want an error with %q", in, p, err, says)
		}
	}
}

func TestParseAddr(t *testing.T) {
	for in, want := range map[string]string{"10.0.0.1": "10.0.0.1", "FD00:0::1": "fd00::1", "::": "::",
		"0.0.0.0": "0.0.0.0"} {
		if a, err := ParseAddr(in); err != nil || a.String() != want {
			t.Errorf("ParseAddr(%q) = %v, %v", in, a, err)
		}
	}
	for in, says := range map[string]string{
		"":                  "an address is missing",
		"10.0.0.0/24":       `"10.0.0.0/24" is not an IPv4 or IPv6 address`,
		"10.0.0.1-10.0.0.1": "is not an IPv4 or IPv6 address",
		"10.0.0.1+1":        "is not an IPv4 or IPv6 address",
		"::ffff:10.0.0.1":   "write 10.0.0.1",
		"fe80::1%eth0":      "has a zone",
		"10.0.0.010":        "write 10.0.0.10",
		"10.0.0.1 ":         "contains blanks",
	} {
		if a, err := ParseAddr(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseAddr(%q) = %v, %v; want an error with %q", in, a, err, says)
		}
	}
}

func TestSize(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1": "1", "10.0.0.0/8": "16777216", "0.0.0.0/0": "4294967296", "10.0.0.1-10.0.0.5": "5",
		"fd00::/64": "18446744073709551616", "::/0": "340282366920938463463374607431768211456",
	} {
		if got := Size(mustRange(t, in)); got.String() != want {
			t.Errorf("Size(%s) = %s, want %s", in, got, want)
		}
	}
	if got := Size(netipx.IPRange{}); got.Cmp(big.NewInt(0)) != 0 {
		t.Errorf("the zero range has %s addresses", got)
	}
	if got := FormatRange(netipx.IPRange{}); got != "" {
		t.Errorf("the zero range is written %q", got)
	}
}

// A formatted range is parsed back, for ranges of every size, and "A+N" means the N that Size returns.
func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "bytes")
		raw := rapid.SliceOfN(rapid.Byte(), length, length)
		a, _ := netip.AddrFromSlice(raw.Draw(t, "a"))
		b, _ := netip.AddrFromSlice(raw.Draw(t, "b"))
		if length == 4 && rapid.Bool().Draw(t, "near") {
			b, _ = netip.AddrFromSlice(append(a.AsSlice()[:3], rapid.Byte().Draw(t, "last")))
		}
		if b.Less(a) {
			a, b = b, a
		}
		r := netipx.IPRangeFrom(a, b)
		if rapid.Bool().Draw(t, "a prefix") {
			r = netipx.RangeOfPrefix(netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")))
		}
		if r.From().Is4In6() || r.To().Is4In6() {
			return
		}
		if a.Is4() && netip.PrefixFrom(r.From(), 24).Contains(r.To()) {
			short := fmt.Sprintf("%s-%d", r.From(), r.To().As4()[3])
			if got, err := ParseRange(short); err != nil || got != r {
				t.Fatalf("ParseRange(%q) = %v, %v; want %v", short, got, err, r)
			}
		}
		for _, s := range []string{FormatRange(r), r.From().String() + "-" + r.To().String(), r.From().String() + "+" +
			Size(r).String()} {
			if got, err := ParseRange(s); err != nil || got != r {
				t.Fatalf("ParseRange(%q) = %v, %v; want %v", s, got, err, r)
			}
		}
	})
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"10.0.0.1-10.0.0.9", "10.0.0.1+9", "10.0.0.0/8", "fd00::1", "::ffff:1.2.3.4", "::/0",
		"010.0.0.1", "fe80::1%a", "::+340282366920938463463374607431768211456", "::fffe:0:0/95"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRange(s)
		if err != nil {
			if !errors.Is(err, errRange) || r.IsValid() {
				t.Fatalf("ParseRange(%q) = %v, %v", s, r, err)
			}
			return
		}
		if !r.IsValid() || r.From().Is4In6() || r.From().Zone() != "" {
			t.Fatalf("ParseRange(%q) = %v", s, r)
		}
		if again, err := ParseRange(FormatRange(r)); err != nil || again != r {
			t.Fatalf("%q is %v, written %q and read as %v, %v", s, r, FormatRange(r), again, err)
		}
	})
}

func FuzzParsePrefix(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "fd00::/64", "10.0.0.1/8", "::ffff:1.2.3.0/120", "::/0", "10.0.0.0/08",
		"fe80::%a/64"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrefix(s)
		if err != nil {
			if !errors.Is(err, errPrefix) || p.IsValid() {
				t.Fatalf("ParsePrefix(%q) = %v, %v", s, p, err)
			}
			return
		}
		if want, err := netip.ParsePrefix(s); err != nil || p != want || p != p.Masked() || p.Addr().Is4In6() {
			t.Fatalf("ParsePrefix(%q) = %v; the standard library: %v, %v", s, p, want, err)
		}
		if again, err := ParsePrefix(p.String()); err != nil || again != p {
			t.Fatalf("%q is %v, read back as %v, %v", s, p, again, err)
		}
	})
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		r    string
		n    uint8
		want string
	}{
		{"10.0.0.0-10.0.0.255", 0, "10.0.0.0"},
		{"10.0.0.0-10.0.0.255", 1, "10.0.0.127"},
		{"10.0.0.0/16", 2, "10.0.63.255"},
		{"10.0.0.0/16", 3, "10.0.191.255"},
		{"10.0.0.7-10.0.0.7", 255, "10.0.0.7"},
		{"0.0.0.0/0", 255, "254.255.255.255"},
		{"::/0", 1, "7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fd00::/64", 255, "fd00::feff:ffff:ffff:ffff"},
	} {
		r, err := ParseRange(c.r)
		if err != nil {
			t.Fatal(err)
		}
		if got := Place(r, c.n).String(); got != c.want {
			t.Errorf("Place(%s, %d) = %s, want %s", c.r, c.n, got, c.want)
		}
	}
	r := Usable(netip.MustParsePrefix("10.0.0.0/22"))
	seen := map[netip.Addr]bool{}
	for n := range 256 {
		a := Place(r, uint8(n))
		if !r.Contains(a) || seen[a] {
			t.Errorf("Place(%s, %d) = %s", r, n, a)
		}
		seen[a] = true
	}
}
