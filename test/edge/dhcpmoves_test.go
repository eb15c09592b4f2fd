//go:build edge

package edge_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/test/lab"
)

// TestLN15Moves: hosts with a shared etcd are on one LAN. The lease follows its owner: started on the other host
// the owner keeps its address, and only that host renews it. dnsmasq allows no renewal within 45 seconds, so it
// takes part only with longer leases.
func TestLN15Moves(t *testing.T) {
	for _, m := range makers {
		lasts := *keptLasts
		if lasts < 120 {
			lasts /= 3 // no daemon or edge is away here
		}
		if m.name == "dnsmasq" && lasts < 120 {
			continue
		}
		t.Run(m.name, func(t *testing.T) { moveLeases(t, m, lasts) })
	}
}

// movedLease is the lease of an owner that moves between two hosts.
type movedLease struct {
	lan   *dhcpLAN
	on    []*lanNetwork
	macs  []string // of the hosts
	addr  netip.Addr
	heard *tap
}

func moveLeases(t *testing.T, m maker, lasts int) {
	four, six := newLAN(t, false), &dhcpLAN{t: t, bridge: "lan", ipv6: true, terms: lanTerms[true]}
	hosts := four.newShared("h1", "h2")
	var all []*movedLease
	for i, l := range []*dhcpLAN{four, six} {
		l.terms.lasts = lasts
		l.server = l.newServer(m, fmt.Sprintf("dh%d", i), l.terms)
		all = append(all, l.newMoved(fmt.Sprintf("lan%d", i), hosts))
	}
	for round := range 2 {
		from, to := round%2, (round+1)%2
		for _, m := range all {
			m.move(from, to, round)
		}
		here := time.Now()
		for _, m := range all {
			m.renewed(to, here)
		}
		for _, m := range all {
			m.renewed(to, m.renewed(to, here))
			m.check(from, to, here)
		}
	}
}

// newMoved plans a network of the LAN on both hosts, and starts its owner on the first.
func (l *dhcpLAN) newMoved(network string, hosts []*lanHost) *movedLease {
	l.t.Helper()
	cidr := l.terms.own.Masked().String()
	hosts[0].berth("network", "create", network, "--space", "global", "--type", "dynamic", "--subnet", cidr+",gateway="+
		l.terms.own.Addr().String(), "--dhcp", lanParent)
	hosts[0].berth("reservation", "add", network, "--owner", "web")
	m := &movedLease{lan: l}
	for _, h := range hosts {
		m.on = append(m.on, h.networkOf(l, cidr, map[string]string{"network": network}))
		m.macs = append(m.macs, macOf(l.t, h.name))
	}
	m.addr = m.on[0].take("web", 1)
	m.heard = newTap(l.t, l.server.ns)
	return m
}

// move ends the owner's container on one host and starts it on the other.
func (m *movedLease) move(from, to, round int) {
	m.lan.t.Helper()
	m.on[from].end(m.addr)
	if got := m.on[to].take("web", 2+round); got != m.addr {
		m.lan.t.Fatalf("on %s it has %s, and had %s", m.on[to].name, got, m.addr)
	}
}

// renewed waits until a host renews the lease after since, and returns the time.
func (m *movedLease) renewed(host int, since time.Time) (at time.Time) {
	m.lan.t.Helper()
	within(m.lan.t, time.Duration(m.lan.terms.lasts)*time.Second/2, "renewed by "+m.on[host].name, func() error {
		all := m.heard.of(func(s said) bool { return s.renewal() && s.from == m.macs[host] && s.at.After(since) })
		if len(all) == 0 {
			return errors.New("it is not")
		}
		at = all[0].at
		return nil
	})
	return at
}

// check checks the traffic on the LAN and the records: the lease belongs to the host `to` since a moment.
func (m *movedLease) check(from, to int, since time.Time) {
	t := m.lan.t
	t.Helper()
	if late := m.heard.of(func(s said) bool { return s.from == m.macs[from] && s.at.After(since) }); len(late) > 0 {
		t.Errorf("%s asks for it still: %+v", m.on[from].name, late)
	}
	if told := m.heard.of(func(s said) bool { return s.kind == "RELEASE" || s.kind == "DECLINE" }); len(told) > 0 {
		t.Errorf("it was given back: %+v", told)
	}
	if l := m.on[from].lease(m.addr); l == nil || l.Host != m.on[to].name || l.DHCP.State != ipam.LANBound {
		t.Errorf("by the records it is %+v", l)
	}
	lab.Check(t, m.lan.server.has(m.addr))
}

// newShared makes hosts on the LAN that share an etcd.
func (l *dhcpLAN) newShared(names ...string) (all []*lanHost) {
	l.t.Helper()
	for i, name := range names {
		h := l.newHostOnly(name, inStore...)
		if i == 0 {
			_ = run(l.t, "ip netns del "+store+" 2>/dev/null || true")
			h.join(store, storeAddr, "2001:db8::3")
			l.t.Cleanup(func() { run(l.t, "ip netns del "+store) })
			h.startStore()
		}
		run(l.t, fmt.Sprintf("ip -n %s addr add 10.9.0.%d/24 dev %s", name, 11+i, lanParent))
		h.restart()
		all = append(all, h)
	}
	return all
}
