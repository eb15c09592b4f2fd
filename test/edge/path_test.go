//go:build edge

package edge_test

import (
	"net/netip"
	"testing"

	"berth/internal/edge"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

// engines are Docker's two firewalls, each with the setting that admits Berth's traffic.
var engines = []struct {
	name   string
	rules  func(*testing.T)
	config nft.Config
}{
	{"iptables", dockerIPTables, nft.Config{}},
	{"nftables", func(t *testing.T) { dockerNFTables(t, "0xbe") }, nft.Config{Mark: 0xbe, Mask: 0xff}},
}

var networks = []string{"tcp", "udp"}

// onEach runs a test with each engine's rules, each in a new lab.
func onEach(t *testing.T, test func(*testing.T, *nft.Provider)) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			newLab(t)
			engine.rules(t)
			test(t, newProvider(t, engine.config))
		})
	}
}

// TestOutgoing: a container's connections leave with its elastic address, and other connections with the host's.
// CS-8.
func TestOutgoing(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		serve(t, peer)
		for _, network := range networks {
			expect(t, guest, network, peer4, peer, host4)
		}
		set(t, p, mapped(edge.Keep))
		for _, network := range networks {
			expect(t, guest, network, peer4, peer, elastic4)
			expect(t, guest, network, peer6, peer, elastic6)
			expect(t, next, network, peer4, peer, host4)
			expect(t, next, network, peer6, peer, host6)
		}
		for _, a := range []netip.Addr{peer4, peer6} {
			lab.Check(t, ping(guest, a))
		}
		// Between neighbours each guest keeps its own address.
		expect(t, guest, "tcp", next4, next, guest4)
		expect(t, guest, "tcp", next6, next, guest6)
	})
}

// TestFirstPacket: a staged mapping is in the kernel before its guest exists, so no packet leaves with the host's
// address (kube-vip #865, #996). A staged mapping admits nothing and is not announced.
func TestFirstPacket(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		serve(t, peer)
		a4, a6 := addr("172.30.1.9"), addr("fd30:1::9")
		s := edge.State{Ranges: ranges(edge.Keep), Mappings: []edge.Mapping{
			{Elastic: elastic4, Guest: a4, Subnet: subnet4, Staged: true},
			{Elastic: elastic6, Guest: a6, Subnet: subnet6, Staged: true},
		}}
		set(t, p, s)
		if n := p.Counts().Announced; n != 0 {
			t.Errorf("%d frames were sent for addresses that are not here", n)
		}
		t.Cleanup(func() { run(t, "ip netns del late") })
		addGuest(t, "late", a4, a6)
		c, err := open("late", "udp", peer4)
		lab.Must(t, err)
		defer c.Close()
		// No host answers ARP for it, so replies need this route.
		run(t, "ip -n cl route add 10.9.0.100/32 via 10.9.0.11")
		run(t, "ip -n cl route add 2001:db8::100/128 via 2001:db8::11")
		if got, err := c.ask(); err != nil || got != peer+" "+elastic4.String() {
			t.Errorf("the first packet was seen as %q (%v)", got, err)
		}
		expect(t, "late", "tcp", peer6, peer, elastic6)
		refused(t, peer, "tcp", elastic4)
		for i := range s.Mappings { // the guest runs now
			s.Mappings[i].Staged = false
		}
		set(t, p, s)
		expect(t, peer, "tcp", elastic4, "late", peer4)
		expect(t, peer, "tcp", elastic6, "late", peer6)
	})
}

// TestInbound: a mapping works both ways from the start (Incus #1965), and the guest sees the client's address.
func TestInbound(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		set(t, p, mapped(edge.Keep))
		for _, network := range networks {
			expect(t, peer, network, elastic4, guest, peer4)
			expect(t, peer, network, elastic6, guest, peer6)
		}
		for _, a := range []netip.Addr{elastic4, elastic6} {
			lab.Check(t, ping(peer, a))
		}
		// The engine still blocks the container's own address and its neighbour.
		refused(t, peer, "tcp", guest4)
		refused(t, peer, "tcp", next4)
	})
}

