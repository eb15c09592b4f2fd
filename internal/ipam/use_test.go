package ipam_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// A network is as full as the fullest of its subnets: free addresses of one family do not help who needs one of the
// other. Subnets that can give nothing do not count.
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
