package driver

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// front plans a network with two IPv4 subnets and an IPv6 one. The first subnet has the pools web (two addresses and an
// exclusion) and rest.
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

// planned requests a pool of front with more options.
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

// TestPlanned tests that a Docker network gets the subnet that it names, or the first one of its family without a
// Docker network on this host. The metadata has the planned gateway (LN-1, LN-11).
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

// TestPlannedRefused tests that a request that does not match the plan is refused with what the plan has.
func TestPlannedRefused(t *testing.T) {
	b := front(t)
	b.edit("network.create", `{"name":"flat"}`)
	b.edit("network.create", `{"name":"four","subnets":[{"cidr":"10.0.9.0/24","pool":true}]}`)
	for row := range ipamtest.Rows(5, `
		unknown network | | | network=back | back; berth network ls
		# GA-1
		no subnet | | | network=flat | flat; no subnet
		none of the family | | v6 | network=four | four; IPv6
		unknown pool | | | network=front; pool=db | db; front
		unknown subnet | 10.0.2.0/24 | | network=front | 10.0.2.0/24; front
		a part of a subnet | 10.0.0.0/25 | | network=front | 10.0.0.0/25; front
		a pool of another subnet | 10.0.1.0/24 | | network=front; pool=web | web; 10.0.1.0/24
		a pool and no network | | | pool=web | web; network=NAME
		a pool of a subnet without a plan | 10.0.7.0/24 | | pool=web | web; 10.0.7.0/24
		another space | | | network=front; space=lab | front; local; lab
	`) {
		t.Run(row[0], func(t *testing.T) {
			for range 2 {
				_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: row[1], V6: row[2] != "",
					Options: optsOf(row[3])})
				wantText(t, refused, strings.Split(row[4], "; ")...)
			}
		})
	}
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "global", Options: with(opts{optSerial: "true"})})
	wantText(t, refused, "front", "local", "global") // a swarm's nodes ask in local for the manager's subnet
	if got := b.subnets(""); len(got) != 4 {
		t.Errorf("something was made: %v", got)
	}
	b.check()
}

// TestPlannedSpace tests that a network in another space needs no space=, and accepts its own.
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

// TestPlannedLoopEnds tests a daemon that cannot see the engine's routes. Each repetition gets another subnet, and the
// last one an error. A subnet that the engine kept counts as a Docker network.
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

// TestPlannedPolicy tests that an option that differs from the plan is refused, because `berth network modify` changes
// the plan. An equal option is accepted.
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
	// A second gateway belongs to the Docker network, and ends with it.
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
