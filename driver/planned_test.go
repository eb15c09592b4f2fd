package driver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// front plans a network: two IPv4 subnets, of which the first has the pools web (two addresses beside an exclusion) and
// rest, and an IPv6 one.
func front(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.edit("network.create", `{"name":"front","subnets":[{"cidr":"10.0.0.0/24","gateway":"10.0.0.254","name":"lan"},
		{"cidr":"10.0.1.0/24","pool":true},{"cidr":"fd00::/64","gateway":"fd00::1","pool":true}]}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.10-10.0.0.12","name":"web"}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.20+2","name":"rest"}`)
	b.edit("exclusion.add", `{"network":"front","range":"10.0.0.11","note":"printer"}`)
	return b
}

// planned asks for a pool of front and more options.
func (b *bench) planned(cidr string, o opts) api.RequestPoolResponse {
	b.t.Helper()
	return b.pool("local", cidr, "", with(o))
}

func with(o opts) opts {
	all := opts{"network": "front"}
	for key, value := range o {
		all[key] = value
	}
	return all
}

// TestPlanned: a Docker network gets the first subnet of its family that has none on this host, or the one that it
// names, and the planned gateway in the metadata (LN-1, LN-11).
func TestPlanned(t *testing.T) {
	b := front(t)
	first := b.planned("", nil)
	if first.Pool != "10.0.0.0/24" || first.Data[metaGateway] != "10.0.0.254/24" {
		t.Errorf("the first: %+v", first)
	}
	second := b.planned("", nil)
	if second.Pool != "10.0.1.0/24" || len(second.Data) != 0 {
		t.Errorf("the second: %+v", second)
	}
	six, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", V6: true, Options: with(nil)})
	if refused != "" || six.Pool != "fd00::/64" || six.Data[metaGateway] != "fd00::1/64" {
		t.Errorf("IPv6: %+v %s", six, refused)
	}
	_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(nil)})
	wantText(t, refused, "front", "IPv4", "berth subnet add", "--subnet")
	if named := b.planned("10.0.0.0/24", nil); named.Pool != "10.0.0.0/24" || named.PoolID == first.PoolID {
		t.Errorf("by --subnet: %+v", named)
	}
	b.reopen()
	b.drop(first.PoolID)
	b.check()
}

// TestPlannedRefused: what is not planned so is refused with what there is.
func TestPlannedRefused(t *testing.T) {
	b := front(t)
	b.edit("network.create", `{"name":"flat"}`)
	b.edit("network.create", `{"name":"four","subnets":[{"cidr":"10.0.9.0/24","pool":true}]}`)
	for _, row := range []struct {
		name, pool string
		v6         bool
		options    opts
		want       []string
	}{
		{"unknown network", "", false, opts{"network": "back"}, []string{"back", "berth network ls"}},
		{"no subnet", "", false, opts{"network": "flat"}, []string{"flat", "no subnet"}}, // GA-1
		{"none of the family", "", true, opts{"network": "four"}, []string{"four", "IPv6"}},
		{"unknown pool", "", false, with(opts{"pool": "db"}), []string{"db", "front"}},
		{"unknown subnet", "10.0.2.0/24", false, with(nil), []string{"10.0.2.0/24", "front"}},
		{"a part of a subnet", "10.0.0.0/25", false, with(nil), []string{"10.0.0.0/25", "front"}},
		{"a pool of another subnet", "10.0.1.0/24", false, with(opts{"pool": "web"}), []string{"web", "10.0.1.0/24"}},
		{"a pool and no network", "", false, opts{"pool": "web"}, []string{"web", "network=NAME"}},
		{"a pool of a subnet without a plan", "10.0.7.0/24", false, opts{"pool": "web"},
			[]string{"web", "10.0.7.0/24"}},
		{"another space", "", false, with(opts{"space": "lab"}), []string{"front", "local", "lab"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for range 2 {
				_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: row.pool, V6: row.v6,
					Options: row.options})
				wantText(t, refused, row.want...)
			}
		})
	}
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "global", Options: with(opts{optSerial: "true"})})
	wantText(t, refused, "front", "local", "global") // a swarm's nodes ask in local for what the manager took
	if got := b.subnets(""); len(got) != 4 {
		t.Errorf("something was made: %v", got)
	}
	b.check()
}