// TestNeedsMark: without the mark the nftables backend admits nothing. This proves that TestInbound tests
// something.
func TestNeedsMark(t *testing.T) {
	newLab(t)
	dockerNFTables(t, "0xbe")
	set(t, newProvider(t, nft.Config{}), mapped(edge.Keep))
	refused(t, peer, "tcp", elastic4)
}

// ownPort lets a guest's bridge send frames back through the port that they came in by. Where the kernel filters
// bridged frames (br_netfilter), a guest needs this to reach its own elastic address.
func ownPort(t *testing.T) {
	t.Helper()
	run(t, "ip link set vg1 type bridge_slave hairpin on")
}

// TestHairpin: guests of the same bridge, the guest itself and the host reach an elastic address like any other
// host.
func TestHairpin(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		ownPort(t)
		s := mapped(edge.Keep)
		set(t, p, s)
		gateway4, gateway6 := addr("172.30.1.1"), addr("fd30:1::1")
		for _, network := range networks {
			expect(t, next, network, elastic4, guest, gateway4)
			expect(t, next, network, elastic6, guest, gateway6)
			expect(t, guest, network, elastic4, guest, elastic4)
			expect(t, guest, network, elastic6, guest, elastic6)
			expect(t, "", network, elastic4, guest, gateway4)
			expect(t, "", network, elastic6, guest, gateway6)
		}
		s.Mappings = append(s.Mappings, edge.Mapping{Elastic: spare4, Guest: next4, Subnet: subnet4})
		set(t, p, s)
		expect(t, next, "tcp", elastic4, guest, spare4)
		expect(t, guest, "tcp", spare4, next, elastic4)
		lab.Check(t, ping("", elastic4))
	})
}

// TestEgressOnly: an egress-only address admits nothing, neither to the guest nor to services of the host.
func TestEgressOnly(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		serve(t, "")
		serve(t, peer)
		s := mapped(edge.Keep)
		for i := range s.Mappings {
			s.Mappings[i].EgressOnly = true
		}
		set(t, p, s)
		expect(t, peer, "tcp", host4, "", peer4)
		expect(t, peer, "tcp", host6, "", peer6)
		for _, network := range networks {
			expect(t, guest, network, peer4, peer, elastic4)
			expect(t, guest, network, peer6, peer, elastic6)
			refused(t, peer, network, elastic4)
			refused(t, peer, network, elastic6)
		}
		s.Mappings[0].EgressOnly = false
		set(t, p, s)
		expect(t, peer, "tcp", elastic4, guest, peer4)
	})
}

// TestSeveralInterfaces: a guest with two networks uses its elastic address on the named one only (CloudStack #3334).
func TestSeveralInterfaces(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	script(t, `
		ip link add br1 type bridge
		ip addr add 172.30.9.1/24 dev br1
		ip link set br1 up
		ip link add vsecond type veth peer name eth1 netns g1
		ip link set vsecond master br1 up
		ip -n g1 link set eth1 up
		ip -n g1 addr add 172.30.9.2/24 dev eth1
		ip -n g1 rule add from 172.30.9.2 lookup 9
		ip -n g1 route add default via 172.30.9.1 table 9
		iptables -w -A FORWARD -i br1 -j ACCEPT
		iptables -w -A FORWARD -o br1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
		iptables -w -t nat -A POSTROUTING -s 172.30.9.0/24 ! -o br1 -j MASQUERADE`)
	serve(t, peer)
	p := newProvider(t, nft.Config{})
	set(t, p, edge.State{Ranges: ranges(edge.Keep), Mappings: []edge.Mapping{
		{Elastic: elastic4, Guest: addr("172.30.9.2"), Subnet: netip.MustParsePrefix("172.30.9.0/24")},
	}})
	expect(t, guest, "tcp", peer4, peer, host4) // through eth0, its default
	c, err := in(guest, func() (string, error) { return askFrom(addr("172.30.9.2"), peer4) })
	if want := peer + " " + elastic4.String(); err != nil || c != want {
		t.Errorf("by the mapped interface: %q (%v), want %q", c, err, want)
	}
	expect(t, peer, "tcp", elastic4, guest, peer4)
}
