package driver

import (
	"context"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestOptionsRefused: a wrong value and an unknown key are errors that quote what was written and say what may be.
func TestOptionsRefused(t *testing.T) {
	for _, row := range []struct {
		key, value string
		want       []string
	}{
		{"foo", "bar", []string{"unknown", "gateway", "network", "pool", "quarantine", "size", "space", "sticky",
			"tag.KEY"}},
		{"Size", "26", []string{"unknown"}},
		{"", "", []string{"unknown"}},
		{"tag", "x", []string{"unknown"}},
		{"tag.", "x", []string{"tag"}},
		{"tag.a b", "x", []string{"a b"}},
		{"space", "", []string{"space"}},
		{"space", "a/b", []string{"a/b"}},
		{"space", "none", []string{"none"}},
		{"space", "10.0.0.1", []string{"address"}},
		{"space", strings.Repeat("a", 64), []string{"63"}},
		{"network", "", []string{"cannot name a network"}},
		{"network", "a/b", []string{"a/b"}},
		{"network", "none", []string{`"none"`, "meaning of its own"}},
		{"network", "10.0.0.0", []string{"address"}},
		{"network", "10.0.0.0/24", []string{"10.0.0.0/24"}},
		{"network", strings.Repeat("a", 64), []string{"63"}},
		{"pool", "", []string{"cannot name a pool"}},
		{"pool", "pool", []string{`"pool"`, "meaning of its own"}},
		{"pool", "all", []string{`"all"`, "meaning of its own"}},
		{"pool", "10.0.0.1-10.0.0.9x/", []string{"cannot name a pool"}},
		{"pool", "fd00::1", []string{"fd00::1"}},
		{"size", "", []string{"prefix"}},
		{"size", "0", []string{`"0"`}},
		{"size", "129", []string{`"129"`}},
		{"size", "-1", []string{`"-1"`}},
		{"size", "24,", []string{"prefix"}},
		{"size", "big", []string{`"big"`}},
		{"size", "24.5", []string{`"24.5"`}},
		{"size", "+028", []string{`"+028"`}},
		{"size", "26,27", []string{"/26", "/27", "one size"}},
		{"gateway", "", []string{"address"}},
		{"gateway", "yes", []string{`"yes"`, "none"}},
		{"gateway", "None", []string{`"None"`, "none"}},
		{"gateway", "10.0.0.1", []string{"needs the subnet"}},
		{"gateway", "10.0.0.0/24", []string{"not one address"}},
		{"quarantine", "", []string{"duration"}},
		{"quarantine", "10", []string{`"10"`, "10m"}},
		{"quarantine", "-1s", []string{`"-1s"`}},
		{"sticky", "", []string{"on", "off"}},
		{"sticky", "true", []string{`"true"`, "on", "off"}},
		{"sticky", "ON", []string{`"ON"`}},
	} {
		b := newBench(t)
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Options: opts{row.key: row.value}})
		wantText(t, refused, row.want...)
		if row.key != "gateway" || row.value != "10.0.0.1" {
			wantText(t, refused, "--ipam-opt "+row.key+"="+row.value)
		}
		if got := b.subnets(""); len(got) != 0 {
			t.Errorf("something was made: %v", got)
		}
	}
}

// TestOptionsTwice: two gateways inside one subnet, and a size beside one that the subnet says, contradict one another.
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
	wantText(t, refused, "/24", "/26", "one size")
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

// TestOptionNetwork: what of a request goes on to a planned network. The space that the engine asks in by default is
// no wish, save a swarm manager's.
func TestOptionNetwork(t *testing.T) {
	const id = "0b5cf5ea-52f4-4a3c-8f43-3a7d3a4fd0a1"
	for _, row := range []struct {
		space, pool string
		options     opts
		want        ipam.PoolRequest
	}{
		{"local", "", opts{"network": "front"}, ipam.PoolRequest{Network: "front"}},
		{"local", "", opts{"network": id}, ipam.PoolRequest{Network: id}},
		{"local", "", opts{"network": "front", "pool": "web"}, ipam.PoolRequest{Network: "front", Pool: "web"}},
		{"local", "", opts{"network": "front", "space": "lab"}, ipam.PoolRequest{Network: "front", Space: "lab"}},
		{"local", "", opts{"network": "front", "space": "local"}, ipam.PoolRequest{Network: "front", Space: "local"}},
		{"local", "10.0.0.0/24", opts{"network": "front"},
			ipam.PoolRequest{Network: "front", CIDR: netip.MustParsePrefix("10.0.0.0/24")}},
		{"local", "10.0.0.0/24", opts{"pool": "web"},
			ipam.PoolRequest{Space: "local", Pool: "web", CIDR: netip.MustParsePrefix("10.0.0.0/24")}},
		{"lab", "", opts{"network": "front"}, ipam.PoolRequest{Network: "front"}},
		{"global", "", opts{"network": "front"}, ipam.PoolRequest{Network: "front", Space: "global", Swarm: true}},
		{"global", "", opts{"network": "front", "space": "lab"},
			ipam.PoolRequest{Network: "front", Space: "lab", Swarm: true}},
		// A swarm's node, and the manager after its restart, ask for the subnet that was chosen, with the options of
		// then.
		{"local", "10.0.0.0/24",
			opts{"network": "front", "pool": "web", "space": "lab", "size": "26", optSerial: "true"},
			ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix("10.0.0.0/24")}},
		{"global", "10.0.0.0/26", opts{"size": "26", optSerial: "true"},
			ipam.PoolRequest{Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.0.0.0/26")}},
		{"global", "10.0.0.0/26", opts{"size": "26", "space": "lab"},
			ipam.PoolRequest{Space: "lab", Swarm: true, CIDR: netip.MustParsePrefix("10.0.0.0/26")}},
		{"global", "", opts{"size": "26"}, ipam.PoolRequest{Space: "global", Swarm: true, Bits: 26}},
	} {
		got, err := parsePool(&api.RequestPoolRequest{AddressSpace: row.space, Pool: row.pool, Options: row.options})
		if err != nil {
			t.Errorf("%v: %v", row.options, err)
		}
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s %s %v: %+v, want %+v", row.space, row.pool, row.options, got, row.want)
		}
	}
}