// TestPlannedSpace: a network of another space needs no space=, and agrees with its own.
func TestPlannedSpace(t *testing.T) {
	b := newBench(t)
	b.edit("network.create", `{"name":"front","space":"lab","subnets":[{"cidr":"10.0.0.0/24","pool":true}]}`)
	for _, o := range []opts{nil, {"space": "lab"}} {
		got := b.planned("", o)
		b.drop(got.PoolID)
		b.drop(b.planned("10.0.0.0/24", o).PoolID)
	}
	if got := b.subnets("lab"); !slices.Equal(got, []string{"10.0.0.0/24"}) {
		t.Errorf("subnets of lab: %v", got)
	}
	b.check()
}

// TestPlannedLoop: a subnet that overlaps a route of the host is refused at once and each time, since the engine would
// keep it and ask again without limit. One that is named is not looked at, as on a macvlan network of the host's own
// LAN.
func TestPlannedLoop(t *testing.T) {
	for _, route := range []string{"10.0.0.0/24", "10.0.0.0/8", "10.0.0.7/32"} {
		b := front(t)
		b.avoid = []netip.Prefix{netip.MustParsePrefix(route)}
		if route == "10.0.0.0/8" { // it is in the way of both, else the second subnet would do
			b.avoid = append(b.avoid, netip.MustParsePrefix("192.168.0.0/16"))
		} else {
			b.avoid = append(b.avoid, netip.MustParsePrefix("10.0.1.0/30"))
		}
		for range 100 {
			_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(nil)})
			wantText(t, refused, "front", route, "route", "--subnet")
		}
		b.reopen()
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(nil)})
		wantText(t, refused, "front", route, "route", "--subnet")
		if got := b.planned("10.0.0.0/24", nil); got.Pool != "10.0.0.0/24" {
			t.Errorf("by --subnet: %+v", got)
		}
		b.check()
	}
}

// TestPlannedLoopEnds: where the daemon sees not what the engine sees, each repetition gets another subnet, and in the
// end an error: what the engine has kept counts as a Docker network.
func TestPlannedLoopEnds(t *testing.T) {
	b := front(t)
	b.handler = New(Config{Service: b.service, Log: quiet(), Host: noBridges,
		Routes:      func() ([]ipam.HostRoute, error) { return nil, errors.New("no netlink here") },
		NameServers: func() ([]netip.Prefix, error) { return nil, errors.New("nor a resolv.conf") }}).Handler()
	kept := []string{b.planned("", nil).PoolID, b.planned("", nil).PoolID}
	for range 100 {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(nil)})
		wantText(t, refused, "front", "--subnet")
	}
	for _, id := range kept {
		b.drop(id)
	}
	b.check()
}

// TestNamedPool: a named pool never goes on to another, and says so when it is full; with no name the pools of the
// subnet are used one after the other. Exclusions are never given, the gateway neither (LN-6, GA-8, GA-16, BO-7).
func TestNamedPool(t *testing.T) {
	for _, row := range []struct {
		options opts
		want    []string
		full    []string
	}{
		{opts{"pool": "web"}, []string{"10.0.0.10", "10.0.0.12"}, []string{"web", "front"}},
		{opts{"pool": "rest"}, []string{"10.0.0.20", "10.0.0.21"}, []string{"rest", "front"}},
		{nil, []string{"10.0.0.10", "10.0.0.12", "10.0.0.20", "10.0.0.21"}, []string{"10.0.0.0/24"}},
	} {
		b := front(t)
		p := b.planned("", row.options).PoolID
		got, refused := b.fill(p)
		if !slices.Equal(got, row.want) {
			t.Errorf("%v: given %v, want %v", row.options, got, row.want)
		}
		wantText(t, refused, row.full...)
		b.give(p, got[1])
		if again := b.take(p, "", mac(9)); again != got[1] {
			t.Errorf("%v: %s was free, given %s", row.options, got[1], again)
		}
		if at := b.take(p, "10.0.0.99", mac(10)); at != "10.0.0.99" { // outside of all pools
			t.Errorf("%v: by address: %s", row.options, at)
		}
		b.check()
	}
}

