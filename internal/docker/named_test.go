package docker

import (
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestPlaces: Docker networks are found among Berth's by Docker's name, in each space, and a swarm's in its manager's
// space.
func TestPlaces(t *testing.T) {
	tn := newTown(t)
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
	list := func(id, name, cidr string, change func(*ipam.EngineNetwork)) {
		n := ipam.EngineNetwork{ID: id, Name: name, Driver: "berth", Subnets: []ipam.EngineSubnet{{CIDR: prefix(cidr)}}}
		change(&n)
		tn.view.Networks = append(tn.view.Networks, n)
	}
	planned := func(n *ipam.EngineNetwork) { n.Options = map[string]string{"network": "plan"} }
	list("1", "shop_default", "10.8.0.0/24", planned)
	list("2", "front", "10.9.0.0/24", planned)
	list("3", "mesh", "10.0.9.0/24", func(n *ipam.EngineNetwork) { n.Swarm = true })
	list("4", "unknown", "10.7.0.0/24", func(*ipam.EngineNetwork) {})
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
	for name, want := range map[string][]ipam.DockerPlace{
		"shop_default": {{Network: "plan", Space: "lab", Subnet: prefix("10.8.0.0/24")}},
		"front": {{Network: unplanned, Space: "local", Subnet: prefix("10.8.0.0/24")},
			{Network: "plan", Space: "lab", Subnet: prefix("10.9.0.0/24")}},
		"mesh":    {{Network: mesh, Space: "global", Subnet: prefix("10.0.9.0/24")}},
		"unknown": nil,
		"nobody":  nil,
	} {
		got, err := tn.w.Places(t.Context(), name)
		must(t, err)
		if d := cmp.Diff(want, got, cmpopts.EquateComparable(prefix("10.0.0.0/8"))); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}
