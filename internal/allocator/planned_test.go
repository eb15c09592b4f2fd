package allocator_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// A Docker network on a planned network gets the subnet that it names, or the first subnet of its family without
// a Docker network on this host.
func TestAttachToPlanned(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"the first subnet without a Docker network on this host", `
			network net1 subnet=198.51.100.0/24,gw=198.51.100.1,pool+2001:db8::/64,pool+192.0.2.0/24,pool
			attach A net=net1 -> 198.51.100.0/24 198.51.100.1
			attach B net=net1 -> 192.0.2.0/24
			attach C net=net1 ! exhausted|inuse|notfound; net1
			attach S net=net1 six -> 2001:db8::/64
			attach T net=net1 six ! exhausted|inuse|notfound; net1
			# another host begins at the first again
			host h2
			attach D net=net1 -> 198.51.100.0/24 198.51.100.1
			host h1
			detach A
			attach E net=net1 -> 198.51.100.0/24 198.51.100.1
			ask D mac=1 -> 198.51.100.2
			ask E mac=2 -> 198.51.100.3
			show net1 counts -> held 3 reserved 0 docker 4 planned true
		`},
		{"the one that it names", `
			network net1 subnet=192.0.2.0/24,pool+198.51.100.0/24,gw=198.51.100.9,pool+2001:db8::/64
			network net2 subnet=203.0.113.0/24
			attach A net=net1 cidr=198.51.100.0/24 -> 198.51.100.0/24 198.51.100.9
			attach B net=net1 cidr=198.51.100.0/24 -> 198.51.100.0/24 198.51.100.9
			attach C net=net1 cidr=2001:db8::/64 six -> 2001:db8::/64
			attach D net=net1 cidr=203.0.113.0/24 ! notfound|invalid|overlap; 203.0.113.0/24; net1
			attach D net=net1 cidr=198.51.100.0/25 ! notfound|invalid|overlap; 198.51.100.0/25; net1
			attach D net=net1 cidr=10.99.0.0/24 ! notfound|invalid|overlap; 10.99.0.0/24; net1
			attach D net=nowhere ! notfound; nowhere
			attach D net=nowhere cidr=192.0.2.0/24 ! notfound; nowhere
			attach D net=net1 -> 192.0.2.0/24
			ask A mac=1 -> 198.51.100.1
			ask B mac=2 -> 198.51.100.2
		`},
		{"of a family that it does not have", `
			network net4 subnet=192.0.2.0/24
			network net6 subnet=fd00::/64
			attach A net=net6 ! notfound; network net6 has no IPv4 subnet, but the engine requests one; it has 1 subnet fd00::/64;
			attach A net=net6 ! notfound; with --ipv4=false (engine 28 or newer)
			attach A net=net6 six -> fd00::/64
			attach B net=net4 six ! notfound; no IPv6 subnet, but the engine requests one; it has 1 subnet 192.0.2.0/24; create
			attach B net=net4 six ! notfound; without --ipv6
		`},
		{"of another space", `
			network net1 space=lab subnet=192.0.2.0/24,pool
			attach A net=net1 space=lab -> 192.0.2.0/24
			detach A
			attach B cidr=192.0.2.0/24 space=local -> 192.0.2.0/24
			show networks
		`},
		{"by name of a pool", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24
			pool net1 192.0.2.10+2 name=front
			pool net1 198.51.100.10+2 name=back
			attach A net=net1 pool=nowhere ! notfound; nowhere
			attach A net=net1 pool=front -> 192.0.2.0/24
			ask A mac=1 -> 192.0.2.10
			attach B net=net1 cidr=198.51.100.0/24 pool=front ! notfound; front; 198.51.100.0/24
			attach B net=net1 cidr=198.51.100.0/24 pool=back -> 198.51.100.0/24
			ask B mac=1 -> 198.51.100.10
		`},
		{"the gateway", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.254,pool
			attach A net=net1 -> 192.0.2.0/24 192.0.2.254
			gateway A -> 192.0.2.254
			gateway A ip=192.0.2.254 -> 192.0.2.254
			back A 192.0.2.254
			detach A
			show net1 subnets -> -:192.0.2.0/24:192.0.2.254:false
			take net1 x 192.0.2.254 ! inuse; gateway
			attach A net=net1 -> 192.0.2.0/24 192.0.2.254
			ask A mac=1 -> 192.0.2.1
			ask A mac=2 ip=192.0.2.254 ! inuse; gateway
		`},
	})
}

