package docker

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// adoptable returns a network of the engine's own IPAM driver with everything that one may have.
func adoptable(t *testing.T) ipam.EngineView {
	t.Helper()
	one := func(id, name, state string, ep ipam.EngineEndpoint) ipam.EngineContainer {
		ep.Network = "n1"
		return ipam.EngineContainer{ID: id, Name: name, State: state, Endpoints: []ipam.EngineEndpoint{ep}}
	}
	replica := func(c ipam.EngineContainer) ipam.EngineContainer {
		c.Project, c.Service, c.Number = "shop", "web", 1
		return c
	}
	return ipam.EngineView{
		Networks: []ipam.EngineNetwork{{ID: "n1", Name: "legacy", Driver: "default", Subnets: []ipam.EngineSubnet{
			{CIDR: prefix("172.20.0.0/16"), Range: prefix("172.20.8.0/24"), Gateway: addr("172.20.0.1"),
				Aux: map[string]netip.Addr{"router": addr("172.20.0.2"), "the other one": addr("172.20.0.3"),
					"gw": addr("172.20.0.1")}},
			{CIDR: prefix("fd00:20::/64"), Aux: map[string]netip.Addr{"a b": addr("fd00:20::9")}}}}},
		Containers: []ipam.EngineContainer{
			replica(one("c1", "shop-web-1", "running",
				ipam.EngineEndpoint{ID: "e1", MAC: macN(1), Addresses: addrs("172.20.8.1", "fd00:20::1")})),
			replica(one("c2", "0123_shop-web-1", "running",
				ipam.EngineEndpoint{ID: "e2", MAC: macN(2), Addresses: addrs("172.20.8.2")})),
			one("c3", "db", "running",
				ipam.EngineEndpoint{ID: "e3", MAC: macN(3), Addresses: addrs("172.20.0.77"),
					Wanted: addrs("172.20.0.77")}),
			one("c4", "out", "exited", ipam.EngineEndpoint{Wanted: addrs("172.20.0.78")}),
			one("c5", "late", "exited", ipam.EngineEndpoint{Wanted: addrs("172.20.8.1")}), // shop-web-1 has it
			one("c6", "idle", "exited", ipam.EngineEndpoint{}),
			one("c7", strings.Repeat("long", 20), "running",
				ipam.EngineEndpoint{ID: "e7", MAC: macN(7), Addresses: addrs("172.20.8.7")}),
			one("c8aaaaaaaaaaaaaaaa", strings.Repeat("long", 21), "exited",
				ipam.EngineEndpoint{Wanted: addrs("172.20.0.79")}),
			// of a removed subnet
			one("c9", "lost", "exited", ipam.EngineEndpoint{Wanted: addrs("192.0.2.1")}),
			one("", "legacy-endpoint", "", ipam.EngineEndpoint{ID: "e8", MAC: macN(8), Addresses: addrs("172.20.8.8")}),
		},
	}
}

// TestAdoptPlan: the plan has each address once, for the container that has it or asks for it.
func TestAdoptPlan(t *testing.T) {
	got, err := AdoptPlan(adoptable(t), "front")
	must(t, err)
	whole := ipam.PlannedSubnet{CIDR: prefix("fd00:20::/64"),
		Pools: []ipam.PlannedPool{{Range: rangeText(t, "fd00:20::-fd00:20::ffff:ffff:ffff:ffff")}}}
	want := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "front",
		Subnets: []ipam.PlannedSubnet{{CIDR: prefix("172.20.0.0/16"), Gateway: addr("172.20.0.1"),
			Pools: []ipam.PlannedPool{{Range: rangeText(t, "172.20.8.0-172.20.8.255")}}}, whole},
		Reservations: []ipam.PlannedReservation{
			{Owner: "shop/web/1", Address: addr("172.20.8.1"), Automatic: true, Unplaced: true},
			{Owner: "shop/web/1", Address: addr("fd00:20::1"), Automatic: true, Unplaced: true},
			{Owner: "0123_shop-web-1", Address: addr("172.20.8.2"), Automatic: true, Unplaced: true},
			{Owner: "db", Address: addr("172.20.0.77"), Unplaced: true},
			{Owner: "02:00:00:00:00:07", Address: addr("172.20.8.7"), Automatic: true, Unplaced: true},
			{Owner: "out", Address: addr("172.20.0.78"), Unplaced: true},
			{Owner: "container-c8aaaaaaaaaa", Address: addr("172.20.0.79"), Unplaced: true},
		},
		Addresses: []ipam.PlannedAddress{
			{Owner: "router", Address: addr("172.20.0.2"), Unplaced: true},
			{Owner: "aux-172.20.0.3", Address: addr("172.20.0.3"), Unplaced: true},
			{Owner: "aux-fd00-20--9", Address: addr("fd00:20::9"), Unplaced: true},
			{Owner: "legacy-endpoint", Address: addr("172.20.8.8"), Unplaced: true},
		}}}}
	if diff := cmp.Diff(want, got, comparers,
		cmp.Comparer(func(a, b ipam.Range) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

// TestAdoptedIsImported: the plan can be imported, and then its addresses go to nobody else.
func TestAdoptedIsImported(t *testing.T) {
	h := newHouse(t, t.TempDir())
	t.Cleanup(func() { must(t, h.close()) })
	plan, err := AdoptPlan(adoptable(t), "front")
	must(t, err)
	if _, err := h.service.Import(t.Context(), plan, ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for r, err := range h.service.Reservations(t.Context(), ipam.AddressFilter{}) {
		must(t, err)
		owners[r.Address.String()] = r.Owner + " " + r.Kind.String()
	}
	for a, want := range map[string]string{"172.20.8.1": "shop/web/1 automatic", "fd00:20::1": "shop/web/1 automatic",
		"172.20.0.77": "db static", "172.20.0.78": "out static"} {
		if owners[a] != want {
			t.Errorf("%s is reserved for %q, want %q", a, owners[a], want)
		}
	}
	grant, err := h.service.RequestPool(t.Context(), ipam.PoolRequest{Network: "front", CIDR: prefix("172.20.0.0/16")})
	must(t, err)
	got, err := h.service.RequestAddress(t.Context(), ipam.AddressRequest{Pool: grant.ID, MAC: macN(99), Name: "new"})
	must(t, err)
	if got.Addr() != addr("172.20.8.0") {
		t.Errorf("a newcomer got %s", got)
	}
	got, err = h.service.RequestAddress(t.Context(),
		ipam.AddressRequest{Pool: grant.ID, MAC: macN(98), Name: "shop-web-1"})
	must(t, err)
	if got.Addr() != addr("172.20.8.1") {
		t.Errorf("the replica got %s", got)
	}
}

// TestAdoptSwarm: a swarm's network is planned in its manager's space.
func TestAdoptSwarm(t *testing.T) {
	view := adoptable(t)
	view.Networks[0].Swarm = true
	plan, err := AdoptPlan(view, "front")
	must(t, err)
	if got := plan.Networks[0].Space; got != "global" {
		t.Errorf("it is planned in the space %q", got)
	}
}

func TestAdoptRefuses(t *testing.T) {
	bare := adoptable(t)
	bare.Networks[0].Subnets = nil
	for want, view := range map[string]ipam.EngineView{"0 Docker networks": {}, "legacy has no subnet": bare} {
		if _, err := AdoptPlan(view, "front"); !errors.Is(err, ipam.ErrInvalid) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
