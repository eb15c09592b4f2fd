//go:build engine

package engine

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// ownHost is the address of the host whose engine has a default bridge.
const ownHost = "10.213.252.1"

// dockers is an engine with the networks that these tests must not harm: their subnets and bridges.
type dockers struct {
	*Harness
	e       *PrivateEngine
	subnets map[string]string // of the networks bridge, own and six
	links   map[string]string
}

// withDefaultBridge starts a new engine with docker0, of both families, and two networks on the engine's own IPAM. It
// starts a Berth with flags, too.
func withDefaultBridge(t *testing.T, number int, flags ...string) *dockers {
	t.Helper()
	d := &dockers{subnets: map[string]string{"bridge": "10.213.228.0/22,fd00:213:e4::/64"},
		links: map[string]string{"bridge": "docker0"}}
	name := fmt.Sprintf("%sown%d", prefix, number)
	e := ownEngine(t, name, ownHost, "--bip", "10.213.228.1/22", "--ipv6", "--fixed-cidr-v6", "fd00:213:e4::/64")
	d.e = e
	b := e.daemon(t, name, flags...)
	d.Harness = &Harness{T: t, Engine: e.Engine, Berth: b, number: number}
	d.own("own", "10.213.232.0/24", "--subnet", "10.213.232.0/24")
	d.own("six", "10.213.233.0/24,fd00:213:e9::/64", "--subnet", "10.213.233.0/24", "--ipv6", "--subnet",
		"fd00:213:e9::/64")
	return d
}

// own creates a network on the engine's own IPAM.
func (d *dockers) own(name, subnets string, options ...string) {
	d.Helper()
	id := d.docker(append(append([]string{"network", "create"}, options...), name)...)
	d.subnets[name], d.links[name] = subnets, "br-"+id[:12]
}

// unharmed checks that the engine still has its networks, each with its bridge and the bridge's addresses.
func (d *dockers) unharmed(after string) {
	d.Helper()
	list := strings.Fields(d.docker("network", "ls", "--format", "{{.Name}}"))
	for name, subnets := range d.subnets {
		found := false
		for _, n := range list {
			found = found || n == name
		}
		if !found {
			d.Fatalf("after %s the engine has no network %s: %v", after, name, list)
		}
		out := d.inHost("ip", "-o", "address", "show", "dev", d.links[name])
		for subnet := range strings.SplitSeq(subnets, ",") {
			p := netip.MustParsePrefix(subnet)
			if want := fmt.Sprintf(" %s/%d ", p.Addr().Next(), p.Bits()); !strings.Contains(out, want) {
				d.Fatalf("after %s the bridge %s has no %s:\n%s", after, d.links[name], want, out)
			}
		}
	}
}

// inHost runs a command in the engine's namespaces.
func (d *dockers) inHost(command ...string) string {
	d.Helper()
	args := append(d.e.within(), command...)
	out, err := lab.Run(time.Minute, nil, args[0], args[1:]...)
	lab.Must(d, err)
	return out
}

// runs checks that containers start on the engine's networks.
func (d *dockers) runs() {
	d.Helper()
	for name := range d.subnets {
		d.docker("run", "--rm", "--network", name, imageName, "ip", "-o", "-4", "address", "show", "dev", "eth0")
	}
}

// Berth takes no subnet that overlaps a bridge of the engine: equal, inside or around it, of IPv4 or IPv6. The engine
// keeps docker0 and its networks. Berth takes subnets next to them, and the subnet of a bridge that the user made.
func TestNoHarm(t *testing.T) {
	t.Parallel()
	d := withDefaultBridge(t, 77, "--docker-host", "none")
	d.unharmed("its start")
	v6 := []string{"--ipv6", "--subnet", "10.213.77.0/24"}
	for network, all := range map[string][]string{
		"bridge": {"10.213.228.0/22", "10.213.230.0/24", "10.213.228.0/30", "10.213.224.0/20", "10.0.0.0/8",
			"fd00:213:e4::/64", "fd00:213:e4::/80", "fd00:213::/32"},
		"own": {"10.213.232.0/24", "10.213.232.128/25", "10.213.232.0/23"},
		"six": {"10.213.233.0/24", "10.213.233.64/26", "fd00:213:e9::/64", "fd00:213:e9:0:8000::/65",
			"fd00:213:e8::/46"},
	} {
		for _, subnet := range all {
			args := []string{"--subnet", subnet}
			if strings.Contains(subnet, ":") {
				args = append(v6, args...)
			}
			d.refused([]string{subnet, "Docker", "`docker network ls`", "choose another subnet"},
				d.networkCommand(d.name(), args...)...)
			d.unharmed(subnet + ", which overlaps " + network)
			if left := d.berth("subnet", "ls", "-q"); left != "" {
				t.Errorf("%s was refused, and Berth has %s", subnet, left)
			}
		}
		if !testing.Short() {
			d.runs()
		}
	}
	refused := d.refused([]string{"10.213.230.0/24", "10.213.228.0/22", "Docker's network bridge", "docker0"},
		d.networkCommand(d.name(), "--subnet", "10.213.230.0/24")...)
	t.Log(refused)

	for _, subnet := range []string{"10.213.224.0/22", "10.213.234.0/24", "10.213.232.0/24"} {
		if subnet == "10.213.232.0/24" { // a Berth network replaces one of the engine's
			d.removes("own")
			delete(d.subnets, "own")
		}
		n := d.network("--subnet", subnet)
		d.address(d.container(n), n)
		d.unharmed(subnet)
	}
	// A LAN of the user: a bridge that the user made, with an address in the subnet.
	d.inHost("ip", "link", "add", "brlan", "type", "bridge")
	d.inHost("ip", "address", "add", "10.213.236.1/24", "dev", "brlan")
	d.inHost("ip", "link", "set", "brlan", "up")
	d.docker("network", "create", "--ipam-driver", d.Berth.Driver(), "--subnet", "10.213.236.0/24", "--gateway",
		"10.213.236.1",
		"--opt", "com.docker.network.bridge.name=brlan", "lan")
	c := d.container("lan")
	d.address(c, "lan")
	d.calls(c, "10.213.236.1")
	d.unharmed("a network on the user's bridge")
	d.runs()
}
