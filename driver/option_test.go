package driver

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestOptionsRefused tests that a wrong value or an unknown key is refused with the value and the allowed ones.
func TestOptionsRefused(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		foo | bar | unknown; gateway; network; pool; quarantine; size; space; sticky; tag.KEY
		Size | 26 | unknown
		 | | unknown
		tag | x | unknown
		tag. | x | tag
		tag.a b | x | a b
		space | | space
		space | a/b | a/b
		space | none | none
		space | 10.0.0.1 | address
		space | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | 63
		network | | cannot name a network
		network | a/b | a/b
		network | none | "none"; special meaning
		network | 10.0.0.0 | address
		network | 10.0.0.0/24 | 10.0.0.0/24
		network | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | 63
		pool | | cannot name a pool
		pool | pool | "pool"; special meaning
		pool | all | "all"; special meaning
		pool | 10.0.0.1-10.0.0.9x/ | cannot name a pool
		pool | fd00::1 | fd00::1
		size | | prefix
		size | 0 | "0"
		size | 129 | "129"
		size | -1 | "-1"
		size | 24, | prefix
		size | big | "big"
		size | 24.5 | "24.5"
		size | +028 | "+028"
		size | 26,27 | /26; /27; two sizes
		gateway | | address
		gateway | yes | "yes"; none
		gateway | None | "None"; none
		gateway | 10.0.0.1 | needs its subnet
		gateway | 10.0.0.0/24 | not a single address
		quarantine | | duration
		quarantine | 10 | "10"; 10m
		quarantine | -1s | "-1s"
		sticky | | on; off
		sticky | perhaps | "perhaps"; on; off
	`) {
		b := newBench(t)
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: opts{row[0]: row[1]}})
		wantText(t, refused, strings.Split(row[2], "; ")...)
		if row[0] != "gateway" || row[1] != "10.0.0.1" {
			wantText(t, refused, "--ipam-opt "+row[0]+"="+row[1])
		}
		if got := b.subnets(""); len(got) != 0 {
			t.Errorf("something was made: %v", got)
		}
	}
}

// TestOptionsTwice tests that two gateways in one subnet are refused, and so is a size that differs from the subnet's.
func TestOptionsTwice(t *testing.T) {
	b := newBench(t)
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "10.0.0.0/24",
		Options: opts{"gateway": "10.0.0.1,10.0.0.2"}})
	wantText(t, refused, "10.0.0.1", "10.0.0.2", "one gateway")
	p := b.pool("local", "10.0.1.0/24", "", opts{"gateway": "10.0.1.7"}).PoolID
	_, refused = b.tryTake(p, "10.0.1.8", gatewayType)
	wantText(t, refused, "two gateways", "10.0.1.7", "10.0.1.8")
	_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "0.0.0.0/24",
		Options: opts{"size": "26"}})
	wantText(t, refused, "/24", "/26", "two sizes")
	for _, row := range []api.RequestPoolRequest{
		{Options: opts{"network": "front", "size": "26"}},
		{Options: opts{"network": "front", "size": "80"}}, // of the other family
		{Options: opts{"network": "front"}, Pool: "0.0.0.0/24"},
		{Options: opts{"network": "front"}, Pool: "::/80", V6: true},
	} {
		row.AddressSpace = "local"
		_, refused = b.tryPool(row)
		wantText(t, refused, "network=front", "size", "--subnet")
	}
	_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "10.0.2.0/24", SubPool: "10.0.2.0/25",
		Options: opts{"pool": "web"}})
	wantText(t, refused, "pool=web", "10.0.2.0/25", "--ip-range", "one of the two")
	_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "global", Options: opts{"space": "local"}})
	wantText(t, refused, "space=local", "swarm", "global")
}

// TestOptionNetwork tests what a planned network gets from a request. The default space of the engine does not select a
// space, except for a swarm's manager.
func TestOptionNetwork(t *testing.T) {
	for row := range ipamtest.Rows(4, `
		local | | network=front | {Network:front}
		local | | network=0b5cf5ea-52f4-4a3c-8f43-3a7d3a4fd0a1 | {Network:0b5cf5ea-52f4-4a3c-8f43-3a7d3a4fd0a1}
		local | | network=front; pool=web | {Network:front Pool:web}
		local | | network=front; space=lab | {Space:lab Network:front}
		local | | network=front; space=local | {Space:local Network:front}
		local | 10.0.0.0/24 | network=front | {CIDR:10.0.0.0/24 Network:front}
		local | 10.0.0.0/24 | pool=web | {Space:local CIDR:10.0.0.0/24 Pool:web}
		lab | | network=front | {Network:front}
		global | | network=front | {Space:global Network:front Swarm:true}
		global | | network=front; space=lab | {Space:lab Network:front Swarm:true}
		# A swarm's node, and its manager after a restart, ask for the subnet that was chosen, with the same options as the first time.
		local | 10.0.0.0/24 | network=front; pool=web; space=lab; size=26; com.docker.network.ipam.serial=true | {Space:local CIDR:10.0.0.0/24}
		global | 10.0.0.0/26 | size=26; com.docker.network.ipam.serial=true | {Space:global CIDR:10.0.0.0/26 Swarm:true}
		global | 10.0.0.0/26 | size=26; space=lab | {Space:lab CIDR:10.0.0.0/26 Swarm:true}
		global | | size=26 | {Space:global Bits:26 Swarm:true}
	`) {
		got, err := parsePool(&api.RequestPoolRequest{AddressSpace: row[0], Pool: row[1], Options: optsOf(row[2])})
		if err != nil {
			t.Errorf("%q: %v", row, err)
		}
		if said := setFields(got); said != row[3] {
			t.Errorf("%q: %s", row, said)
		}
	}
}

// setFields returns the fields of a request that are set.
func setFields(req ipam.PoolRequest) string {
	var all []string
	for v, i := reflect.ValueOf(req), 0; i < v.NumField(); i++ {
		if !v.Field(i).IsZero() {
			all = append(all, fmt.Sprintf("%s:%v", v.Type().Field(i).Name, v.Field(i)))
		}
	}
	return "{" + strings.Join(all, " ") + "}"
}

// TestOptionTags tests that tags are kept and shown, and that other options of the engine are not (LN-11).
func TestOptionTags(t *testing.T) {
	b := newBench(t)
	b.pool("local", "10.0.0.0/24", "",
		opts{"tag.team": "red", "tag.note": "a=b, c", "tag.empty": "", "com.docker.network.ipam.serial": "true"})
	b.reopen()
	infos, err := b.service.Subnets(context.Background(), "local")
	if err != nil || len(infos) != 1 {
		t.Fatal(infos, err)
	}
	tags := infos[0].Tags
	if len(tags) != 3 || tags["team"] != "red" || tags["note"] != "a=b, c" {
		t.Errorf("tags: %q", tags)
	}
}

// TestOptionsOfOneFamily tests that each family uses its own options. The engine sends all options with each request
// (LN-8, LN-11).
func TestOptionsOfOneFamily(t *testing.T) {
	for row := range ipamtest.Rows(7, `
		size=26 | | 172.16.0.0/26 | | | fd00:be27::/64
		size=/80 | | 172.16.0.0/24 | | | fd00:be27::/80
		size=26,80 | | 172.16.0.0/26 | | | fd00:be27::/80
		size=80 | 10.0.0.0/24 | 10.0.0.0/24 | | | fd00:be27::/80
		gateway=10.0.0.9 | 10.0.0.0/24 | 10.0.0.0/24 | 10.0.0.9/24 | | fd00:be27::/64
		gateway=fd00::9 | 10.0.0.0/24 | 10.0.0.0/24 | | fd00::/64 | fd00::/64 | fd00::9/64
		gateway=10.0.0.9,fd00::9 | 10.0.0.0/24 | 10.0.0.0/24 | 10.0.0.9/24 | fd00::/64 | fd00::/64 | fd00::9/64
	`) {
		b := newBench(t)
		for i, family := range [][]string{row[1:4], row[4:]} { // the request, the address given, its gateway
			got, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: family[0], V6: i == 1,
				Options: optsOf(row[0])})
			if refused != "" || got.Pool != family[1] || got.Data[metaGateway] != family[2] {
				t.Errorf("%q: %+v %s", row, got, refused)
			}
		}
		b.check()
	}
}

// TestOptionsOfTwoSubnets tests a network with two subnets of one family, which sends both gateways with each.
func TestOptionsOfTwoSubnets(t *testing.T) {
	b := newBench(t)
	o := opts{"gateway": "10.0.0.9,10.0.1.9"}
	for cidr, want := range map[string]string{"10.0.0.0/24": "10.0.0.9/24", "10.0.1.0/24": "10.0.1.9/24"} {
		if got := b.pool("local", cidr, "", o).Data[metaGateway]; got != want {
			t.Errorf("%s: gateway %s", cidr, got)
		}
	}
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "10.0.2.0/24", Options: o})
	wantText(t, refused, "outside", "10.0.2.0/24", "one gateway for each subnet")
}

// TestOptionGateway tests the gateway none: no address is set aside until the engine insists, and that one is released
// again (LN-11).
func TestOptionGateway(t *testing.T) {
	b := newBench(t)
	none := b.pool("local", "10.0.1.0/29", "", opts{"gateway": "none"})
	if len(none.Data) != 0 {
		t.Errorf("metadata without a gateway: %v", none.Data)
	}
	asked := b.take(none.PoolID, "", gatewayType)
	_, refused := b.tryTake(none.PoolID, asked, mac(1))
	wantText(t, refused, asked, "gateway")
	b.give(none.PoolID, asked)
	if got := b.take(none.PoolID, asked, mac(1)); got != asked {
		t.Errorf("the gateway that was given back: %s", got)
	}
	b.check()
}

// TestOptionGatewayNone tests gateway=none with each order of requests that engines make. Every engine asks for a
// bridge's gateway. Before 28 engines also ask for the gateway of macvlan and ipvlan; from 28 on they do not, and the
// lowest address is a container's. What was asked for is a lease of its Docker network: it has no gateway in the
// metadata, is nobody else's, and ends with that network (LN-10, LN-11).
func TestOptionGatewayNone(t *testing.T) {
	for row := range ipamtest.Rows(5, `
		# what | does the engine ask | subnet | address of the gateway | address of the first container
		a bridge, any engine | asks | 10.0.1.0/29 | 10.0.1.1 | 10.0.1.2
		macvlan or ipvlan, before 28 | asks | 10.0.1.0/29 | 10.0.1.1 | 10.0.1.2
		macvlan or ipvlan, from 28 on | does not | 10.0.1.0/29 | | 10.0.1.1
		a bridge with IPv6 | asks | fd00:1::/125 | fd00:1::1 | fd00:1::2
		macvlan with IPv6, from 28 on | does not | fd00:1::/125 | | fd00:1::1
	`) {
		t.Run(row[0], func(t *testing.T) {
			b := newBench(t)
			pool := func() string {
				got := b.pool("local", row[2], "", opts{"gateway": "none"})
				if len(got.Data) != 0 {
					t.Errorf("metadata without a gateway: %v", got.Data)
				}
				return got.PoolID
			}
			first := pool()
			gateway := ""
			if row[1] == "asks" {
				gateway = b.take(first, "", gatewayType)
			}
			web := b.take(first, "", named("web", 1))
			if gateway != row[3] || web != row[4] {
				t.Errorf("the gateway is %q and the container has %q, want %q and %q", gateway, web, row[3], row[4])
			}

			// A second Docker network of the subnet, such as another macvlan, has an address of its own.
			second := pool()
			other := ""
			if row[1] == "asks" {
				if other = b.take(second, "", gatewayType); other == gateway || other == web {
					t.Errorf("the second network has the gateway %s, as %s or %s", other, gateway, web)
				}
				_, refused := b.tryTake(second, gateway, named("db", 2))
				wantText(t, refused, gateway, "gateway")
			}

			b.reopen()
			b.give(first, web)
			if gateway != "" {
				b.give(first, gateway)
			}
			b.drop(first)
			if gateway != "" { // it ended with its network
				if got := b.take(second, gateway, named("db", 2)); got != gateway {
					t.Errorf("the gateway that was given back: %s", got)
				}
				_, refused := b.tryTake(second, other, named("web", 1))
				wantText(t, refused, other, "gateway")
			}
			b.check()
		})
	}
}

// TestPolicyChange tests that a new request for the same subnet with other options changes its policy.
func TestPolicyChange(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/30", "", nil).PoolID
	b.give(p, b.take(p, "", mac(1)))
	b.pool("local", "10.0.0.0/30", "", opts{"quarantine": "10m", "sticky": "off"})
	b.reopen()
	infos, err := b.service.Subnets(context.Background(), "")
	if err != nil || len(infos) != 1 || infos[0].Sticky || infos[0].Quarantine.String() != "10m" {
		t.Errorf("%+v %v", infos, err)
	}
	b.pool("local", "10.0.0.0/30", "", nil) // without options nothing changes
	infos, err = b.service.Subnets(context.Background(), "")
	if err != nil || len(infos) != 1 || infos[0].Sticky || infos[0].Quarantine.String() != "10m" {
		t.Errorf("%+v %v", infos, err)
	}
}
