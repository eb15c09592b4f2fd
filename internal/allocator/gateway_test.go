package allocator_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// A chosen gateway is outside the range for containers, if there is such an address.
func TestGatewayOutsideRange(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"the lowest outside", "attach A cidr=192.0.2.0/28 range=192.0.2.1-192.0.2.4\ngateway A -> 192.0.2.5"},
		{"below the range", "attach A cidr=192.0.2.0/28 range=192.0.2.3-192.0.2.14\ngateway A -> 192.0.2.1"},
		{"the range is all there is",
			"attach A cidr=192.0.2.0/29 range=192.0.2.1-192.0.2.6\ngateway A -> 192.0.2.1\nask A -> 192.0.2.2"},
		{"no range", "attach A cidr=192.0.2.0/28\ngateway A -> 192.0.2.1"},
	})
}

// A gateway that would take the only address for containers is refused, whether it was chosen or named.
func TestGatewayLeavesRoom(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"one address", "attach A cidr=192.0.2.7/32\ngateway A ! exhausted; too small; 192.0.2.7"},
		{"a range of one", "attach A cidr=192.0.2.0/28 range=192.0.2.9-192.0.2.9\ngateway A ip=192.0.2.9 ! " +
			"exhausted; too small; the pool 192.0.2.9 is\ngateway A -> 192.0.2.1\nask A -> 192.0.2.9"},
		{"a range of two", "attach A cidr=192.0.2.0/28 range=192.0.2.8-192.0.2.9\ngateway A ip=192.0.2.9 -> " +
			"192.0.2.9\nask A -> 192.0.2.8"},
		{"the first of a range of two",
			"attach A cidr=192.0.2.0/28 range=192.0.2.8-192.0.2.9\ngateway A ip=192.0.2.8 -> 192.0.2.8\nask A -> " +
				"192.0.2.9"},
		{"no pool", "network n subnet=192.0.2.0/28\nattach A net=n\ngateway A ip=192.0.2.5 -> 192.0.2.5"},
		{"a pool of one", `
			network n subnet=192.0.2.0/28
			pool n 192.0.2.9
			attach A net=n
			gateway A ! exhausted; too small; 192.0.2.9
		`},
	})
}

// A gateway is released with the only Docker network that requested it, even if that network could not be
// created. So it blocks no other network on the subnet. A gateway that another network has also requested stays,
// and so does a planned one.
func TestGatewayGoesWithItsNetwork(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"a creation that failed", `
			attach A cidr=192.0.2.0/28
			attach B cidr=192.0.2.0/28
			gateway B ip=192.0.2.9 -> 192.0.2.9
			ask A ip=192.0.2.9 ! inuse; the gateway of its subnet
			detach B
			ask A ip=192.0.2.9 -> 192.0.2.9
			attach C cidr=192.0.2.0/28
			gateway C -> 192.0.2.1
			gateway A -> 192.0.2.1
		`},
		{"another has asked for it by address", `
			attach A cidr=192.0.2.0/28
			gateway A ip=192.0.2.9 -> 192.0.2.9
			attach B cidr=192.0.2.0/28
			gateway B ip=192.0.2.9 -> 192.0.2.9
			detach A
			ask B ip=192.0.2.9 ! inuse; the gateway of its subnet
			gateway B -> 192.0.2.9
		`},
		{"another has asked for any", `
			attach A cidr=192.0.2.0/28
			gateway A -> 192.0.2.1
			attach B cidr=192.0.2.0/28
			gateway B -> 192.0.2.1
			detach A
			ask B ip=192.0.2.1 ! inuse; the gateway of its subnet
		`},
		{"it asks again itself", `
			attach A cidr=192.0.2.0/28
			attach B cidr=192.0.2.0/28
			gateway B -> 192.0.2.1
			gateway B ip=192.0.2.1 -> 192.0.2.1
			detach B
			ask A -> 192.0.2.1
		`},
		{"by --ipam-opt", `
			attach A cidr=192.0.2.0/28
			attach B cidr=192.0.2.0/28 gw=192.0.2.9
			detach B
			ask A ip=192.0.2.9 -> 192.0.2.9
		`},
		{"it is planned", `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool
			attach A net=n
			gateway A -> 192.0.2.1
			attach B net=n cidr=192.0.2.0/28
			detach A
			ask B ip=192.0.2.1 ! inuse; the gateway of its subnet
		`},
	})
}

// A note on a gateway makes it part of the plan: it stays when the Docker network that requested it is removed.
func TestGatewayWithNoteStays(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("attach A cidr=192.0.2.0/28\nattach B cidr=192.0.2.0/28\ngateway B ip=192.0.2.9 -> 192.0.2.9")
	subnet := func() ipam.SubnetInfo {
		all, err := r.S.Subnets(t.Context(), "")
		must(t, err)
		return all[0]
	}
	network := subnet().NetworkID.String()
	r.Edit(&ipam.ModifySubnet{Network: network, Subnet: "192.0.2.0/28", GatewayNote: new("core")})
	r.Run("detach B\nask A ip=192.0.2.9 ! inuse; the gateway of its subnet")
	if sub := subnet(); sub.GatewayNote != "core" {
		t.Errorf("the gateway %s has the note %q", sub.Gateway, sub.GatewayNote)
	}
}
