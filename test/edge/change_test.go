//go:build edge

package edge_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"berth/internal/edge"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

// TestRemap: when an address gets another guest, Berth at once cuts its open connections or decides them again.
// (In Neutron they stayed with the old guest.) Other connections do not change. CS-9.
func TestRemap(t *testing.T) {
	onEach(t, func(t *testing.T, p *nft.Provider) {
		serve(t, peer)
		serve(t, "")
		s := mapped(edge.Keep)
		set(t, p, s)
		others := []flow{
			opened(t, next, "tcp", peer4), // by the host's address
			opened(t, next, "tcp", peer6), // by the host's address
			opened(t, peer, "tcp", host4), // to the host itself
		}
		in4, in6 := opened(t, peer, "udp", elastic4), opened(t, peer, "udp", elastic6)
		out4 := opened(t, guest, "udp", peer4)
		streams := []flow{opened(t, peer, "tcp", elastic4), opened(t, guest, "tcp", peer4)}
		for _, f := range slices.Concat(others, streams, []flow{in4, in6, out4}) {
			warm(t, f)
		}
		s.Mappings = []edge.Mapping{
			{Elastic: elastic4, Guest: next4, Subnet: subnet4},
			{Elastic: elastic6, Guest: next6, Subnet: subnet6},
		}
		before := tracked(t)
		set(t, p, s)
		after := tracked(t)
		for one, since := range before {
			ofIt := strings.Contains(one, elastic4.String()+" ") || strings.Contains(one, elastic6.String()+" ")
			if ofIt == (after[one] == since) {
				t.Errorf("%s: of the address %v, and its entry is from %d and %d", one, ofIt, since, after[one])
			}
		}
		if p.Counts().Forgotten < 5 {
			t.Errorf("%d connections were counted as forgotten, of 5", p.Counts().Forgotten)
		}
		for _, f := range streams {
			within(t, time.Second, "an open stream is cut", func() error {
				if got, err := f.ask(); err == nil {
					t.Fatalf("an open stream goes on as %q", got)
				} else if errors.Is(err, os.ErrDeadlineExceeded) {
					return err
				}
				return nil
			})
		}
		for f, want := range map[flow]string{in4: next + " " + peer4.String(), in6: next + " " + peer6.String(),
			out4: peer + " " + host4.String()} {
			if got, err := f.ask(); err != nil || got != want {
				t.Errorf("an open flow goes on as %q (%v), want %q", got, err, want)
			}
		}
		for i, f := range others {
			if _, err := f.ask(); err != nil {
				t.Errorf("connection %d of another address is cut: %v", i, err)
			}
		}
		expect(t, peer, "tcp", elastic4, next, peer4)
		expect(t, next, "tcp", peer4, peer, elastic4)
		expect(t, guest, "tcp", peer4, peer, host4)
	})
}

// tracked are the connections that the kernel tracks, with their start times. A forgotten connection may be
// tracked again.
func tracked(t *testing.T) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, family := range []netlink.InetFamily{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		lab.Must(t, err)
		for _, f := range list {
			name := fmt.Sprintf("%d %s %d %s %d answered by %s to %s ", f.Forward.Protocol, f.Forward.SrcIP,
				f.Forward.SrcPort, f.Forward.DstIP, f.Forward.DstPort, f.Reverse.SrcIP, f.Reverse.DstIP)
			all[name] = f.TimeStart
		}
	}
	return all
}

// TestTakenOver: an edge ends after its transaction and before it handles the connections. The next edge handles
// them.
func TestTakenOver(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	first := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	set(t, first, s)
	in := opened(t, peer, "udp", elastic4)
	warm(t, in)
	run(t, fmt.Sprintf("nft 'delete element ip berth dn { %[1]s }; add element ip berth dn { %[1]s : %[2]s }'",
		elastic4, next4))
	run(t, fmt.Sprintf("nft 'delete element ip berth sn { %[2]s }; add element ip berth sn { %[3]s : %[1]s }'",
		elastic4, guest4, next4))
	s.Mappings[0].Guest = next4
	set(t, newProvider(t, nft.Config{}), s)
	if got, err := in.ask(); err != nil || got != next+" "+peer4.String() {
		t.Errorf("the flow goes on as %q (%v)", got, err)
	}
}

