package ipam_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// A network is as full as its fullest subnet: free addresses of one family do not help a request for the other.
// Subnets that can give nothing do not count.
func TestFullest(t *testing.T) {
	// the used and free addresses of each subnet; the use, and the fullest one
	for c := range ipamtest.Rows(3, strings.ReplaceAll(`
		none
		nothing to give | 10.1.0.0/28 0 0
		one | 10.1.0.0/28 7 7 | 50 10.1.0.0/28
		a full IPv4 | 10.1.0.0/28 14 0; 2001:db8::/64 14 MANY | 100 10.1.0.0/28
		a full IPv4 behind | 2001:db8::/64 14 MANY; 10.1.0.0/28 14 0 | 100 10.1.0.0/28
		a full one of two | 10.1.0.0/28 14 0; 10.2.0.0/24 0 254 | 100 10.1.0.0/28
		nothing and empty | 10.1.0.0/28 0 0; 2001:db8::/64 0 9 | 0 2001:db8::/64
	`, "MANY", fmt.Sprint(1<<62))) {
		var sum ipam.Use
		var leased uint64
		for part := range strings.SplitSeq(c[1], "; ") {
			var cidr string
			var used uint64
			var free int64
			if n, _ := fmt.Sscan(part, &cidr, &used, &free); n == 3 {
				one := ipam.SubnetUse(netip.MustParsePrefix(cidr), []ipam.PoolUse{{Pool: "p",
					StateCounts: ipam.StateCounts{Leased: used, Free: ipam.NewCount(free)}}})
				sum.And(&one)
				leased += used
			}
		}
		percent, ok := sum.Percent()
		got := strings.TrimSuffix(fmt.Sprint(percent, " ", sum.Fullest.Subnet), "0 invalid Prefix")
		if got != c[2] || ok != (c[2] != "") || sum.Leased != leased {
			t.Errorf("%s: %s %t, %+v", c[0], got, ok, sum)
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
