package driver

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// fill takes addresses until there are none, and returns them with the refusal.
func (b *bench) fill(pool string) (all []string, refused string) {
	b.t.Helper()
	for n := range 5000 {
		addr, refused := b.tryTake(pool, "", mac(1000+n))
		if refused != "" {
			return all, refused
		}
		all = append(all, addr)
	}
	b.t.Fatal("the pool has no end")
	return nil, ""
}

// TestHosts: which addresses of a subnet are given: never the network nor the broadcast address of one larger than /31,
// never the anycast address of an IPv6 one (RFC 3021, RFC 4291). A range gives all that its subnet allows.
func TestHosts(t *testing.T) {
	for _, row := range []struct {
		cidr, sub   string
		first, last string
		count       int
	}{
		{"10.0.0.0/32", "", "10.0.0.0", "10.0.0.0", 1},
		{"10.0.0.0/31", "", "10.0.0.0", "10.0.0.1", 2},
		{"10.0.0.0/30", "", "10.0.0.1", "10.0.0.2", 2},
		{"10.0.0.0/29", "", "10.0.0.1", "10.0.0.6", 6},
		{"10.0.0.0/24", "", "10.0.0.1", "10.0.0.254", 254},
		{"10.0.0.0/24", "10.0.0.0/30", "10.0.0.1", "10.0.0.3", 3},
		{"10.0.0.0/24", "10.0.0.252/30", "10.0.0.252", "10.0.0.254", 3},
		{"10.0.0.0/24", "10.0.0.64/30", "10.0.0.64", "10.0.0.67", 4},
		{"10.0.0.0/24", "10.0.0.64-10.0.0.70", "10.0.0.64", "10.0.0.70", 7},
		{"10.0.0.0/24", "10.0.0.64", "10.0.0.64", "10.0.0.64", 1}, // C29: a range of one address is one
		{"10.0.0.0/24", "10.0.0.64+2", "10.0.0.64", "10.0.0.65", 2},
		{"fd00::/128", "", "fd00::", "fd00::", 1},
		{"fd00::/127", "", "fd00::", "fd00::1", 2}, // RFC 6164
		{"fd00::/126", "", "fd00::1", "fd00::3", 3},
		{"fd00::/64", "fd00::/126", "fd00::1", "fd00::3", 3},
		{"fd00::/64", "fd00::ffff:ffff:ffff:fffe/127", "fd00::ffff:ffff:ffff:fffe", "fd00::ffff:ffff:ffff:ffff", 2},
		{"192.168.59.0/24", "", "192.168.59.1", "192.168.59.254", 254}, // C68
		// C68: .0 and .255 in the midst
		{"192.168.0.0/16", "192.168.0.0-192.168.1.0", "192.168.0.1", "192.168.1.0", 256},
		{"192.168.128.0/18", "192.168.128.0/22", "192.168.128.1", "192.168.131.255", 1<<10 - 1}, // C68
	} {
		t.Run(row.cidr+" "+row.sub, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := b.pool("local", row.cidr, row.sub, nil).PoolID
			all, refused := b.fill(p)
			if len(all) != row.count || all[0] != row.first || all[len(all)-1] != row.last {
				t.Errorf("%d addresses, %s to %s; want %d, %s to %s", len(all), all[0], all[len(all)-1], row.count,
					row.first, row.last)
			}
			if again := slices.Compact(slices.Sorted(slices.Values(all))); len(again) != len(all) {
				t.Errorf("of %d addresses only %d are different", len(all), len(again))
			}
			where := row.sub
			if where == "" {
				where = row.cidr
			}
			if prefix, err := netip.ParsePrefix(where); err == nil && !prefix.IsSingleIP() {
				wantText(t, refused, prefix.String())
			}
			wantText(t, refused, "no address is free", row.cidr, "local", fmt.Sprint(row.count), "larger")
			b.check()
		})
	}
}