// TestAddressLeaves: an address leaves its device together with its mapping (CloudStack PR 1908), not earlier.
func TestAddressLeaves(t *testing.T) {
	newLab(t)
	p := newProvider(t, nft.Config{})
	run(t, "ip addr add 10.9.0.99/32 dev eth0") // in the range, not mapped: an earlier daemon has left it
	s := mapped(edge.Keep)
	set(t, p, s)
	want := []string{"10.9.0.100/32", "10.9.0.11/24", "2001:db8::100/128", "2001:db8::11/64"}
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
	// The host does not use the address for its own connections.
	serve(t, peer)
	expect(t, "", "tcp", peer4, peer, host4)
	expect(t, "", "tcp", peer6, peer, host6)
	s.Mappings = nil
	set(t, p, s)
	want = []string{"10.9.0.11/24", "2001:db8::11/64"}
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
	// A removed range removes its addresses too.
	set(t, p, mapped(edge.Keep))
	set(t, p, edge.State{})
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
}

// onDevice lists the addresses of a device, without the link-local ones.
func onDevice(t *testing.T, device string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(run(t, "ip -o addr show dev "+device)) {
		if fields := strings.Fields(line); !strings.HasPrefix(fields[3], "fe80:") {
			all = append(all, fields[3])
		}
	}
	slices.Sort(all)
	return all
}

// TestSetAgain: Berth does not write a state again that is already there. Neither that nor a mapping of another
// address cuts a connection.
func TestSetAgain(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	set(t, p, s)
	in := opened(t, peer, "tcp", elastic4)
	before := run(t, "nft -a list ruleset")
	for range 3 {
		set(t, p, s)
	}
	set(t, newProvider(t, nft.Config{}), s)
	if after := run(t, "nft -a list ruleset"); withoutCounters(after) != withoutCounters(before) {
		t.Errorf("the rules were written again:\n%s\n%s", before, after)
	}
	if _, err := in.ask(); err != nil {
		t.Errorf("the connection is cut: %v", err)
	}
	if n := p.Counts().Repaired; n != 0 {
		t.Errorf("%d repairs of what was whole", n)
	}
	more := s
	more.Mappings = append(slices.Clone(s.Mappings), edge.Mapping{Elastic: spare4, Guest: next4, Subnet: subnet4})
	forgotten := p.Counts().Forgotten
	for range 3 {
		set(t, p, more)
		set(t, p, s)
	}
	if n := p.Counts().Forgotten - forgotten; n != 0 {
		t.Errorf("%d connections were forgotten", n)
	}
	if _, err := in.ask(); err != nil {
		t.Errorf("the connection is cut: %v", err)
	}
}

func withoutCounters(rules string) string {
	var kept []string
	for line := range strings.Lines(rules) {
		before, _, _ := strings.Cut(line, "counter packets")
		kept = append(kept, before)
	}
	return strings.Join(kept, "\n")
}

// TestRefused: a contradictory state changes nothing. One impossible address does not block the others.
func TestRefused(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	set(t, p, s)
	wrong := s
	wrong.Mappings = []edge.Mapping{{Elastic: addr("192.0.2.1"), Guest: guest4, Subnet: subnet4}}
	if err := p.Set(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Errorf("an address outside every range: %v", err)
	}
	expect(t, peer, "tcp", elastic4, guest, peer4)
	s.Ranges = append(s.Ranges, edge.Range{From: addr("10.8.0.1"), To: addr("10.8.0.9"), Announce: "nowhere0",
		OnCut: edge.Keep})
	s.Mappings = append(s.Mappings, edge.Mapping{Elastic: addr("10.8.0.1"), Guest: next4, Subnet: subnet4})
	err := p.Set(t.Context(), s)
	failed, only := edge.Failures(err)
	if len(failed) != 1 || !only || !strings.Contains(fmt.Sprint(failed[addr("10.8.0.1")]), "nowhere0") {
		t.Errorf("an address on a device that is not there: %v", err)
	}
	expect(t, peer, "tcp", elastic4, guest, peer4)
}

