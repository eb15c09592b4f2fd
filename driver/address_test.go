package driver

import (
	"net/netip"
	"strings"
	"testing"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestExplicitAddress tests that a preferred address is given, or refused with the reason (LN-3, LN-9).
func TestExplicitAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"10.0.0.254": "", "10.0.0.255": "broadcast", "10.0.1.1": "outside", "::ffff:10.0.0.9": "mapped",
		"10.0.0.9/24": "not a single address", "10.0.0.9-10.0.0.10": "not a single address",
		"10.0.0.09": "leading zeros", " 10.0.0.9": "blanks", "host": `"host"`,
	} {
		for kind, o := range map[string]opts{"endpoint": mac(1), "auxiliary": nil} {
			b := newBench(t)
			got, refused := b.tryTake(b.pool("local", "10.0.0.0/24", "", nil).PoolID, addr, o)
			if want != "" {
				wantText(t, refused, want, strings.TrimPrefix(strings.TrimSpace(addr), "::ffff:"))
			} else if refused != "" || got != addr {
				t.Errorf("%s %s: %s %s", kind, addr, got, refused)
			}
		}
	}
}

// TestEndpoint tests that an endpoint is recorded with its name, without Docker's slash, and its MAC, in any notation.
// After a release both lead back to the address (LN-3, BO-2).
func TestEndpoint(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	had := b.take(p, "", opts{optName: "/web", optMAC: "02-42-00-00-00-0A"})
	b.holds(had, named("web", 10))
	_, refused := b.tryTake(p, had, named("web", 11))
	wantText(t, refused, "held by web", macText(10))
	b.give(p, had)
	b.take(p, "", mac(2))
	if got := b.take(p, "", named("web", 11)); got != had {
		t.Errorf("it had %s, and gets %s", had, got)
	}
	b.check()
}

// TestAddressIsACIDR tests that an address has its subnet's prefix length, even if the pool is a smaller range (LN-3).
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

// TestUnknownPool tests that a request for an unknown pool is refused, and that the error explains where to look.
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