// TestExplicitAddress: a preferred address is honoured, or refused with what it is (LN-3, LN-9, C21, C28).
func TestExplicitAddress(t *testing.T) {
	for _, row := range []struct {
		cidr, addr string
		want       []string // nil: given
	}{
		{"10.0.0.0/24", "10.0.0.1", nil},
		{"10.0.0.0/24", "10.0.0.254", nil},
		{"10.0.0.0/24", "10.0.0.0", []string{"10.0.0.0", "network address", "10.0.0.0/24"}},
		{"10.0.0.0/24", "10.0.0.255", []string{"10.0.0.255", "broadcast", "10.0.0.0/24"}},
		{"10.0.0.0/16", "10.0.0.255", nil},
		{"10.0.0.0/16", "10.0.1.0", nil},
		{"10.0.0.0/31", "10.0.0.0", nil},
		{"10.0.0.0/31", "10.0.0.1", nil},
		{"10.0.0.0/32", "10.0.0.0", nil},
		{"10.0.0.0/24", "10.0.1.1", []string{"10.0.1.1", "outside", "10.0.0.0/24"}}, // C21
		{"10.0.0.0/24", "fd00::1", []string{"fd00::1", "outside"}},
		{"fd00::/64", "10.0.0.1", []string{"10.0.0.1", "outside"}},
		{"fd00::/64", "fd00::", []string{"anycast", "fd00::/64", "4291"}},
		{"fd00::/64", "fd00::ffff:ffff:ffff:ffff", nil},
		{"fd00::/127", "fd00::", nil},
		{"10.0.0.0/24", "::ffff:10.0.0.9", []string{"mapped", "10.0.0.9"}},
		{"10.0.0.0/24", "10.0.0.9/24", []string{"not one address"}},
		{"10.0.0.0/24", "10.0.0.9-10.0.0.10", []string{"not one address"}},
		{"10.0.0.0/24", "10.0.0.09", []string{"leading zeros"}},
		{"10.0.0.0/24", " 10.0.0.9", []string{"blanks"}},
		{"10.0.0.0/24", "host", []string{`"host"`}},
	} {
		for kind, o := range map[string]opts{"endpoint": mac(1), "auxiliary": nil} {
			b := newBench(t)
			p := b.pool("local", row.cidr, "", nil).PoolID
			got, refused := b.tryTake(p, row.addr, o)
			switch {
			case row.want != nil:
				wantText(t, refused, row.want...)
			case refused != "" || got != row.addr:
				t.Errorf("%s %s in %s: %s %s", kind, row.addr, row.cidr, got, refused)
			}
			b.check()
		}
	}
}

// TestAddressIsACIDR: an address comes back with its subnet's length, also where a range is smaller (LN-3).
func TestAddressIsACIDR(t *testing.T) {
	b := newBench(t)
	for cidr, want := range map[string]string{"10.0.0.0/20": "10.0.0.64/20", "fd00::/64": "fd00::64/64"} {
		p := b.pool("local", cidr, "", nil).PoolID
		var res api.RequestAddressResponse
		addr := netip.MustParsePrefix(want).Addr().String()
		if refused := b.send("RequestAddress", api.RequestAddressRequest{PoolID: p, Address: addr},
			&res); refused != "" || res.Address != want {
			t.Errorf("%s: %+v %s; want %s", cidr, res, refused, want)
		}
	}
}

