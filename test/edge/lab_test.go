//go:build edge

package edge_test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"berth/internal/edge"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

// The lab's addresses. The host is the namespace of the test process.
var (
	peer4, peer6   = addr("10.9.0.2"), addr("2001:db8::2")
	host4, host6   = addr("10.9.0.11"), addr("2001:db8::11")
	other4, other6 = addr("10.9.0.12"), addr("2001:db8::12")
	guest4, guest6 = addr("172.30.1.2"), addr("fd30:1::2")
	next4, next6   = addr("172.30.1.3"), addr("fd30:1::3") // the second guest
	subnet4        = netip.MustParsePrefix("172.30.1.0/24")
	subnet6        = netip.MustParsePrefix("fd30:1::/64")
	elastic4       = addr("10.9.0.100")
	elastic6       = addr("2001:db8::100")
	spare4         = addr("10.9.0.101")
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

const (
	peer  = "cl"    // outside
	other = "other" // a second host
	guest = "g1"
	next  = "g2"
)

// newLab makes the namespaces anew: a switch that connects the host's eth0, the peer and another host, and a
// bridge br0 on the host with two guests.
func newLab(t *testing.T) {
	t.Helper()
	clear := func() {
		for _, ns := range []string{"sw", peer, other, guest, next} {
			_ = exec.Command("ip", "netns", "del", ns).Run()
		}
		for _, device := range []string{"eth0", "br0", "br1", "vg1", "vg2", "vlate", "vsecond"} {
			_ = exec.Command("ip", "link", "del", device).Run()
		}
		run(t, "nft flush ruleset")
		lab.Must(t, netlink.ConntrackTableFlush(netlink.ConntrackTable))
	}
	clear()
	t.Cleanup(clear)
	script(t, `
		sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip link set lo up
		ip netns add sw
		ip -n sw link add lan type bridge
		ip -n sw link set lan up
		ip link add eth0 type veth peer name host netns sw
		ip -n sw link set host master lan up
		ip link set eth0 up
		ip addr add 10.9.0.11/24 dev eth0
		ip addr add 2001:db8::11/64 dev eth0 nodad
		ip link add br0 type bridge
		ip addr add 172.30.1.1/24 dev br0
		ip addr add fd30:1::1/64 dev br0 nodad
		ip link set br0 up
		sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.netfilter.nf_conntrack_timestamp=1`)
	addOutside(t, peer, peer4, peer6)
	addOutside(t, other, other4, other6)
	addGuest(t, guest, guest4, guest6)
	addGuest(t, next, next4, next6)
}

func addOutside(t *testing.T, ns string, a4, a6 netip.Addr) {
	t.Helper()
	script(t, fmt.Sprintf(`
		ip netns add %[1]s
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n %[1]s link set lo up
		ip -n sw link add %[1]s type veth peer name eth0 netns %[1]s
		ip -n sw link set %[1]s master lan up
		ip -n %[1]s link set eth0 up
		ip -n %[1]s addr add %[2]s/24 dev eth0
		ip -n %[1]s addr add %[3]s/64 dev eth0 nodad
		ip -n %[1]s route add 172.30.1.0/24 via 10.9.0.11
		ip -n %[1]s route add fd30:1::/64 via 2001:db8::11`, ns, a4, a6))
}

// addGuest makes a container's namespace with a server that replies with the address of the client.
func addGuest(t *testing.T, ns string, a4, a6 netip.Addr) {
	t.Helper()
	script(t, fmt.Sprintf(`
		ip netns add %[1]s
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n %[1]s link set lo up
		ip link add v%[1]s type veth peer name eth0 netns %[1]s
		ip link set v%[1]s master br0 up
		ip -n %[1]s link set eth0 up
		ip -n %[1]s addr add %[2]s/24 dev eth0
		ip -n %[1]s addr add %[3]s/64 dev eth0 nodad
		ip -n %[1]s route add default via 172.30.1.1
		ip -n %[1]s route add default via fd30:1::1`, ns, a4, a6))
	serve(t, ns)
}

// script runs a command for each line, until one fails.
func script(t testing.TB, lines string) {
	t.Helper()
	run(t, "set -e\n"+lines)
}

func run(t testing.TB, line string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
	return string(out)
}

// newProvider is an edge of the host that keeps its notices.
func newProvider(t *testing.T, config nft.Config) *nft.Provider {
	t.Helper()
	p, err := nft.New(config)
	lab.Must(t, err)
	t.Cleanup(func() {
		lab.Check(t, p.Close())
	})
	return p
}

func set(t *testing.T, p edge.Provider, s edge.State) {
	t.Helper()
	lab.Must(t, p.Set(t.Context(), s))
}

// ranges are one of each family, announced on eth0.
func ranges(onCut edge.OnCut) []edge.Range {
	return []edge.Range{
		{From: addr("10.9.0.96"), To: addr("10.9.0.111"), Announce: "eth0", OnCut: onCut},
		{From: addr("2001:db8::100"), To: addr("2001:db8::10f"), Announce: "eth0", OnCut: onCut},
	}
}

// mapped is the first guest with an elastic address of each family.
func mapped(onCut edge.OnCut) edge.State {
	return edge.State{Ranges: ranges(onCut), Mappings: []edge.Mapping{
		{Elastic: elastic4, Guest: guest4, Subnet: subnet4},
		{Elastic: elastic6, Guest: guest6, Subnet: subnet6},
	}}
}

// soon is a moment in the future.
func soon(t *testing.T, d time.Duration) edge.BootTime {
	t.Helper()
	now, err := edge.Now()
	lab.Must(t, err)
	return now.Add(d)
}

// within waits until check succeeds. On an idle machine that takes at most d.
func within(t testing.TB, d time.Duration, what string, check func() error) {
	t.Helper()
	if err := lab.Eventually(d, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
