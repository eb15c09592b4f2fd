package driver

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

// TestOverlap: subnets of one space never overlap, those of two may (LN-5, C32, C65, C66).
func TestOverlap(t *testing.T) {
	for _, row := range []struct {
		there, asked string
		ok           bool
	}{
		{"10.0.0.0/8", "11.0.0.0/8", true},  // C65
		{"10.0.0.0/8", "8.0.0.0/6", false},  // C65
		{"10.0.0.0/8", "10.0.0.0/9", false}, // C65: 10.0.0.0/6 has host bits
		{"10.0.0.0/8", "10.1.2.0/24", false},
		{"10.0.0.0/8", "10.255.255.255/32", false},
		{"c000::/2", "8000::/1", false},                 // C66
		{"192.168.0.0/24", "192.168.0.128/28", false},   // C32
		{"192.168.0.0/24", "192.168.1.0/24", true},      // C32
		{"192.168.0.0/24", "f1ee::/64", true},           // C32
		{"192.168.0.128/25", "192.168.0.0/24", false},   //
		{"192.168.0.128/25", "192.168.0.0/25", true},    //
		{"10.0.0.0/24", "a00::/24", true},               // the same first bytes
		{"255.255.255.0/24", "255.255.255.0/25", false}, // the end of the family
		{"ffff::/16", "ffff:ffff::/32", false},
	} {
		b := newBench(t)
		b.pool("local", row.there, "", nil)
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: row.asked})
		if !row.ok {
			wantText(t, refused, row.asked, row.there, "local", "net-")
		} else if refused != "" {
			t.Errorf("%s beside %s: %s", row.asked, row.there, refused)
		}
		b.pool("lab", row.asked, "", nil) // another space
		b.check()
	}
}

// TestSameSubnet: the same CIDR asked for again in a space is a second attachment to the same subnet: addresses are
// unique over both, and the subnet lives until the last one goes (LN-5, LN-9, GA-22).
func TestSameSubnet(t *testing.T) {
	b := newBench(t)
	var pools []string
	for range 3 {
		pools = append(pools, b.pool("local", "10.0.0.0/28", "", nil).PoolID)
	}
	elsewhere := b.pool("lab", "10.0.0.0/28", "", nil).PoolID
	taken := map[string]bool{}
	for n := range 12 {
		addr := b.take(pools[n%3], "", mac(n))
		if taken[addr] {
			t.Errorf("%s was given twice", addr)
		}
		taken[addr] = true
		if got := b.take(elsewhere, addr, mac(n)); got != addr {
			t.Errorf("in another space: asked for %s, got %s", addr, got)
		}
	}
	_, refused := b.tryTake(pools[1], "10.0.0.1", mac(99))
	wantText(t, refused, "10.0.0.1", macText(0))
	b.drop(pools[0])
	if got := b.subnets("local"); !slices.Equal(got, []string{"10.0.0.0/28"}) {
		t.Fatalf("after the first release: %v", got)
	}
	if _, refused := b.tryTake(pools[0], "", mac(50)); refused == "" {
		t.Error("a released pool still gives addresses")
	}
	if got := b.take(pools[1], "10.0.0.1", mac(99)); got != "10.0.0.1" {
		t.Errorf("the address of the pool that went: %s", got)
	}
	b.holds("10.0.0.2", mac(1)) // of the pool that stays
	b.reopen()
	b.check()
	b.drop(pools[1])
	b.drop(pools[2])
	if got := b.subnets("local"); len(got) != 0 {
		t.Errorf("after the last release: %v", got)
	}
	b.check()
}

// TestSubPools: ranges of one subnet that do not touch one another are beside one another, each with its own addresses;
// one that overlaps another is refused, naming it (LN-6).
func TestSubPools(t *testing.T) {
	const cidr = "10.0.0.0/24"
	b := newBench(t)
	low := b.pool("local", cidr, "10.0.0.0/26", nil).PoolID
	high := b.pool("local", cidr, "10.0.0.192/26", nil).PoolID
	same := b.pool("local", cidr, "10.0.0.192/26", nil).PoolID
	for _, sub := range []string{"10.0.0.0/25", "10.0.0.63", "10.0.0.0/27", "10.0.0.60-10.0.0.70", ""} {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: cidr, SubPool: sub})
		wantText(t, refused, "overlaps", "10.0.0.0/26", cidr)
	}
	middle := b.pool("local", cidr, "10.0.0.64-10.0.0.191", nil).PoolID
	for _, row := range []struct{ pool, in string }{{low, "10.0.0.0/26"}, {middle, "10.0.0.64/26"},
		{high, "10.0.0.192/26"}, {same, "10.0.0.192/26"}} {
		for n := range 3 {
			if addr := b.take(row.pool, "", nil); !netip.MustParsePrefix(row.in).Contains(netip.MustParseAddr(addr)) {
				t.Errorf("address %d of the range %s is %s", n, row.in, addr)
			}
		}
	}
	b.check()
}

// TestOutsideTheRange: a gateway or an auxiliary address inside the subnet and outside --ip-range is accepted, and so
// is an endpoint's explicit one (LN-9, LN-14, GA-15).
func TestOutsideTheRange(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "10.0.0.128/25", nil).PoolID
	for addr, o := range map[string]opts{"10.0.0.9": gatewayType, "10.0.0.5": nil, "10.0.0.200": nil,
		"10.0.0.7": mac(1)} {
		if got := b.take(p, addr, o); got != addr {
			t.Errorf("asked for %s, got %s", addr, got)
		}
	}
	if got := b.take(p, "", mac(2)); got != "10.0.0.128" {
		t.Errorf("the first address of the range is %s", got)
	}
	free := b.pool("local", "10.0.1.0/24", "10.0.1.128/25", nil).PoolID
	if got := b.take(free, "", gatewayType); got != "10.0.1.1" {
		t.Errorf("the chosen gateway is %s", got)
	}
}