// TestOrder: what is given automatically, and that nothing else is (C01 to C05; the static and reserved addresses of
// the originals are auxiliary ones here).
func TestOrder(t *testing.T) {
	for _, row := range []struct {
		name, cidr, gateway string
		aux                 []string
		want                []string // then nothing, or more than fits here
		full                bool
	}{
		{"C01", "192.168.1.0/29", "192.168.1.1", nil, []string{"192.168.1.2", "192.168.1.3"}, false},
		{"C02", "192.168.1.0/29", "192.168.1.1", []string{"192.168.1.2", "192.168.1.4"},
			[]string{"192.168.1.3", "192.168.1.5"}, false},
		{"C03", "192.168.1.0/29", "192.168.1.1", []string{"192.168.1.4", "192.168.1.2"},
			[]string{"192.168.1.3", "192.168.1.5"}, false},
		{"C04", "192.168.1.0/29", "192.168.1.1", []string{"192.168.1.2", "192.168.1.4"}, []string{"192.168.1.3"},
			false},
		{"C05", "192.168.1.0/30", "192.168.1.1", nil, []string{"192.168.1.2"}, true},
		{"gateway in the midst", "192.168.1.0/29", "192.168.1.3", nil,
			[]string{"192.168.1.1", "192.168.1.2", "192.168.1.4"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			p := b.pool("local", row.cidr, "", nil).PoolID
			b.take(p, row.gateway, gatewayType)
			for _, addr := range row.aux {
				b.take(p, addr, nil)
			}
			for n, want := range row.want {
				if got := b.take(p, "", mac(n)); got != want {
					t.Errorf("address %d is %s; want %s", n, got, want)
				}
			}
			if row.full {
				_, refused := b.tryTake(p, "", mac(99))
				wantText(t, refused, "no address is free", row.cidr)
			}
		})
	}
}

// TestSmallPools: a pool too small for its gateway is refused: no address would be left for a container.
func TestSmallPools(t *testing.T) {
	for _, row := range []struct {
		cidr, sub, gateway string
		got                string // "": refused
	}{
		{"10.0.0.0/32", "", "", ""},
		{"10.0.0.0/32", "", "10.0.0.0", ""},
		{"fd00::/128", "", "", ""},
		{"10.0.0.0/31", "", "", "10.0.0.0"},
		{"10.0.0.0/31", "", "10.0.0.1", "10.0.0.1"},
		{"10.0.0.0/24", "10.0.0.64/32", "10.0.0.64", ""},
		{"10.0.0.0/24", "10.0.0.64", "10.0.0.64", ""},
		{"10.0.0.0/24", "10.0.0.64", "", "10.0.0.1"},
		{"10.0.0.0/24", "10.0.0.1", "", "10.0.0.2"},
		{"10.0.0.0/24", "10.0.0.64/31", "10.0.0.64", "10.0.0.64"},
		{"10.0.0.0/24", "10.0.0.0/31", "10.0.0.1", ""}, // of these two only one is a host
		{"10.0.0.0/30", "10.0.0.1", "10.0.0.1", ""},
	} {
		b := newBench(t)
		p := b.pool("local", row.cidr, row.sub, nil).PoolID
		got, refused := b.tryTake(p, row.gateway, gatewayType)
		if got != row.got {
			t.Errorf("%+v: %s %s", row, got, refused)
		}
		if row.got == "" {
			where := row.sub
			if where == "" {
				where = row.cidr
			}
			wantText(t, refused, "too small", netip.MustParseAddr(first(where)).String(), "larger")
		}
		b.check()
		if row.gateway != "" && row.got == "" {
			_, refused := newBench(t).tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: row.cidr,
				SubPool: row.sub, Options: opts{"gateway": row.gateway}})
			wantText(t, refused, "too small")
		}
	}
}

// first is the address that a range or CIDR begins with.
func first(text string) string {
	for i, r := range text {
		if r == '/' || r == '-' {
			return text[:i]
		}
	}
	return text
}

// TestUnknownPool: an address out of a pool that is not there is refused, and the error says where to look.
func TestUnknownPool(t *testing.T) {
	b := newBench(t)
	gone := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	b.drop(gone)
	for pool, parts := range map[string][]string{
		"":                         {"names no pool"},
		gone:                       {gone, "released", "berth subnet ls"},
		"LocalDefault/10.0.0.0/24": {"LocalDefault/10.0.0.0/24"},
	} {
		for _, o := range []opts{nil, mac(1), gatewayType} {
			_, refused := b.tryTake(pool, "", o)
			wantText(t, refused, parts...)
		}
	}
	for _, o := range []opts{{optMAC: "02:42"}, {optMAC: "00:00:00:00:fe:80:00:00"}, {optMAC: "hello"}} {
		p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
		_, refused := b.tryTake(p, "", o)
		wantText(t, refused, o[optMAC], "MAC")
	}
}
