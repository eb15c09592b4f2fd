//go:build edge

package edge_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/nft"
)

// notices collects the notices of a provider.
type notices struct {
	mu  sync.Mutex
	all []edge.Notice
}

func (n *notices) tell(one edge.Notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, one)
}

func (n *notices) of(kind edge.NoticeKind) []edge.Notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []edge.Notice
	for _, one := range n.all {
		if one.Kind == kind {
			all = append(all, one)
		}
	}
	return all
}

// start runs a provider until the test ends.
func start(t *testing.T, p *nft.Provider) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestRepair: Berth restores within two seconds whatever others remove, and counts it. `flush table` keeps the
// elements of maps. Rules without elements, and elements without rules, do nothing.
func TestRepair(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	var told notices
	p := newProvider(t, nft.Config{Tell: told.tell})
	s := mapped(edge.Withdraw)
	s.Until = soon(t, time.Hour)
	s.Mappings = append(s.Mappings, edge.Mapping{Elastic: spare4, Guest: next4, Subnet: subnet4, EgressOnly: true})
	set(t, p, s)
	start(t, p)
	whole := state(t)
	for i, harm := range []string{
		"nft delete table ip berth",
		"nft flush table ip berth",
		"nft flush table ip6 berth",
		"nft flush map ip berth dn",
		"nft flush map ip6 berth sn",
		"nft flush set ip berth fenced",
		"nft flush set arp berth live",
		"nft flush set ip berth shut",
		"nft 'delete element ip berth sn { 172.30.1.2 }'",
		"nft 'add element ip berth dn { 10.9.0.105 : 172.30.1.3 }'",
		"nft flush chain ip berth leaving",
		"nft insert rule ip berth gate accept",
		"nft delete table arp berth",
		"nft delete table netdev berth",
		"nft 'delete table ip6 berth; add table ip6 berth; add set ip6 berth live { type ipv6_addr; }'",
		"iptables -w -F DOCKER-USER",
		"ip6tables -w -F DOCKER-USER",
		"ip addr del 10.9.0.100/32 dev eth0",
		"ip addr del 2001:db8::100/128 dev eth0",
		"nft list ruleset | awk '/table ip filter/,/^}/' > /run/docker; nft flush ruleset",
	} {
		if strings.Contains(harm, "flush ruleset") { // this removes the engine's rules too, so the engine is restarted
			harm += "; iptables -w -N DOCKER-USER; iptables -w -A FORWARD -j DOCKER-USER; ip6tables -w -N DOCKER-USER"
		}
		run(t, harm)
		within(t, 2*time.Second, harm, func() error {
			if n := p.Counts().Repaired; n <= i {
				return fmt.Errorf("%d repairs after %d harms", n, i+1)
			}
			if now := state(t); now != whole && !strings.Contains(harm, "flush ruleset") {
				return fmt.Errorf("it was\n%s\nand is\n%s", whole, now)
			}
			return nil
		})
	}
	if failed := told.of(edge.Failed); len(failed) > 0 {
		t.Errorf("repairs failed: %v", failed)
	}
	run(t, "iptables -w -P FORWARD ACCEPT")
	expect(t, peer, "tcp", elastic4, guest, peer4)
	expect(t, peer, "tcp", elastic6, guest, peer6)
}

// state is everything that an edge has put in place.
func state(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, family := range []string{"ip", "ip6", "arp", "netdev"} {
		for line := range strings.Lines(run(t, "nft list table "+family+" berth 2>/dev/null || true")) {
			before, _, _ := strings.Cut(line, " expires")
			before, _, _ = strings.Cut(before, " timeout")
			if !strings.Contains(before, "elements = { 0x") && !strings.HasPrefix(strings.TrimSpace(before), "0x") {
				all.WriteString(strings.TrimSpace(before) + "\n") // tickets expire
			}
		}
	}
	lines := strings.Split(all.String(), "\n")
	slices.Sort(lines) // recreated sets are listed in another place
	chains := run(t, "iptables -w -S DOCKER-USER; ip6tables -w -S DOCKER-USER")
	return strings.Join(lines, "\n") + chains + strings.Join(onDevice(t, "eth0"), " ")
}

// TestDeviceComesBack: another device replaces the old one. Its addresses, gate and announcements come back.
func TestDeviceComesBack(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Withdraw)
	s.Until = soon(t, time.Hour)
	set(t, p, s)
	start(t, p)
	expect(t, peer, "tcp", elastic4, guest, peer4)
	script(t, `
		ip link del eth0
		ip link add eth0 type veth peer name host netns sw
		ip -n sw link set host master lan up
		ip link set eth0 up
		ip addr add 10.9.0.11/24 dev eth0
		ip addr add 2001:db8::11/64 dev eth0 nodad`)
	within(t, 2*time.Second, "the address on the new device", func() error {
		_, err := ask(peer, "tcp", elastic4)
		return err
	})
	within(t, 2*time.Second, "the address of IPv6", func() error {
		_, err := ask(peer, "tcp", elastic6)
		return err
	})
	index := strings.TrimSpace(run(t, "ip -o link show eth0 | cut -d: -f1"))
	if rules := run(t, "nft list table netdev berth"); !strings.Contains(rules, "chain out"+index+" ") {
		t.Errorf("no gate on the new device:\n%s", rules)
	}
}

// TestThousands sets ten thousand mappings, changes one of them, and removes all.
func TestThousands(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	p := newProvider(t, nft.Config{})
	s := many(10_000)
	set(t, p, s)
	set(t, newProvider(t, nft.Config{}), s)
	s.Mappings = slices.Clone(s.Mappings)
	s.Mappings[5000].Guest = addr("172.31.255.1")
	set(t, p, s)
	elements := run(t, "nft list map ip berth sn")
	if n := strings.Count(elements, " : 10."); n != 10_000 ||
		!strings.Contains(elements, fmt.Sprintf("172.31.255.1 : %s", s.Mappings[5000].Elastic)) {
		t.Errorf("there are %d elements:\n%.500s", n, elements)
	}
	set(t, p, edge.State{})
	if left := run(t, "nft list map ip berth dn"); strings.Contains(left, " : 172") {
		t.Errorf("elements are left:\n%.500s", left)
	}
}

// many are mappings that are not announced.
func many(n int) edge.State {
	s := edge.State{Ranges: []edge.Range{{From: addr("10.64.0.0"), To: addr("10.64.255.255"), OnCut: edge.Keep}}}
	inside := netip.MustParsePrefix("172.16.0.0/12")
	for i := range n {
		s.Mappings = append(s.Mappings, edge.Mapping{
			Elastic: netip.AddrFrom4([4]byte{10, 64, byte(i >> 8), byte(i)}),
			Guest:   netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}),
			Subnet:  inside,
		})
	}
	return s
}