// TestPlannedEdits: what changes in the plan counts for the next request of a Docker network that is there (GA-10,
// GA-19).
func TestPlannedEdits(t *testing.T) {
	b := front(t)
	p := b.planned("", opts{"pool": "web"}).PoolID
	one := b.take(p, "", mac(1))
	b.edit("pool.modify", `{"network":"front","pool":"web","name":"shop"}`)
	b.edit("exclusion.add", `{"network":"front","range":"10.0.0.10","note":"moved"}`)
	b.holds(one, mac(1))
	if two := b.take(p, "", mac(2)); two != "10.0.0.12" {
		t.Errorf("given %s", two)
	}
	_, refused := b.tryTake(p, "", mac(3))
	wantText(t, refused, "shop")
	b.edit("pool.add", `{"network":"front","range":"10.0.0.40","name":"shop"}`)
	if three := b.take(p, "", mac(3)); three != "10.0.0.40" {
		t.Errorf("out of the new range: %s", three)
	}
	b.give(p, one)
	_, refused = b.tryTake(p, one, mac(4))
	wantText(t, refused, one, "moved") // GA-9
	_, refused = b.tryTake(p, "", mac(1))
	wantText(t, refused, "shop")
	b.edit("network.modify", `{"network":"front","name":"street"}`)
	b.reopen()
	b.edit("exclusion.remove", `{"network":"street","range":"10.0.0.10"}`)
	if back := b.take(p, "", mac(5)); back != one {
		t.Errorf("no longer excluded: %s", back)
	}
	b.check()
}

// TestPlannedStays: the network, its gateway, pools, exclusions and reservations outlive every Docker network on it.
func TestPlannedStays(t *testing.T) {
	b := front(t)
	b.edit("reservation.add", `{"network":"front","owner":"db","wishes":[{"slot":0,"address":"10.0.0.12"}]}`)
	for range 2 {
		p := b.planned("", opts{"pool": "web"})
		if got, _ := b.fill(p.PoolID); !slices.Equal(got, []string{"10.0.0.10"}) {
			t.Errorf("given: %v", got)
		}
		b.give(p.PoolID, "10.0.0.254") // so the engine does with a gateway of the metadata
		b.drop(p.PoolID)
		b.reopen()
		info, err := b.service.Network(context.Background(), "front")
		if err != nil || len(info.Subnets) != 3 || info.Docker != 0 || info.Use.Reserved != 1 {
			t.Fatalf("%+v %v", info, err)
		}
		lan := info.Subnets[0]
		if lan.Gateway != netip.MustParseAddr("10.0.0.254") || len(lan.Pools) != 2 || len(lan.Exclusions) != 1 {
			t.Errorf("the subnet: %+v", lan)
		}
	}
	b.check()
}

