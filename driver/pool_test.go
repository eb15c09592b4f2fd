package driver

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestPool tests the answer to a request: an id, the CIDR without host bits, and no metadata if no gateway was named
// (LN-1, LN-11).
func TestPool(t *testing.T) {
	for row := range ipamtest.Rows(6, `
		10.0.0.0/24 | | | | 10.0.0.0/24
		10.0.0.0/24 | 10.0.0.128/25 | | | 10.0.0.0/24
		# Docker 20.10 passes host bits on, and its own IPAM masks them
		10.0.0.7/24 | 10.0.0.130/25 | | | 10.0.0.0/24
		fd00::5/64 | | v6 | | fd00::/64
		# the subnet decides the family; a swarm manager asks like this
		10.0.0.0/24 | | v6 | | 10.0.0.0/24
		fd00::/64 | | v6 | | fd00::/64
		fd00::/64 | | | | fd00::/64
		10.0.0.0/24 | | | gateway=10.0.0.9 | 10.0.0.0/24 | 10.0.0.9/24
		| | | | 172.16.0.0/24
		| | v6 | | fd00:be27::/64
		| | | size=26 | 172.16.0.0/26
		# a size only (v29)
		0.0.0.0/20 | | | | 172.16.0.0/20
		::/80 | | v6 | | fd00:be27::/80
		::/80 | | | | fd00:be27::/80
	`) {
		for _, space := range []string{"local", "global", "lab"} {
			b := newBench(t)
			res, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: space, Pool: row[0], SubPool: row[1],
				V6: row[2] != "", Options: optsOf(row[3])})
			if refused != "" || res.Pool != row[4] || res.Data[metaGateway] != row[5] || len(res.Data) > len(row[5]) {
				t.Errorf("%q: %+v %s", row, res, refused)
			}
			if _, err := ipam.ParseID(res.PoolID); err != nil {
				t.Error(err)
			}
			if got := b.subnets(space); !slices.Equal(got, []string{row[4]}) {
				t.Errorf("%q: subnets of %s: %v", row, space, got)
			}
		}
	}
}

// TestPoolRefused tests that invalid requests are refused with the reason and what to write instead (LN-1, C28, C29,
// C31, C67).
func TestPoolRefused(t *testing.T) {
	for row := range ipamtest.Rows(6, `
		# C67
		no space | | 10.0.0.0/24 | | | no address space
		# C67
		space of no name | a b | 10.0.0.0/24 | | | "a b"
		# C67
		range without a subnet | local | | 10.0.0.0/25 | | needs its subnet
		no length | local | 10.0.0.0 | | | length; 10.0.0.0
		too long | local | 10.0.0.0/33 | | | 33
		mapped | local | ::ffff:10.0.0.0/120 | | | mapped; 10.0.0.0
		zone | local | fe80::%eth0/64 | | | zone
		leading zeros | local | 010.0.0.0/24 | | | leading zeros
		# C31
		three numbers | local | 1.2.4 | | | 1.2.4
		# C31
		two ranges | local | 10.0.0.0/24 | 10.0.0.1-10.0.0.2,10.0.0.4-10.0.0.5 | | range
		# C31
		range with a length | local | 10.0.0.0/24 | 10.0.0.1-10.0.0.1/25 | | range
		all of IPv4 | local | 0.0.0.0/0 | | | 0.0.0.0/0
		all of IPv6 | local | ::/0 | | | ::/0
		reversed range | local | 10.0.0.0/24 | 10.0.0.9-10.0.0.5 | | reversed; 10.0.0.5-10.0.0.9
		range of two families | local | 10.0.0.0/24 | 10.0.0.9-fd00::1 | | IPv4; IPv6
		range of the other family | local | 10.0.0.0/24 | fd00::/80 | | families; 10.0.0.0/24
		range of the other family, IPv6 | local | fd00::/64 | 10.0.0.0/25 | | families; fd00::/64
		range around the subnet | local | 10.0.0.0/24 | 10.0.0.0/23 | | not inside; 10.0.0.0/24
		# C29
		range beyond the end | local | 10.0.0.0/24 | 10.0.0.200-10.0.1.10 | | not inside; 10.0.0.0/24
		range elsewhere | local | 10.0.0.0/24 | 10.0.1.0/25 | | not inside; 10.0.0.0/24
		range of the network address | local | 10.0.0.0/24 | 10.0.0.0/32 | | no host address; 10.0.0.0/24
		range of the broadcast address | local | 10.0.0.0/24 | 10.0.0.255 | | no host address; 10.0.0.0/24
		# C28
		gateway outside | local | 192.168.0.0/24 | | gateway=190.168.0.254 | 190.168.0.254; outside
		# C28
		gateway is the network | local | 192.168.0.0/24 | | gateway=192.168.0.0 | 192.168.0.0
		# C28
		gateway is the broadcast | local | 192.168.0.0/24 | | gateway=192.168.0.255 | 192.168.0.255
		# C28
		gateway as a CIDR | local | 192.168.0.0/24 | | gateway=192.168.0.254/30 | 192.168.0.254/30
		gateway is the anycast address | local | fd00::/64 | | gateway=fd00:: | fd00::
		size and subnet | local | 10.0.0.0/24 | | size=26 | size; 10.0.0.0/24
	`) {
		t.Run(row[0], func(t *testing.T) {
			b := newBench(t)
			_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: row[1], Pool: row[2], SubPool: row[3],
				Options: optsOf(row[4])})
			wantText(t, refused, strings.Split(row[5], "; ")...)
			if got := b.subnets(""); len(got) != 0 {
				t.Errorf("something was made: %v", got)
			}
		})
	}
}

// TestExplicitIsNotAvoided tests that a named subnet is given even if a route of the host overlaps it (engine.md).
func TestExplicitIsNotAvoided(t *testing.T) {
	b := newBench(t)
	b.avoid = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	b.pool("local", "10.0.0.0/24", "", nil)
}
