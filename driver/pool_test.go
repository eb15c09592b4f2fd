package driver

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestPool: what is asked for comes back: an id, the CIDR without host bits, and no metadata where no gateway was
// named (LN-1, LN-11).
func TestPool(t *testing.T) {
	for _, row := range []struct {
		req  api.RequestPoolRequest
		cidr string
		data opts
	}{
		{api.RequestPoolRequest{Pool: "10.0.0.0/24"}, "10.0.0.0/24", opts{}},
		{api.RequestPoolRequest{Pool: "10.0.0.0/24", SubPool: "10.0.0.128/25"}, "10.0.0.0/24", opts{}},
		{api.RequestPoolRequest{Pool: "10.0.0.0/24", V6: true}, "10.0.0.0/24", opts{}}, // the family is the subnet's
		{api.RequestPoolRequest{Pool: "fd00::/64", V6: true}, "fd00::/64", opts{}},
		{api.RequestPoolRequest{Pool: "fd00::/64"}, "fd00::/64", opts{}}, // so a swarm manager asks
		{api.RequestPoolRequest{Pool: "10.0.0.0/24", Options: opts{"gateway": "10.0.0.9"}}, "10.0.0.0/24",
			opts{metaGateway: "10.0.0.9/24"}},
		{api.RequestPoolRequest{}, "172.16.0.0/24", opts{}},
		{api.RequestPoolRequest{V6: true}, "fd00:be27::/64", opts{}},
		{api.RequestPoolRequest{Options: opts{"size": "26"}}, "172.16.0.0/26", opts{}},
		{api.RequestPoolRequest{Pool: "0.0.0.0/20"}, "172.16.0.0/20", opts{}}, // a size only (v29)
		{api.RequestPoolRequest{Pool: "::/80", V6: true}, "fd00:be27::/80", opts{}},
		{api.RequestPoolRequest{Pool: "::/80"}, "fd00:be27::/80", opts{}},
	} {
		for _, space := range []string{"local", "global", "lab"} {
			b := newBench(t)
			row.req.AddressSpace = space
			res, refused := b.tryPool(row.req)
			if refused != "" || res.Pool != row.cidr || fmt.Sprint(res.Data) != fmt.Sprint(row.data) {
				t.Errorf("%+v: %+v %s", row.req, res, refused)
			}
			if _, err := ipam.ParseID(res.PoolID); err != nil {
				t.Error(err)
			}
			if got := b.subnets(space); !slices.Equal(got, []string{row.cidr}) {
				t.Errorf("%+v: subnets of %s: %v", row.req, space, got)
			}
		}
	}
}

// TestPoolRefused: what makes no sense is refused with the reason and what to write instead (LN-1, C28, C29, C31, C67).
func TestPoolRefused(t *testing.T) {
	const v4, v6 = "10.0.0.0/24", "fd00::/64"
	for _, row := range []struct {
		name, space, pool, sub string
		options                opts
		want                   []string
	}{
		{"no space", "", v4, "", nil, []string{"no address space"}},                                // C67
		{"space of no name", "a b", v4, "", nil, []string{`"a b"`}},                                // C67
		{"range without a subnet", "local", "", "10.0.0.0/25", nil, []string{"needs the subnet"}},  // C67
		{"host bits", "local", "10.0.0.5/24", "", nil, []string{"host bits", "10.0.0.0/24"}},       //
		{"host bits of IPv6", "local", "fd00::5/64", "", nil, []string{"host bits", "fd00::/64"}},  //
		{"no length", "local", "10.0.0.0", "", nil, []string{"length", "10.0.0.0"}},                //
		{"too long", "local", "10.0.0.0/33", "", nil, []string{"33"}},                              //
		{"mapped", "local", "::ffff:10.0.0.0/120", "", nil, []string{"mapped", "10.0.0.0"}},        //
		{"zone", "local", "fe80::%eth0/64", "", nil, []string{"zone"}},                             //
		{"leading zeros", "local", "010.0.0.0/24", "", nil, []string{"leading zeros"}},             //
		{"three numbers", "local", "1.2.4", "", nil, []string{"1.2.4"}},                            // C31
		{"two ranges", "local", v4, "10.0.0.1-10.0.0.2,10.0.0.4-10.0.0.5", nil, []string{"range"}}, // C31
		{"range with a length", "local", v4, "10.0.0.1-10.0.0.1/25", nil, []string{"range"}},       // C31
		{"all of IPv4", "local", "0.0.0.0/0", "", nil, []string{"0.0.0.0/0"}},
		{"all of IPv6", "local", "::/0", "", nil, []string{"::/0"}},
		{"reversed range", "local", v4, "10.0.0.9-10.0.0.5", nil, []string{"reversed", "10.0.0.5-10.0.0.9"}},
		{"range of two families", "local", v4, "10.0.0.9-fd00::1", nil, []string{"IPv4", "IPv6"}},
		{"range of the other family", "local", v4, "fd00::/80", nil, []string{"families", v4}},
		{"range of the other family, IPv6", "local", v6, "10.0.0.0/25", nil, []string{"families", v6}},
		{"range with host bits", "local", v4, "10.0.0.130/25", nil, []string{"host bits", "10.0.0.128/25"}},
		{"range around the subnet", "local", v4, "10.0.0.0/23", nil, []string{"not inside", v4}},
		{"range beyond the end", "local", v4, "10.0.0.200-10.0.1.10", nil, []string{"not inside", v4}}, // C29
		{"range elsewhere", "local", v4, "10.0.1.0/25", nil, []string{"not inside", v4}},
		{"range of the network address", "local", v4, "10.0.0.0/32", nil, []string{"no host address", v4}},
		{"range of the broadcast address", "local", v4, "10.0.0.255", nil, []string{"no host address", v4}},
		// C28
		{"gateway outside", "local", "192.168.0.0/24", "", opts{"gateway": "190.168.0.254"},
			[]string{"190.168.0.254", "outside"}},
		// C28
		{"gateway is the network", "local", "192.168.0.0/24", "", opts{"gateway": "192.168.0.0"},
			[]string{"192.168.0.0"}},
		// C28
		{"gateway is the broadcast", "local", "192.168.0.0/24", "", opts{"gateway": "192.168.0.255"},
			[]string{"192.168.0.255"}},
		// C28
		{"gateway as a CIDR", "local", "192.168.0.0/24", "", opts{"gateway": "192.168.0.254/30"},
			[]string{"192.168.0.254/30"}},
		{"gateway is the anycast address", "local", v6, "", opts{"gateway": "fd00::"}, []string{"fd00::"}},
		{"size and subnet", "local", v4, "", opts{"size": "26"}, []string{"size", v4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: row.space, Pool: row.pool, SubPool: row.sub,
				Options: row.options})
			wantText(t, refused, row.want...)
			if got := b.subnets(""); len(got) != 0 {
				t.Errorf("something was made: %v", got)
			}
		})
	}
}

// TestExplicitIsNotAvoided: a subnet that is named is given though a route of the host overlaps it (engine.md).
func TestExplicitIsNotAvoided(t *testing.T) {
	b := newBench(t)
	b.avoid = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	b.pool("local", "10.0.0.0/24", "", nil)
}