// The end of a Docker network does not change its planned network: the gateway, the reservations and the
// addresses that others took stay.
func TestDetachLeavesThePlan(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"planned", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan
			pool net1 192.0.2.10+10 name=front
			exclude net1 192.0.2.12 note=x
			reserve net1 web 192.0.2.11
			take net1 rtr 192.0.2.2
			attach A net=net1
			ask A web mac=1 -> 192.0.2.11
			ask A mac=2 -> 192.0.2.10
			detach A
			show net1 subnets -> lan:192.0.2.0/24:192.0.2.1:false
			show net1 pools -> front:192.0.2.10-192.0.2.19
			show net1 exclusions -> x:192.0.2.12-192.0.2.12
			show net1 reserved -> web=192.0.2.11
			show net1 taken -> rtr:0.0=192.0.2.2
			show net1 counts -> held 2 reserved 1 docker 0 planned true
			detach A
			ask A mac=3 ! notfound
			attach B net=net1 -> 192.0.2.0/24 192.0.2.1
			ask B web mac=7 -> 192.0.2.11
			# what was Docker's is remembered
			ask B mac=2 -> 192.0.2.10
			detach B
			subnet.rm net1 lan ! inuse; rtr
		`},
		{"attached again by its CIDR alone", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,pool
			attach A cidr=192.0.2.0/24
			ask A mac=1 -> 192.0.2.2
			show networks -> net1
			detach A
			show net1 counts -> held 1 reserved 0 docker 0 planned true
			show net1 pools -> -:192.0.2.0-192.0.2.255
		`},
		{"planned without a pool, attached with a range of its own", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1
			pool net1 192.0.2.10+2 name=front
			attach A cidr=192.0.2.0/24 range=192.0.2.10+2
			ask A mac=1 -> 192.0.2.10
			detach A
			# the pool is the plan's
			show net1 pools -> front:192.0.2.10-192.0.2.11
		`},
	})
}

// dockerMade returns the name of the only network.
func dockerMade(r *ipamtest.Stage) string {
	r.T.Helper()
	all, err := r.S.Networks(ctx, ipam.NetworkFilter{})
	if err != nil || len(all) != 1 {
		r.T.Fatalf("%d networks, %v", len(all), err)
	}
	return all[0].Name
}

// A network that Docker created ends with its last Docker network, unless a person edited it or added a
// reservation.
func TestDockerMadeBecomesPlanned(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		not at all
		renamed | network.modify | {"network": "$", "name": "core"}
		tagged | network.modify | {"network": "$", "tags": {"a": "b"}}
		subnet name | subnet.modify | {"network": "$", "subnet": "192.0.2.0/24", "name": "lan"}
		subnet added | subnet.add | {"network": "$", "cidr": "198.51.100.0/24"}
		pool removed | pool.remove | {"network": "$", "pool": "192.0.2.100"}
		pool named | pool.modify | {"network": "$", "pool": "192.0.2.0/24", "name": "front"}
		excluded | exclusion.add | {"network": "$", "range": "192.0.2.9"}
		reserved | reservation.add | {"network": "$", "owner": "web", "wishes": [{"address": "192.0.2.9"}]}
		taken | address.take | {"network": "$", "owner": "rtr"}
	`) {
		t.Run(row[0], func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run("attach A cidr=192.0.2.0/24\ngateway A -> 192.0.2.1\nask A web mac=1 -> 192.0.2.2")
			made := r.Show(dockerMade(r))
			if made.Planned || made.Docker != 1 || made.Name != "net-"+made.ID.Short() {
				t.Fatalf("%+v", made)
			}
			edit, edited := ipam.NewEdit(row[1])
			if edited {
				must(t, json.Unmarshal([]byte(strings.Replace(row[2], "$", made.Name, 1)), edit))
				r.Edit(edit)
			}
			before := r.Show(made.ID.String())
			if before.Planned != edited {
				t.Errorf("planned: %t", before.Planned)
			}
			r.Run("ask A web mac=1 -> 192.0.2.2\nask A mac=2\nback A 192.0.2.1\ndetach A")
			after, err := r.S.Network(ctx, made.ID.String())
			if !edited {
				if ipamtest.KindOf(err) != "notfound" {
					t.Fatalf("it is still there: %v", err)
				}
				r.Run("show networks ->\nattach B cidr=192.0.2.0/25 -> 192.0.2.0/25")
				return
			}
			must(t, err)
			if after.Docker != 0 || after.Name != before.Name || after.Gateway.String() != "192.0.2.1" ||
				len(after.Subnets) != len(before.Subnets) ||
				len(after.Subnets[0].Pools) != len(before.Subnets[0].Pools) || after.Use.Reserved != before.Use.Reserved {
				t.Errorf("before %+v\nafter %+v", before, after)
			}
			r.Run("attach B net=" + after.Name + " cidr=192.0.2.0/24 -> 192.0.2.0/24 192.0.2.1\nask B mac=3\ndetach B")
		})
	}
}