// TestRemove removes everything that any process has ever put there, and nothing else.
func TestRemove(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	run(t, "iptables -w -A DOCKER-USER -s 192.0.2.66 -j DROP") // a user's rule
	run(t, "iptables -w -A DOCKER-USER -j RETURN")             // older engines end the chain like this
	rules, addresses := run(t, "nft list ruleset"), onDevice(t, "eth0")
	p := newProvider(t, nft.Config{Mark: 1, Mask: 1})
	if on, err := p.Enabled(t.Context()); on || err != nil {
		t.Errorf("enabled before the first state: %v (%v)", on, err)
	}
	s := mapped(edge.Withdraw)
	s.Until = soon(t, time.Minute)
	set(t, p, s)
	if on, err := p.Enabled(t.Context()); !on || err != nil {
		t.Errorf("not enabled: %v", err)
	}
	chain := run(t, "iptables -w -S DOCKER-USER")
	behind := "192.0.2.66/32 -j DROP\n-A DOCKER-USER -m conntrack --ctstate DNAT --ctorigdst 10.9.0.96/28"
	if !strings.Contains(chain, behind) {
		t.Errorf("the rule does not stand behind people's and before the end:\n%s", chain)
	}
	in := opened(t, peer, "udp", elastic4)
	warm(t, in)
	again := newProvider(t, nft.Config{})
	lab.Must(t, again.Remove(t.Context()))
	if after := run(t, "nft list ruleset"); withoutCounters(after) != withoutCounters(rules) {
		t.Errorf("rules were\n%s\nand are\n%s", rules, after)
	}
	if after := onDevice(t, "eth0"); !slices.Equal(after, addresses) {
		t.Errorf("eth0 had %q, and has %q", addresses, after)
	}
	if on, err := again.Enabled(t.Context()); on || err != nil {
		t.Errorf("still enabled: %v", err)
	}
	if got, err := in.ask(); err == nil {
		t.Errorf("an open connection goes on: %s", got)
	}
	if err := again.Remove(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestRangeOfOne: the engine's firewall admits a range of one address, and nothing more once the range is removed.
func TestRangeOfOne(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	for i, a := range both {
		s.Ranges[i].From, s.Ranges[i].To = a, a
	}
	chains := run(t, "iptables -w -S DOCKER-USER; ip6tables -w -S DOCKER-USER")
	for range 2 {
		set(t, p, s)
		expect(t, peer, "tcp", elastic4, guest, peer4)
		expect(t, peer, "tcp", elastic6, guest, peer6)
		set(t, p, edge.State{})
		if now := run(t, "iptables -w -S DOCKER-USER; ip6tables -w -S DOCKER-USER"); now != chains {
			t.Errorf("the chains were\n%s\nand are\n%s", chains, now)
		}
	}
}

// TestStrays: a host that has lost an address forwards packets that still arrive for it. A neighbour with an old
// entry loses nothing.
func TestStrays(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	script(t, "iptables -w -P FORWARD ACCEPT\n ip -n other addr add 10.9.0.100/32 dev eth0")
	serve(t, other)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	run(t, "ip -n cl neigh replace 10.9.0.100 lladdr "+macOf(t, "")+" dev eth0 nud permanent")
	s.Mappings = nil
	set(t, p, s)
	expect(t, peer, "tcp", elastic4, other, peer4)
}

// warm asks until the neighbours on the path know each other.
func warm(t *testing.T, f flow) {
	t.Helper()
	within(t, time.Second, "a first answer", func() error {
		_, err := f.ask()
		return err
	})
}

// opened opens a connection and fails the test if it cannot. The connection closes when the test ends.
func opened(t *testing.T, ns, network string, to netip.Addr) (f flow) {
	t.Helper()
	within(t, time.Second, network+" of "+ns+" to "+to.String(), func() (err error) {
		f, err = open(ns, network, to)
		return err
	})
	t.Cleanup(func() { _ = f.Close() })
	return f
}
