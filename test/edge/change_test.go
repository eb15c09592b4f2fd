//go:build edge

package edge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/nft"

	"github.com/vishvananda/netlink"
)

// TestRemap: when an address gets another guest, its open connections are decided anew at once (Neutron: they stayed
// with the old one), and no connection of anybody else is touched. CS-9.
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
		for _, f := range append(slices.Clone(others), in4, in6, out4) {
			warm(t, f)
		}
		s.Mappings = []edge.Mapping{
			{Elastic: elastic4, Guest: next4, Subnet: subnet4},
			{Elastic: elastic6, Guest: next6, Subnet: subnet6},
		}
		before := tracked(t)
		begin := time.Now()
		set(t, p, s)
		t.Logf("an address moved between guests in %s", time.Since(begin).Round(100*time.Microsecond))
		after := tracked(t)
		for one, since := range before {
			ofIt := strings.Contains(one, elastic4.String()+" ") || strings.Contains(one, elastic6.String()+" ")
			if ofIt == (after[one] == since) {
				t.Errorf("%s: of the address %v, and its entry is from %d and %d", one, ofIt, since, after[one])
			}
		}
		if p.Counts().Forgotten < 3 {
			t.Errorf("%d connections were counted as forgotten, of 3", p.Counts().Forgotten)
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

// tracked are the connections that the kernel knows, with when it began to. One that was forgotten may be known again.
func tracked(t *testing.T) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, family := range []netlink.InetFamily{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			name := fmt.Sprintf("%d %s %d %s %d answered by %s to %s ", f.Forward.Protocol, f.Forward.SrcIP,
				f.Forward.SrcPort, f.Forward.DstIP, f.Forward.DstPort, f.Reverse.SrcIP, f.Reverse.DstIP)
			all[name] = f.TimeStart
		}
	}
	return all
}

// TestOthersGoOn: a mapping that comes or goes touches no connection by another elastic address.
func TestOthersGoOn(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Keep)
	set(t, p, s)
	in := opened(t, peer, "tcp", elastic4)
	warm(t, in)
	before := p.Counts().Forgotten
	more := s
	more.Mappings = append(slices.Clone(s.Mappings), edge.Mapping{Elastic: spare4, Guest: next4, Subnet: subnet4})
	for range 3 {
		set(t, p, more)
		set(t, p, s)
	}
	if n := p.Counts().Forgotten - before; n != 0 {
		t.Errorf("%d connections were forgotten", n)
	}
	if _, err := in.ask(); err != nil {
		t.Errorf("the connection is cut: %v", err)
	}
}

// TestTakenOver: an edge that ended between its transaction and the connections leaves them to the next one.
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

// TestAddressLeaves: with its mapping an address leaves its device (CloudStack PR 1908), and only then.
func TestAddressLeaves(t *testing.T) {
	newLab(t)
	p := newProvider(t, nft.Config{})
	run(t, "ip addr add 10.9.0.99/32 dev eth0") // in the range, and nobody's: a daemon before this one has left it
	s := mapped(edge.Keep)
	set(t, p, s)
	want := []string{"10.9.0.100/32", "10.9.0.11/24", "2001:db8::100/128", "2001:db8::11/64"}
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
	// The host's own connections do not begin to use it.
	serve(t, peer)
	expect(t, "", "tcp", peer4, peer, host4)
	expect(t, "", "tcp", peer6, peer, host6)
	s.Mappings = nil
	set(t, p, s)
	want = []string{"10.9.0.11/24", "2001:db8::11/64"}
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
	// A range that is gone takes its addresses with it, too.
	set(t, p, mapped(edge.Keep))
	set(t, p, edge.State{})
	if got := onDevice(t, "eth0"); !slices.Equal(got, want) {
		t.Errorf("eth0 has %q, want %q", got, want)
	}
}

// onDevice lists the addresses of a device but those of its link.
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

// TestSetAgain: a state that is there already is not written again, and changes of nothing cut nothing.
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
}

func withoutCounters(rules string) string {
	var kept []string
	for line := range strings.Lines(rules) {
		before, _, _ := strings.Cut(line, "counter packets")
		kept = append(kept, before)
	}
	return strings.Join(kept, "\n")
}

// TestRefused: a state that contradicts itself changes nothing; one address that cannot be has the others go on.
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

// TestRemove takes everything away that was ever put there, by whichever process, and nothing else.
func TestRemove(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	run(t, "iptables -w -A DOCKER-USER -s 192.0.2.66 -j DROP") // a person's
	run(t, "iptables -w -A DOCKER-USER -j RETURN")             // as older engines end it
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
	if err := again.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// TestRangeOfOne: the engine's firewall lets in a range of a single address, and as little as before when it is gone.
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

// TestStrays: a host that has lost an address sends on what still comes for it, so that a neighbour with an old entry
// loses nothing.
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

// warm asks until the neighbours on the way know each other.
func warm(t *testing.T, f flow) {
	t.Helper()
	within(t, time.Second, "a first answer", func() error {
		_, err := f.ask()
		return err
	})
}

// opened is a connection that a test cannot do without, and that ends with it.
func opened(t *testing.T, ns, network string, to netip.Addr) (f flow) {
	t.Helper()
	within(t, time.Second, network+" of "+ns+" to "+to.String(), func() (err error) {
		f, err = open(ns, network, to)
		return err
	})
	t.Cleanup(func() { _ = f.Close() })
	return f
}