// A network is renamed and changed while containers use it, and no address in use changes. The ids that Docker knows
// stay valid (design.md, invariant 5).
func TestReplannedUnderContainers(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan
		pool net1 192.0.2.10-192.0.2.29 name=front
		attach A net=net1 pool=front
		attach B net=net1 cidr=192.0.2.0/24
		ask A web mac=1 -> 192.0.2.10
		ask B db mac=2 -> 192.0.2.11
		network.set net1 name=core sticky=on quarantine=1h
		subnet.set core lan name=lan2
		pool.rm core 192.0.2.10-192.0.2.14
		pool.set core front back
		exclude core 192.0.2.15-192.0.2.16
		restart
		ask A web mac=1 -> 192.0.2.10
		ask A mac=3 -> 192.0.2.17
		ask B mac=4 -> 192.0.2.18
		take core x 192.0.2.10 ! inuse; web
		take core x 192.0.2.11 ! inuse; db
		pool.rm core back
		ask A mac=5 ! exhausted|notfound; back
		ask B mac=5 ! exhausted; 192.0.2.0/24
		has A mac=3 -> 192.0.2.17
		back A 192.0.2.10
		back B 192.0.2.11
		pool core 192.0.2.10+2 name=back
		# in quarantine it is given to its last holder only
		ask A mac=6 ! exhausted; quarantine
		ask A web mac=7 -> 192.0.2.10
		wait 61m
		ask A mac=6 -> 192.0.2.11
		network.set core quarantine=0s sticky=off
		back A 192.0.2.10
		back A 192.0.2.11
		ask A mac=8 -> 192.0.2.10
		ask A mac=6 -> 192.0.2.11
		detach A
		detach B
		show core counts -> held 1 reserved 0 docker 0 planned true
	`}, {"made by Docker, with a range, replanned", `
		attach A cidr=192.0.2.0/24 range=192.0.2.128/25
		ask A mac=1 -> 192.0.2.128
		attach B cidr=192.0.2.0/24 range=192.0.2.64/26
		ask B mac=2 -> 192.0.2.64
	`}})
}

// Pools can change under an attachment that requested its own range when the network was not planned yet.
func TestReplannedRangeOfDocker(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("attach A cidr=192.0.2.0/24 range=192.0.2.128/25\nask A mac=1 -> 192.0.2.128")
	name := dockerMade(r)
	r.Run("pool.rm " + name + ` 192.0.2.128-192.0.2.199
		show ` + name + ` pools -> -:192.0.2.200-192.0.2.255
		ask A mac=1 -> 192.0.2.128
		ask A mac=2 -> 192.0.2.200
		exclude ` + name + ` 192.0.2.201-192.0.2.250
		ask A mac=3 -> 192.0.2.251
		network.set ` + name + ` name=core
		detach A
		show core pools -> -:192.0.2.200-192.0.2.255
		attach B net=core
		ask B mac=4 -> 192.0.2.252`)
}

// The clock decides about a quarantine, whoever requests the address.
func TestQuarantineOfPlanned(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/30,pool quarantine=10m
		take net1 a pool -> 192.0.2.1
		take net1 b pool -> 192.0.2.2
		release net1 a
		take net1 c pool ! exhausted; quarantine
		take net1 c 192.0.2.1 -> 192.0.2.1
		release net1 c
		wait 9m
		take net1 d pool ! exhausted; quarantine
		wait 1m
		take net1 d pool -> 192.0.2.1
	`}})
}