// engineLoop does what the engine does where it was left the choice: it keeps each pool that overlaps a route and asks
// for another, and gives the kept ones back in the end.
func engineLoop(b *bench, routes []netip.Prefix, req api.RequestPoolRequest) (kept []string, got, refused string) {
	b.t.Helper()
	var ids []string
	defer func() {
		for _, id := range ids {
			b.drop(id)
		}
	}()
	for range 10000 {
		res, refused := b.tryPool(req)
		if refused != "" {
			return kept, "", refused
		}
		p := netip.MustParsePrefix(res.Pool)
		if !slices.ContainsFunc(routes, p.Overlaps) {
			return kept, res.Pool, ""
		}
		kept, ids = append(kept, res.Pool), append(ids, res.PoolID)
	}
	b.t.Fatal("it was asked 10,000 times and never answered with an error")
	return nil, "", ""
}

// TestRouteLoop: each pool that is chosen is another, until there is none, which is an error; a driver that knows the
// routes is right at once (LN-7, engine.md).
func TestRouteLoop(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	bases := []ipam.Base{
		{Prefix: netip.MustParsePrefix("172.16.0.0/16"), Bits: 20},
		{Prefix: netip.MustParsePrefix("10.0.0.0/20"), Bits: 24},
		{Prefix: netip.MustParsePrefix("fd00:be27::/62"), Bits: 64},
	}
	for _, row := range []struct {
		name   string
		routes []netip.Prefix
		v6     bool
		kept   int    // where the driver does not know the routes
		want   string // "": an error
	}{
		{"no route", nil, false, 0, "172.16.0.0/20"},
		{"the first one", prefixes("172.16.0.0/20"), false, 1, "172.16.16.0/20"},
		{"a host in the second", prefixes("172.16.0.0/24", "172.16.17.5/32"), false, 2, "172.16.32.0/20"},
		{"the whole base", prefixes("172.16.0.0/12"), false, 16, "10.0.0.0/24"},
		{"all of them", prefixes("172.16.0.0/12", "10.0.0.0/8"), false, 32, ""},
		{"IPv6", prefixes("fd00:be27::/63"), true, 2, "fd00:be27:0:2::/64"},
		{"all of IPv6", prefixes("fd00::/8"), true, 4, ""},
		{"the other family", prefixes("fd00::/8"), false, 0, "172.16.0.0/20"},
	} {
		for _, known := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, known %v", row.name, known), func(t *testing.T) {
				b := newBench(t, bases...)
				want := row.kept
				if known {
					b.avoid, want = row.routes, 0
				}
				kept, got, refused := engineLoop(b, row.routes,
					api.RequestPoolRequest{AddressSpace: "local", V6: row.v6})
				if got != row.want || len(kept) != want {
					t.Errorf("kept %d, then %q (%s); want %d, then %q", len(kept), got, refused, want, row.want)
				}
				if sorted := slices.Compact(slices.Sorted(slices.Values(kept))); len(sorted) != len(kept) {
					t.Errorf("one was given twice: %v", kept)
				}
				if row.want == "" {
					base := "172.16.0.0/16"
					if row.v6 {
						base = "fd00:be27::/62"
					}
					wantText(t, refused, base, "in the way", "--subnet", "--default-pool")
					if known {
						wantText(t, refused, "host route", row.routes[0].String())
					}
				}
				var left []string
				if row.want != "" {
					left = []string{row.want}
				}
				if subnets := b.subnets(""); !slices.Equal(subnets, left) {
					t.Errorf("left: %v", subnets)
				}
				b.check()
			})
		}
	}
}

// TestExplicitIsNotAvoided: a subnet that is named is given though a route of the host overlaps it (engine.md).
func TestExplicitIsNotAvoided(t *testing.T) {
	b := newBench(t)
	b.avoid = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	b.pool("local", "10.0.0.0/24", "", nil)
}

// TestSizeOnly: pools of a size are chosen beside one another, with sizes mixed, and where there is no such room the
// error says so (LN-7).
func TestSizeOnly(t *testing.T) {
	b := newBench(t)
	for _, row := range []struct{ asked, got string }{
		{"0.0.0.0/24", "172.16.0.0/24"}, {"0.0.0.0/24", "172.16.1.0/24"}, {"0.0.0.0/16", "172.17.0.0/16"},
		{"0.0.0.0/28", "172.16.2.0/28"}, {"", "172.16.3.0/24"}, {"0.0.0.0/31", "172.16.2.16/31"},
		{"0.0.0.0/8", "10.0.0.0/8"},
	} {
		if got := b.pool("local", row.asked, "", nil).Pool; got != row.got {
			t.Errorf("%q: %s; want %s", row.asked, got, row.got)
		}
	}
	for asked, parts := range map[string][]string{
		"0.0.0.0/8": {"in the way", "10.0.0.0/8"},
		"0.0.0.0/7": {"/7", "172.16.0.0/12"},
	} {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: asked})
		wantText(t, refused, parts...)
	}
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "0.0.0.0/24", SubPool: "10.0.0.0/25"})
	if !strings.Contains(refused, "range") {
		t.Errorf("a range in a subnet that is not chosen yet: %q", refused)
	}
}
