package ipam_test

import (
	"math/big"
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// A network is as full as its fullest subnet: free addresses of one family do not help a request for the other.
// Subnets that can give nothing do not count.
func TestFullest(t *testing.T) {
	use := func(used uint64, free int64) *ipam.StateCounts {
		return &ipam.StateCounts{Leased: used, Free: ipam.NewCount(free)}
	}
	v4, v6, more := netip.MustParsePrefix("10.1.0.0/28"), netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("10.2.0.0/24")
	type part struct {
		cidr netip.Prefix
		use  *ipam.StateCounts
	}
	for name, c := range map[string]struct {
		parts   []part
		percent int
		fullest netip.Prefix
		ok      bool
	}{
		"none":               {nil, 0, netip.Prefix{}, false},
		"nothing to give":    {[]part{{v4, use(0, 0)}}, 0, netip.Prefix{}, false},
		"one":                {[]part{{v4, use(7, 7)}}, 50, v4, true},
		"a full IPv4":        {[]part{{v4, use(14, 0)}, {v6, use(14, 1<<62)}}, 100, v4, true},
		"a full IPv4 behind": {[]part{{v6, use(14, 1<<62)}, {v4, use(14, 0)}}, 100, v4, true},
		"a full one of two":  {[]part{{v4, use(14, 0)}, {more, use(0, 254)}}, 100, v4, true},
		"nothing and empty":  {[]part{{v4, use(0, 0)}, {v6, use(0, 9)}}, 0, v6, true},
	} {
		var sum ipam.Use
		var leased uint64
		for _, p := range c.parts {
			one := ipam.SubnetUse(p.cidr, []ipam.PoolUse{{Pool: "p", StateCounts: *p.use}})
			sum.And(&one)
			leased += p.use.Leased
		}
		percent, ok := sum.Percent()
		if percent != c.percent || ok != c.ok || sum.Leased != leased || sum.Fullest.Subnet.IsValid() != c.ok {
			t.Errorf("%s: %d %t, %+v", name, percent, ok, sum)
		}
		if sum.Fullest.Subnet != c.fullest {
			t.Errorf("%s: the fullest is %s", name, sum.Fullest.Subnet)
		}
	}
}

// TestFreeText: a very large count of free addresses reads "practically all" if hardly any are taken. Smaller
// counts are exact.
func TestFreeText(t *testing.T) {
	power := func(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }
	less := func(n uint, by int64) *big.Int { return new(big.Int).Sub(power(n), big.NewInt(by)) }
	for _, c := range []struct {
		free, size *big.Int
		want       string
	}{
		{big.NewInt(251), big.NewInt(254), "251"},
		{less(32, 1), power(32), "4294967295"},
		{power(64), power(64), "practically all"},
		{less(64, 1_000_000), power(64), "practically all"},
		{power(63), power(64), "2^63"},
		{nil, power(64), "0"},
	} {
		if got := (ipam.Count{Int: c.free}).TextOf(ipam.Count{Int: c.size}); got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.free, c.size, got, c.want)
		}
	}
	u := ipam.Use{StateCounts: ipam.StateCounts{Leased: 5, Free: ipam.Count{Int: less(64, 5)}}}
	if got := u.FreeText(); got != "practically all" {
		t.Errorf("of a subnet it is %q", got)
	}
}
