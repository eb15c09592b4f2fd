//go:build edge

package edge_test

import (
	"flag"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
)

var (
	keptFor = flag.Duration("kept", 15*time.Second, "how long leases are kept")
	// dnsmasq gives no lease of less than two minutes
	keptLasts = flag.Int("kept.lasts", 24, "for how many seconds a lease is given; from 120 on dnsmasq gives some, too")
)

// beside is a network of another LAN with its own server, whose leases last `lasts` seconds.
func (l *dhcpLAN) beside(h *lanHost, number int, m maker, ipv6 bool, lasts int) *lanNetwork {
	l.t.Helper()
	other := &dhcpLAN{t: l.t, bridge: fmt.Sprintf("lan%d", number), ipv6: ipv6, terms: lanTerms[ipv6]}
	subnet := fmt.Sprintf("192.168.%d.", 10+number)
	from, to := addr(subnet+"100"), addr(subnet+"249")
	own := netip.MustParsePrefix(subnet + "1/24")
	if ipv6 {
		subnet = fmt.Sprintf("fd%d::", 10+number)
		from, to, own = addr(subnet+"100"), addr(subnet+"1ff"), netip.MustParsePrefix(subnet+"1/64")
	}
	other.terms.own, other.terms.from, other.terms.to, other.terms.lasts = own, from, to, lasts
	script(l.t, fmt.Sprintf(`
		ip -n sw link add %[1]s type bridge
		ip -n sw link set %[1]s up`, other.bridge))
	device := fmt.Sprintf("nic%d", number)
	h.plug(device, other.bridge)
	other.server = other.newServer(m, fmt.Sprintf("dh%d", number), other.terms)
	return h.network(other, device)
}

// TestLN15Kept: daemon and edge are killed a second before each renewal and stay away for a third of the lease
// time. The server never sees the lease end.
func TestLN15Kept(t *testing.T) {
	l := newLAN(t, false)
	h := l.newHost("h1")
	var all []*keptLease
	for i, m := range makers {
		if m.name == "dnsmasq" && *keptLasts < 120 {
			continue
		}
		for j, ipv6 := range []bool{false, true} {
			n := l.beside(h, 2*i+j, m, ipv6, *keptLasts)
			k := &keptLease{lanNetwork: n, addr: n.take("web", 1)}
			k.heard = newTap(t, n.lan.server.ns)
			all = append(all, k)
		}
	}
	end := time.Now().Add(*keptFor)
	kills := 0
	for time.Now().Before(end) {
		var first time.Time
		for _, k := range all {
			if renews := k.lease(k.addr).DHCP.Renews; first.IsZero() || renews.Before(first) {
				first = renews
			}
		}
		watchUntil(all, first.Add(-time.Second))
		h.crash()
		kills++
		watchUntil(all, time.Now().Add(time.Duration(*keptLasts)*time.Second/3))
		h.restart()
		for _, k := range all {
			k.renewed()
		}
	}
	for _, k := range all {
		k.check(kills)
	}
	if lost := h.told(ipam.LeaseLost); len(lost) > 0 {
		t.Errorf("the events are %+v", lost)
	}
}

// keptLease is a lease under watch.
type keptLease struct {
	*lanNetwork
	heard *tap
	addr  netip.Addr
	over  error
}

// watchUntil checks until then that the servers still have the leases.
func watchUntil(all []*keptLease, until time.Time) {
	for {
		for _, k := range all {
			k.watch()
		}
		left := time.Until(until)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, 200*time.Millisecond))
	}
}

func (k *keptLease) watch() {
	k.t.Helper()
	at, err := k.lan.server.until(k.addr)
	left := time.Until(at)
	switch {
	case k.over != nil:
	case err != nil || left <= 0:
		k.over = fmt.Errorf("of %s at %s %s is left (%v)", k.addr, k.lan.server.maker.name, left, err)
		k.t.Error(k.over)
	}
}

// renewed waits until the lease is renewed after daemon and edge are back.
func (k *keptLease) renewed() {
	k.t.Helper()
	within(k.t, 2*time.Second, "renewed by "+k.lan.server.maker.name, func() error {
		k.watch()
		l := k.lease(k.addr)
		if left := time.Until(l.DHCP.Renews); left < 0 || l.DHCP.State != ipam.LANBound {
			return fmt.Errorf("%s is %s, and was to be renewed %s ago", k.addr, l.DHCP.State, -left)
		}
		return nil
	})
}

func (k *keptLease) check(kills int) {
	k.t.Helper()
	if got := k.state(k.addr); got != "held bound" {
		k.t.Errorf("%s is %q", k.addr, got)
	}
	renewals := k.heard.of(func(s said) bool { return s.renewal() && s.client == k.lan.clientOf("web") })
	again := k.heard.of(func(s said) bool { return s.kind == "DISCOVER" || s.kind == "SOLICIT" || s.no })
	if len(renewals) < kills || len(again) > 0 {
		k.t.Errorf("%s was asked for %d times in %d absences, and anew %+v", k.addr, len(renewals), kills, again)
	}
}