// TestOptionTags: tags are kept and shown, other options of the engine's own are neither (LN-11).
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

// TestOptionsOfOneFamily: the engine sends all options with the request for each family; each takes its own (LN-8,
// LN-11).
func TestOptionsOfOneFamily(t *testing.T) {
	for _, row := range []struct {
		options    opts
		v4, v6     string // subnets asked for
		got4, got6 api.RequestPoolResponse
	}{
		{opts{"size": "26"}, "", "", api.RequestPoolResponse{Pool: "172.16.0.0/26"},
			api.RequestPoolResponse{Pool: "fd00:be27::/64"}},
		{opts{"size": "/80"}, "", "", api.RequestPoolResponse{Pool: "172.16.0.0/24"},
			api.RequestPoolResponse{Pool: "fd00:be27::/80"}},
		{opts{"size": "26,80"}, "", "", api.RequestPoolResponse{Pool: "172.16.0.0/26"},
			api.RequestPoolResponse{Pool: "fd00:be27::/80"}},
		{opts{"size": "80"}, "10.0.0.0/24", "", api.RequestPoolResponse{Pool: "10.0.0.0/24"},
			api.RequestPoolResponse{Pool: "fd00:be27::/80"}},
		{opts{"gateway": "10.0.0.9"}, "10.0.0.0/24", "",
			api.RequestPoolResponse{Pool: "10.0.0.0/24", Data: opts{metaGateway: "10.0.0.9/24"}},
			api.RequestPoolResponse{Pool: "fd00:be27::/64"}},
		{opts{"gateway": "fd00::9"}, "10.0.0.0/24", "fd00::/64", api.RequestPoolResponse{Pool: "10.0.0.0/24"},
			api.RequestPoolResponse{Pool: "fd00::/64", Data: opts{metaGateway: "fd00::9/64"}}},
		{opts{"gateway": "10.0.0.9,fd00::9"}, "10.0.0.0/24", "fd00::/64",
			api.RequestPoolResponse{Pool: "10.0.0.0/24", Data: opts{metaGateway: "10.0.0.9/24"}},
			api.RequestPoolResponse{Pool: "fd00::/64", Data: opts{metaGateway: "fd00::9/64"}}},
	} {
		b := newBench(t)
		for _, family := range []struct {
			v6   bool
			pool string
			want api.RequestPoolResponse
		}{{false, row.v4, row.got4}, {true, row.v6, row.got6}} {
			got, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: family.pool, V6: family.v6,
				Options: row.options})
			if refused != "" || got.Pool != family.want.Pool || got.Data[metaGateway] != family.want.Data[metaGateway] {
				t.Errorf("%v, V6 %v: %+v %s", row.options, family.v6, got, refused)
			}
		}
		b.check()
	}
}

// TestOptionsOfTwoSubnets: a network of two subnets in one family sends both gateways with each.
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

// TestOptionGateway: with none, no address is set aside until the engine insists, and that one goes back (LN-11).
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

// TestPolicyChange: the same subnet asked for with other words changes its policy from then on.
func TestPolicyChange(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/30", "", nil).PoolID
	b.give(p, b.take(p, "", mac(1)))
	b.pool("local", "10.0.0.0/30", "", opts{"quarantine": "10m", "sticky": "off"})
	b.reopen()
	infos, err := b.service.Subnets(context.Background(), "")
	if err != nil || len(infos) != 1 || infos[0].Sticky || infos[0].Quarantine != "10m0s" {
		t.Errorf("%+v %v", infos, err)
	}
	b.pool("local", "10.0.0.0/30", "", nil) // says nothing, changes nothing
	infos, err = b.service.Subnets(context.Background(), "")
	if err != nil || len(infos) != 1 || infos[0].Sticky || infos[0].Quarantine != "10m0s" {
		t.Errorf("%+v %v", infos, err)
	}
}
