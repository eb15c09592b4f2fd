package docker

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// adoptable returns a network of the engine's own IPAM driver with every case: late asks for an address that
// shop-web-1 has, and lost asks for one of a removed subnet (testdata/adoptable.json).
func adoptable(t *testing.T) (view ipam.EngineView) {
	t.Helper()
	readJSON(t, "adoptable.json", &view)
	return view
}

// TestAdoptPlan: the plan has each address once, for the container that has it or asks for it.
func TestAdoptPlan(t *testing.T) {
	got, err := AdoptPlan(adoptable(t), "front")
	must(t, err)
	var want ipam.Plan
	readJSON(t, "adopted.json", &want)
	if diff := cmp.Diff(want, got, comparers,
		cmp.Comparer(func(a, b ipam.Range) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

// TestAdoptedIsImported: the plan can be imported. Its addresses then go to no other container.
func TestAdoptedIsImported(t *testing.T) {
	h := newHarness(t, t.TempDir())
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
	h.attach("front", ipam.PoolRequest{Network: "front", CIDR: prefix("172.20.0.0/16")})
	for name, want := range map[string]string{"new": "172.20.8.0", "shop-web-1": "172.20.8.1"} {
		got, err := h.service.RequestAddress(t.Context(),
			ipam.AddressRequest{Pool: h.pools["front"], MAC: macN(len(name)), Name: name})
		must(t, err)
		if got.Addr() != addr(want) {
			t.Errorf("%s got %s", name, got)
		}
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
