package edit_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// Networks and subnets are named by name, by id, or by the first eight digits of an id that has no other.
func TestReferences(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,name=lan\nnetwork net2 subnet=198.51.100.0/24,name=lan")
	one, two := r.Show("net1"), r.Show("net2")
	if got := r.Show(one.ID.Short()); got.ID != one.ID {
		t.Errorf("%s is %s", one.ID.Short(), got.Name)
	}
	// A network whose name is the short id of another network is found by that name.
	r.Run("network " + two.ID.Short())
	if got := r.Show(two.ID.Short()); got.ID == two.ID {
		t.Errorf("%s is %s", two.ID.Short(), got.Name)
	}
	r.Run(`
		subnet.set net1 ` + one.Subnets[0].ID.String() + ` name=a
		subnet.set net1 ` + one.Subnets[0].ID.Short() + ` name=b
		# those of other networks are not meant
		subnet.set net1 ` + two.Subnets[0].ID.String() + ` name=c ! notfound; net1
		subnet.set net1 198.51.100.0/24 name=c ! notfound; net1
		subnet.rm net1 ` + two.Subnets[0].ID.String() + ` ! notfound; net1
		take net1 x 198.51.100.1 ! invalid; net1
		pool net1 198.51.100.1 subnet=192.0.2.0/24 ! invalid; 192.0.2.0/24
		subnet.set net1 192.0.2.1/24 name=c ! notfound|invalid; 192.0.2
		show net1 subnets -> b:192.0.2.0/24:-:false
		show net2 subnets -> lan:198.51.100.0/24:-:false
		network.rm ` + ipam.NewID().String() + ` ! notfound
		take net1 x 192.0.2.7 subnet=b -> 192.0.2.7`)
	for _, cidr := range []string{"192.0.2.1/25", "192.0.2.0/0", "::ffff:192.0.2.0/120", "2001:db8::/64", ""} {
		r.Line(`edit subnet.modify {"network": "net1", "subnet": "b", "cidr": "` + cidr + `"} ! invalid`)
	}
}

// Lists have the wanted length, and no query takes time with the size of a subnet.
func TestAvailableLimits(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=2001:db8::/32,gw=2001:db8::1,pool\nexclude net1 2001:db8::3-2001:db8:0:1::\ntake net1 " +
		"a pool -> 2001:db8::2")
	r.Run(`
		free net1 1 -> 2001:db8:0:1::1
		free net1 2 -> 2001:db8:0:1::1 2001:db8:0:1::2
		free net1 0 ->
	`)
}

// A Docker network's own range limits its addresses to the pools inside it, also while these change.
func TestRangeOfDockerInPlan(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.10-192.0.2.19 name=a
		pool net1 192.0.2.20-192.0.2.29 name=b
		attach A net=net1 cidr=192.0.2.0/24 range=192.0.2.15-192.0.2.24
		attach B net=net1 cidr=192.0.2.0/24 range=192.0.2.100-192.0.2.109 ! invalid; 192.0.2.100
		ask A mac=1 -> 192.0.2.15
		pool.rm net1 192.0.2.15-192.0.2.19
		ask A mac=2 -> 192.0.2.20
		pool net1 192.0.2.16-192.0.2.19
		exclude net1 192.0.2.16
		ask A mac=3 -> 192.0.2.21
		pool.rm net1 b
		ask A mac=4 -> 192.0.2.17
		pool.rm net1 192.0.2.16-192.0.2.19
		ask A mac=5 ! exhausted; 192.0.2.15-192.0.2.24
		has A mac=1 -> 192.0.2.15
		detach A
		show net1 pools -> a:192.0.2.10-192.0.2.14
	`}, {"what a Docker network wants of a planned one that the plan does not say", `
		network net1 subnet=192.0.2.0/24,pool quarantine=10m
		attach A net=net1 gw=192.0.2.9 -> 192.0.2.0/24 192.0.2.9
		show net1 subnets -> -:192.0.2.0/24:-:false
		take net1 x 192.0.2.9 ! inuse; gateway
		subnet.set net1 192.0.2.0/24 gw=192.0.2.9 ! inuse; Docker
		detach A
		take net1 x 192.0.2.9 -> 192.0.2.9
		attach B net=net1 gw=192.0.2.9 ! inuse; x
		attach B net=net1 gw=198.51.100.9 ! invalid; 198.51.100.9
		exclude net1 192.0.2.10
		attach B net=net1 gw=192.0.2.10 ! inuse; 192.0.2.10
		reserve net1 web 192.0.2.11
		attach B net=net1 gw=192.0.2.11 ! inuse; web
	`}})
}

// External addresses belong to the network. They stay when Docker networks end.
func TestTakenOutlivesDocker(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/29,pool
		attach A net=net1
		attach B net=net1 cidr=192.0.2.0/29
		ask A web mac=1 -> 192.0.2.1
		take net1 web pool -> 192.0.2.2
		ask B web mac=1 -> 192.0.2.3
		reserve net1 web pool
		detach A
		detach B
		show net1 taken -> web:0.0=192.0.2.2
		show net1 counts -> held 1 reserved 1 docker 0 planned true
	`}})
}

// A subnet that Berth chooses does not overlap an existing plan.
func TestChosenBesidePlanned(t *testing.T) {
	r := ipamtest.New(t)
	s, err := service.Open(ctx,
		service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now,
			Bases: []ipam.Base{{Prefix: netip.MustParsePrefix("10.8.0.0/22"), Bits: 24}}})
	fine(t, err)
	r.S = s
	r.Line("network net1 subnet=10.8.0.0/25+10.8.2.0/24")
	for _, want := range []string{"10.8.1.0/24", "10.8.3.0/24"} {
		if got := ipamtest.MustPool(t, s, ipam.PoolRequest{}); got.CIDR.String() != want {
			t.Errorf("chose %s, want %s", got.CIDR, want)
		}
	}
	if _, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "local"}); ipamtest.KindOf(err) != "exhausted" {
		t.Error(err)
	}
	r.Line("subnet.set net1 10.8.2.0/24 cidr=10.9.0.0/24")
	if got := ipamtest.MustPool(t, s, ipam.PoolRequest{}); got.CIDR.String() != "10.8.2.0/24" {
		t.Errorf("chose %s", got.CIDR)
	}
}

// A pool request is refused if a host's route overlaps the planned subnet, because the engine would ask forever. A
// named subnet is not checked (engine.md, RequestPool loop).
func TestPlannedOnRoute(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool")
	avoid := []netip.Prefix{netip.MustParsePrefix("192.0.2.128/25")}
	_, err := r.S.RequestPool(ctx, ipam.PoolRequest{Network: "net1", Avoid: avoid})
	r.Refused("attach", "overlap|inuse|invalid; 192.0.2.128/25; --subnet", err)
	if _, err := r.S.RequestPool(ctx,
		ipam.PoolRequest{Network: "net1", Avoid: avoid, CIDR: netip.MustParsePrefix("192.0.2.0/24")}); err != nil {
		t.Error(err)
	}
	if _, err := r.S.RequestPool(ctx, ipam.PoolRequest{Network: "net1", Bits: 25}); ipamtest.KindOf(err) != "invalid" {
		t.Error(err)
	}
	if _, err := r.S.RequestPool(ctx, ipam.PoolRequest{Space: "local", Pool: "front"}); ipamtest.KindOf(err) !=
		"invalid" {
		t.Error(err)
	}
}
