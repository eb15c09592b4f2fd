package driver

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// dockers returns a bench on a host with docker0 of both families, a bridge of another network, and a bridge of the
// user.
func dockers(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.host = []Bridge{bridge("docker0", "172.17.0.0/16", "fd00:17::/64"), bridge("br-0123456789ab", "10.9.0.0/24")}
	return b
}

func bridge(link string, subnets ...string) Bridge {
	b := Bridge{Link: link}
	for _, s := range subnets {
		b.Subnets = append(b.Subnets, netip.MustParsePrefix(s))
	}
	return b
}

// noBridges reports that the host's bridges cannot be read.
func noBridges() ([]Bridge, error) { return nil, errors.New("no netlink here") }

func engineNetwork(name, id, driver, link string, subnets ...string) ipam.EngineNetwork {
	n := ipam.EngineNetwork{ID: id, Name: name, Driver: driver, Link: link}
	for _, s := range subnets {
		n.Subnets = append(n.Subnets, ipam.EngineSubnet{CIDR: netip.MustParsePrefix(s)})
	}
	return n
}

// TestDockersOwn tests that a subnet that overlaps a bridge of the engine is refused with the name of its network, and
// leaves nothing behind. A subnet next to it is given, and so is the subnet of a bridge that the user made.
func TestDockersOwn(t *testing.T) {
	b := dockers(t)
	for _, row := range []struct{ cidr, words string }{
		{"172.17.0.0/16", "172.17.0.0/16 bridge docker0 choose"},
		{"172.17.5.0/24", "172.17.5.0/24 172.17.0.0/16 bridge docker0 choose `docker network ls`"},
		{"172.16.0.0/12", "172.16.0.0/12 172.17.0.0/16 bridge"},
		{"fd00:17::/80", "fd00:17::/80 fd00:17::/64 bridge"},
		{"fd00:17::/48", "fd00:17::/48 fd00:17::/64 bridge"},
		{"10.9.0.128/25", "10.9.0.0/24 br-0123456789ab `ip link delete br-0123456789ab`"},
		{"10.0.0.0/8", "10.0.0.0/8 10.9.0.0/24 br-0123456789ab"},
	} {
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: row.cidr,
			V6: strings.Contains(row.cidr, ":")})
		wantText(t, refused, strings.Fields(row.words)...)
	}
	if got := b.subnets(""); len(got) != 0 {
		t.Errorf("refused, and left %v", got)
	}
	for _, cidr := range []string{"172.16.0.0/16", "172.18.0.0/16", "fd00:17:0:1::/64", "10.9.1.0/24",
		"192.168.1.0/24"} {
		b.pool("local", cidr, "", nil)
	}
}

// TestDockersOwnInSwarm tests that a swarm's manager and its nodes are never refused a subnet that they request again.
func TestDockersOwnInSwarm(t *testing.T) {
	b := dockers(t)
	b.pool("global", "10.9.0.0/24", "", nil)
	b.pool("local", "10.9.0.0/24", "", opts{optSerial: "true"})
}

// TestOwnBridge tests that the bridge of one of Berth's own networks does not count as Docker's. Berth's own rules
// decide on a second attachment, an attachment of another space, and a recreated network, also after a restart.
func TestOwnBridge(t *testing.T) {
	b := dockers(t)
	b.host = b.host[:1]
	first := b.pool("local", "10.9.0.0/24", "", nil)
	b.host = append(b.host, bridge("br-0123456789ab", "10.9.0.0/24"))
	b.pool("local", "10.9.0.0/24", "", nil)
	b.pool("lab", "10.9.0.0/24", "", opts{"space": "lab"})
	_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: "10.9.0.0/25"})
	wantText(t, refused, "10.9.0.0/25", "10.9.0.0/24", "space local")
	b.reopen()
	again := b.pool("local", "10.9.0.0/24", "", nil)
	b.drop(first.PoolID)
	b.drop(again.PoolID)
	b.pool("local", "10.9.0.0/24", "", nil)
}

// TestDockersOwnAsSeen tests that a network that a witness knows counts by its name, even without a bridge. If the
// witness knows all networks, a bridge without a network does not count, except docker0. A foreign driver may be this
// Berth under another name.
func TestDockersOwnAsSeen(t *testing.T) {
	b := dockers(t)
	b.bridges = []ipam.EngineNetwork{
		engineNetwork("bridge", "aaaaaaaaaaaaaaaa", "default", "docker0", "172.17.0.0/16"),
		engineNetwork("shop", "0123456789abcdef", "default", "", "10.9.0.0/24", "fd00:9::/64"),
		engineNetwork("lan", "cccccccccccccccc", "default", "brlan", "192.168.1.0/24"),
		engineNetwork("alias", "dddddddddddddddd", "vendor:1", "", "10.10.0.0/24"),
	}
	b.host = append(b.host, bridge("br-ffffffffffff", "10.11.0.0/24"))
	refused := func(cidr string, words ...string) {
		t.Helper()
		_, text := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: cidr, V6: strings.Contains(cidr, ":")})
		wantText(t, text, words...)
	}
	refused("172.17.1.0/24", "network bridge", "docker0")
	refused("10.9.0.0/24", "network shop", "br-0123456789ab")
	refused("fd00:9::/64", "network shop")
	refused("192.168.1.128/25", "network lan", "brlan")
	refused("10.10.0.0/16", "network alias")
	refused("10.11.0.0/24", "bridge br-ffffffffffff")
	b.live = true
	b.pool("local", "10.11.0.0/24", "", nil)
	refused("172.17.1.0/24", "network bridge")

	known := b.bridges
	b.bridges = nil
	b.pool("local", "10.10.0.0/24", "", nil)
	b.bridges = known
	b.pool("local", "10.10.0.0/24", "", nil)
}

// TestDockersOwnPlanned tests that a planned network gives no such subnet either, whether it is requested or not, and
// that Berth chooses one that does not overlap.
func TestDockersOwnPlanned(t *testing.T) {
	b := dockers(t)
	b.edit("network.create",
		`{"name":"front","subnets":[{"cidr":"172.17.9.0/24","pool":true},{"cidr":"10.20.0.0/24","pool":true}]}`)
	for _, cidr := range []string{"", "172.17.9.0/24"} {
		b.avoid = []netip.Prefix{netip.MustParsePrefix("172.17.0.0/16")}
		_, refused := b.tryPool(api.RequestPoolRequest{AddressSpace: "local", Pool: cidr, Options: with(nil)})
		wantText(t, refused, "172.17.9.0/24", "Docker's network bridge")
	}
	b.avoid = nil
	b.planned("10.20.0.0/24", nil)
	for range 3 {
		chosen := netip.MustParsePrefix(b.pool("local", "", "", nil).Pool)
		if chosen.Overlaps(netip.MustParsePrefix("172.17.0.0/16")) {
			t.Errorf("%s was chosen", chosen)
		}
	}
}

// TestHostBridges tests that the bridges of this machine parse, and that only the engine's are among them.
func TestHostBridges(t *testing.T) {
	all, err := hostBridges()
	must(t, err)
	for _, b := range all {
		if defaultBridges[b.Link] == "" && !networkBridge.MatchString(b.Link) {
			t.Errorf("%+v", b)
		}
		for _, p := range b.Subnets {
			if p != p.Masked() || p.Bits() == 0 || p.Addr().IsLinkLocalUnicast() {
				t.Errorf("%s: %v", b.Link, p)
			}
		}
	}
}