// If the clock was ahead when an address was released, the quarantine counts from the correction of the clock,
// and is no longer than the network's present quarantine. The address that was released first is given first.
func TestQuarantineIsBounded(t *testing.T) {
	const full = `
		network net1 subnet=192.0.2.0/30,pool quarantine=10m
		take net1 a pool -> 192.0.2.1
		take net1 b pool -> 192.0.2.2
		`
	ipamtest.RunScripts(t, []ipamtest.Script{{"ten years ahead, and back", full + `
		wait 87600h
		release net1 b
		wait 1m
		release net1 a
		wait -87600h
		network.set net1 tag.a=b
		take net1 c pool ! exhausted; quarantine, the first until 2026-01-02T03:15:05Z
		show net1 free -> 0
		wait 10m
		show net1 free -> 2
		take net1 c pool -> 192.0.2.2
		take net1 d pool -> 192.0.2.1
	`}, {"and a restart", full + `
		wait 87600h
		release net1 b
		release net1 a
		host h1
		wait -87600h
		host h1
		wait 10m
		network.set net1 tag.a=b
		wait 10m
		take net1 c pool -> 192.0.2.2
	`}, {"a day back", full + `
		release net1 a
		wait -24h
		network.set net1 tag.a=b
		take net1 c pool ! exhausted; quarantine
		wait 10m
		take net1 c pool -> 192.0.2.1
	`}, {"it is shorter by now", full + `
		release net1 a
		network.set net1 quarantine=1m
		take net1 c pool ! exhausted; quarantine
		wait 1m
		take net1 c pool -> 192.0.2.1
		release net1 b
		network.set net1 quarantine=0s
		take net1 d pool -> 192.0.2.2
	`}})
}

// Each write continues the interrupted release of an attachment, also on a planned network.
func TestDetachCutOff(t *testing.T) {
	for n := range 6 {
		r := ipamtest.New(t)
		r.Run(`
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			attach B net=net1 cidr=192.0.2.0/24
			ask A web mac=1 -> 192.0.2.9
			ask A mac=2 -> 192.0.2.2
			ask B mac=3 -> 192.0.2.3`)
		dying := &ipamtest.Failing{Store: r.Store, Left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.Clock.Now})
		must(t, err)
		dying.Left = n
		if err := s.ReleasePool(ctx, r.Pools["A"]); err != nil && !errors.Is(err, ipamtest.ErrDied) {
			t.Fatal(err)
		}
		r.Open()
		r.Run(`
			ask B mac=3 -> 192.0.2.3
			detach A
			show net1 counts -> held 2 reserved 1 docker 1 planned true
			show net1 reserved -> web=192.0.2.9
			detach B
			show net1 counts -> held 1 reserved 1 docker 0 planned true`)
	}
}

// A replay of a swarm's manager on a planned network moves its leases to the new attachment, and the plan stays.
func TestReplayOnPlanned(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 space=global subnet=10.0.9.0/24,gw=10.0.9.1
		pool net1 10.0.9.10+20 name=front
		reserve net1 web 10.0.9.12`)
	request := func(cidr string) ipam.ID {
		t.Helper()
		req := ipam.PoolRequest{Space: "global", Network: "net1", Pool: "front", Swarm: true}
		if cidr != "" {
			req.CIDR = netip.MustParsePrefix(cidr)
		}
		grant, err := r.S.RequestPool(ctx, req)
		must(t, err)
		return grant.ID
	}
	one := request("")
	gateway := ipamtest.MustTake(t, r.S,
		ipam.AddressRequest{Pool: one, Gateway: true, Preferred: netip.MustParseAddr("10.0.9.1")})
	vip, task, third := ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: one}),
		ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: one}), ipamtest.MustTake(t, r.S,
			ipam.AddressRequest{Pool: one})
	if ipamtest.Joined([]netip.Addr{gateway, vip, task, third}) != "10.0.9.1 10.0.9.10 10.0.9.11 10.0.9.13" {
		t.Fatalf("%v %v %v %v", gateway, vip, task, third)
	}
	r.Reopened()
	// The plan changes meanwhile, and the leases move to the new attachment anyway.
	r.Run("exclude net1 10.0.9.11\npool.rm net1 10.0.9.10\npool.set net1 front back")
	two := request2(t, r, "10.0.9.0/24")
	for _, again := range []ipam.AddressRequest{{Pool: two, Preferred: gateway, Gateway: true},
		{Pool: two, Preferred: vip}, {Pool: two, Preferred: task}} {
		if got := ipamtest.MustTake(t, r.S, again); got != again.Preferred {
			t.Fatalf("replaying %v gave %v", again.Preferred, got)
		}
	}
	must(t, r.S.ReleasePool(ctx, two))
	r.Run(`
		show net1 counts -> held 1 reserved 1 docker 0 planned true
		show net1 pools -> back:10.0.9.11-10.0.9.29
		show net1 subnets -> -:10.0.9.0/24:10.0.9.1:false`)
}

// request2 is the manager's request after its restart. It has its former options, but the pool has another name now.
func request2(t *testing.T, r *ipamtest.Stage, cidr string) ipam.ID {
	t.Helper()
	grant, err := r.S.RequestPool(ctx,
		ipam.PoolRequest{Space: "global", Network: "net1", Pool: "back", Swarm: true,
			CIDR: netip.MustParsePrefix(cidr)})
	must(t, err)
	return grant.ID
}
