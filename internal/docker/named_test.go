package docker

import (
	"fmt"
	"testing"

	"berth/internal/ipam"
)

// TestPlaces: Berth finds Docker networks by Docker's name, in each space. It finds a swarm's network in its
// manager's space.
func TestPlaces(t *testing.T) {
	tn := newScenario(t)
	unplanned := tn.leaseOf(addr("10.8.0.1")).Network
	tn.edit(&ipam.CreateNetwork{Name: "plan", Space: "lab", Subnets: []ipam.SubnetSpec{
		{CIDR: prefix("10.8.0.0/24"), Gateway: addr("10.8.0.1"), Pool: true},
		{CIDR: prefix("10.9.0.0/24"), Gateway: addr("10.9.0.1"), Pool: true}}})
	attach := func(req ipam.PoolRequest) {
		t.Helper()
		_, err := tn.service.RequestPool(t.Context(), req)
		must(t, err)
	}
	attach(ipam.PoolRequest{Network: "plan", CIDR: prefix("10.8.0.0/24")})
	attach(ipam.PoolRequest{Network: "plan", CIDR: prefix("10.9.0.0/24")})
	attach(ipam.PoolRequest{Space: "global", CIDR: prefix("10.0.9.0/24"), Swarm: true})
	attach(ipam.PoolRequest{Space: "local", CIDR: prefix("10.0.9.0/24")})
	var more []ipam.EngineNetwork
	readJSON(t, "places.json", &more)
	tn.view.Networks = append(tn.view.Networks, more...)
	if places, err := tn.w.Places(t.Context(), "front"); len(places) > 0 || err != nil {
		t.Errorf("before any look: %+v, %v", places, err)
	}
	tn.w.cfg.Roster.Show(&tn.view)

	mesh := ""
	all, err := tn.service.Attachments(t.Context())
	must(t, err)
	for _, at := range all {
		if at.Space == "global" {
			mesh = at.Network
		}
	}
	for name, want := range map[string]string{
		"shop_default": "[{plan lab 10.8.0.0/24}]",
		"front":        "[{" + unplanned + " local 10.8.0.0/24} {plan lab 10.9.0.0/24}]",
		"mesh":         "[{" + mesh + " global 10.0.9.0/24}]",
		"unknown":      "[]", "nobody": "[]",
	} {
		if got, err := tn.w.Places(t.Context(), name); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
