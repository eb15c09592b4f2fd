//go:build edge

package edge_test

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"berth/internal/dhcp"
	"berth/internal/ipam"
)

// The LAN of the DHCP tests: the test process is the host. Its eth0 is on a switch with the servers, its eth1 on
// an empty switch.
const (
	lanParent    = "eth0"
	silentParent = "eth1"
)

// lanTerms are the terms of the LAN's server for each family.
var lanTerms = map[bool]dhcpTerms{
	false: {own: netip.MustParsePrefix("192.168.7.1/24"), from: addr("192.168.7.100"), to: addr("192.168.7.249"),
		lasts: 120},
	true: {ipv6: true, own: netip.MustParsePrefix("fd07::1/64"), from: addr("fd07::100"), to: addr("fd07::1ff"),
		lasts: 120},
}

// dhcpLAN is the LAN with the client under test.
type dhcpLAN struct {
	t      testing.TB
	bridge string // the switch
	client *dhcp.Client
	ipv6   bool
	terms  dhcpTerms
	server *dhcpServer
}

// newLAN makes the switches. No server is there yet.
func newLAN(t testing.TB, ipv6 bool) *dhcpLAN {
	t.Helper()
	clear := func() {
		_ = exec.Command("ip", "netns", "del", "sw").Run()
		for _, device := range []string{lanParent, silentParent} {
			_ = exec.Command("ip", "link", "del", device).Run()
		}
	}
	clear()
	t.Cleanup(clear)
	script(t, `
		sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip link set lo up
		ip netns add sw
		ip -n sw link add lan type bridge
		ip -n sw link set lan up`)
	l := &dhcpLAN{t: t, bridge: "lan", client: new(dhcp.Client), ipv6: ipv6, terms: lanTerms[ipv6]}
	l.plug(lanParent)
	l.plug(silentParent)
	run(t, "ip -n sw link set p-"+lanParent+" master lan")
	t.Cleanup(l.client.Close)
	return l
}

// plug makes an interface of the host.
func (l *dhcpLAN) plug(name string) {
	l.t.Helper()
	script(l.t, strings.ReplaceAll(`
		ip link add NAME type veth peer name p-NAME netns sw
		ip -n sw link set p-NAME up
		ip link set NAME up`, "NAME", name))
}

// ask makes the client do something, within two seconds.
func (l *dhcpLAN) ask(verb ipam.LANVerb, c ipam.LANClient, edit ...func(*ipam.LANAsk)) ipam.LANAnswer {
	q := ipam.LANAsk{ID: 1, Verb: verb, Parent: lanParent, IPv6: l.ipv6, Client: c, Subnet: l.terms.own.Masked(),
		Within: ipam.Duration(8 * time.Second)}
	for _, e := range edit {
		e(&q)
	}
	return l.client.Do(context.Background(), q)
}

// of asks about a lease's address and server.
func of(lease ipam.LANLease) func(*ipam.LANAsk) {
	return func(q *ipam.LANAsk) { q.Address, q.Server, q.ServerID = lease.Address, lease.Server, lease.ServerID }
}

// about asks about an address at any server.
func about(a netip.Addr) func(*ipam.LANAsk) { return func(q *ipam.LANAsk) { q.Address = a } }

// done asks for something that must succeed.
func (l *dhcpLAN) done(verb ipam.LANVerb, c ipam.LANClient, edit ...func(*ipam.LANAsk)) ipam.LANLease {
	l.t.Helper()
	a := l.ask(verb, c, edit...)
	if a.Failure != "" {
		l.t.Fatalf("%s of %s: %s: %s", verb, c.ID, a.Failure, a.Error)
	}
	return a.Lease
}

// fails asks for something that must fail for this reason.
func (l *dhcpLAN) fails(want ipam.LANFailure, verb ipam.LANVerb, c ipam.LANClient,
	edit ...func(*ipam.LANAsk)) ipam.LANAnswer {
	l.t.Helper()
	a := l.ask(verb, c, edit...)
	if a.Failure != want || a.Error == "" {
		l.t.Fatalf("%s of %s is %q (%s), not %q", verb, c.ID, a.Failure, a.Error, want)
	}
	return a
}

// owner is a client with its own name and MAC.
func owner(n int) ipam.LANClient {
	return ipam.LANClient{ID: fmt.Sprintf("berth:shop/web/%d", n), Hostname: fmt.Sprintf("shop-web-%d", n),
		MAC: ipam.MAC{2, 0x42, 1, 0, byte(n >> 8), byte(n)}}
}

// eachServer runs a test with each program and family.
func eachServer(t *testing.T, edit func(*dhcpTerms), test func(t *testing.T, l *dhcpLAN)) {
	t.Helper()
	for _, m := range makers {
		for _, ipv6 := range []bool{false, true} {
			name := m.name + "/v4"
			if ipv6 {
				name = m.name + "/v6"
			}
			t.Run(name, func(t *testing.T) {
				l := newLAN(t, ipv6)
				if edit != nil {
					edit(&l.terms)
				}
				l.server = l.newServer(m, "dh", l.terms)
				test(t, l)
			})
		}
	}
}