// TestPlannedPolicy: what an option says otherwise than the plan is for `berth network modify` to change; what says the
// same is no contradiction.
func TestPlannedPolicy(t *testing.T) {
	b := front(t)
	b.edit("network.modify", `{"network":"front","sticky":false,"quarantine":"10m","tags":{"team":"red"}}`)
	for _, o := range []opts{{"sticky": "off"}, {"quarantine": "600s"}, {"tag.team": "red"},
		{"gateway": "10.0.0.254"}} {
		b.drop(b.planned("10.0.0.0/24", o).PoolID)
	}
	for _, o := range []opts{{"sticky": "on"}, {"quarantine": "1h"}, {"tag.team": "blue"}, {"tag.x": "y"}} {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(o)})
		wantText(t, refused, "front", "berth network modify")
	}
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(opts{"gateway": "none"})})
	wantText(t, refused, "10.0.0.254", "gateway=none")
	_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: with(opts{"gateway": "10.0.9.1"})})
	wantText(t, refused, "10.0.9.1", "10.0.0.0/24")
	// A second gateway beside the planned one is the Docker network's own, and ends with it.
	p := b.planned("", opts{"gateway": "10.0.0.9"})
	if p.Data[metaGateway] != "10.0.0.9/24" {
		t.Errorf("metadata: %v", p.Data)
	}
	_, refused = b.tryTake(p.PoolID, "10.0.0.9", mac(1))
	wantText(t, refused, "10.0.0.9", "gateway")
	b.give(p.PoolID, "10.0.0.9")
	b.drop(p.PoolID)
	if again := b.planned("", nil); again.Data[metaGateway] != "10.0.0.254/24" {
		t.Errorf("the plan's gateway: %v", again.Data)
	}
	b.check()
}

// TestPlannedWithoutGateway: an engine of the 20.10 line wants a gateway for its bridge all the same. It is the Docker
// network's, out of the pool, and goes back with it.
func TestPlannedWithoutGateway(t *testing.T) {
	b := front(t)
	for range 2 {
		p := b.planned("10.0.1.0/24", nil)
		asked := b.take(p.PoolID, "", gatewayType)
		_, refused := b.tryTake(p.PoolID, asked, mac(1))
		wantText(t, refused, asked, "gateway")
		b.give(p.PoolID, asked)
		b.drop(p.PoolID)
	}
	info, err := b.service.Network(context.Background(), "front")
	if err != nil || info.Subnets[1].Gateway.IsValid() || info.Subnets[1].Use.Leased != 0 {
		t.Errorf("%+v %v", info.Subnets[1], err)
	}
	b.check()
}

// TestPlannedSwarm: a swarm's network on a planned one of the space global. The restarted manager asks for it again by
// the subnet and with the options of then, also after the plan was renamed; the node asks for the same addresses in
// local.
func TestPlannedSwarm(t *testing.T) {
	b := newBench(t)
	b.edit("network.create", `{"name":"mesh","space":"global","subnets":[{"cidr":"10.0.9.0/24","gateway":"10.0.9.1"}]}`)
	b.edit("pool.add", `{"network":"mesh","range":"10.0.9.10+20","name":"tasks"}`)
	o := opts{"network": "mesh", "pool": "tasks", optSerial: "true"}
	before := b.pool("global", "", "", o)
	if before.Pool != "10.0.9.0/24" || before.Data[metaGateway] != "10.0.9.1/24" {
		t.Fatalf("the manager's pool: %+v", before)
	}
	tasks := []string{b.take(before.PoolID, "", serial), b.take(before.PoolID, "", serial)}
	node := b.pool("local", "10.0.9.0/24", "", o).PoolID // the manager stores its options with that mark
	b.take(node, "10.0.9.1", gatewayType)
	for n, task := range tasks {
		b.take(node, task, mac(n))
	}
	b.edit("network.modify", `{"network":"mesh","name":"web"}`)
	b.edit("pool.modify", `{"network":"web","pool":"tasks","name":"work"}`)
	b.reopen()
	after := b.pool("global", "10.0.9.0/24", "", o).PoolID
	b.take(after, "10.0.9.1", serialGateway)
	for _, task := range tasks {
		if got := b.take(after, task, serial); got != task {
			t.Errorf("the replay asked for %s and got %s", task, got)
		}
	}
	if next := b.take(after, "", serial); next != "10.0.9.12" {
		t.Errorf("the next task has %s", next)
	}
	for _, addr := range append(tasks, "10.0.9.12", "10.0.9.1") {
		b.give(after, addr)
	}
	b.drop(after)
	b.drop(node)
	info, err := b.service.Network(context.Background(), "web")
	if err != nil || info.Docker != 0 || info.Use.Leased != 1 { // its gateway
		t.Errorf("after the swarm's network is gone: %+v %v", info, err)
	}
	b.check()
}
