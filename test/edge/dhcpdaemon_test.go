//go:build edge

package edge_test

import (
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/test/lab"
)

var recreated = flag.Int("recreated", 10, "how often a container is recreated on a LAN with a DHCP server")

// clientOf is the server's name for an owner: its name, or for DHCPv6 its DUID in hexadecimal digits.
func (l *dhcpLAN) clientOf(owner string) string {
	if l.ipv6 {
		return uuidOf("berth:" + owner)
	}
	return "berth:" + owner
}

// TestLN15Recorded: Berth's record of a lease equals the server's: client, host name and end. When its owner ends,
// Berth releases it.
func TestLN15Recorded(t *testing.T) {
	eachHost(t, nil, func(t *testing.T, n *lanNetwork) {
		web := n.take("web", 1)
		l := n.lease(web)
		if l == nil || l.State != "held" || l.DHCP == nil || l.DHCP.State != ipam.LANBound || l.DHCP.Hostname != "web" ||
			l.DHCP.ClientID != "berth:web" || l.DHCP.MAC != macNo(1) {
			t.Fatalf("the lease is %+v, %+v", l, l.DHCP)
		}
		client := n.lan.clientOf("web")
		if !n.lan.ipv6 {
			client = hex.EncodeToString([]byte("\x00" + client))
		}
		n.lan.server.keeps(web.String(), "web", client)
		until, err := n.lan.server.until(web)
		if off := until.Sub(l.DHCP.Expires).Abs(); err != nil || off > 2*time.Second {
			t.Errorf("it ends at %s, and at %s by the server (%v)", l.DHCP.Expires, until, err)
		}
		n.berth("reservation", "add", l.Network, "--owner", "web")
		n.end(web)
		if err := n.lan.server.has(web); err != nil {
			t.Errorf("its container has ended, and its owner has not: %v", err)
		}
		n.berth("reservation", "rm", "--owner", "web", "--everywhere")
		within(t, 5*time.Second, "it is given back", func() error {
			if n.lan.server.has(web) == nil || n.state(web) != "" {
				return fmt.Errorf("it is %q, and the server has it", n.state(web))
			}
			return nil
		})
	})
}

// TestLN15Recreated: a container that is recreated, each time with another MAC, keeps its address, even if other
// containers start in between.
func TestLN15Recreated(t *testing.T) {
	eachHost(t, nil, func(t *testing.T, n *lanNetwork) {
		first := n.take("web", 0)
		for i := range *recreated {
			n.end(first)
			n.take(fmt.Sprintf("other-%d", i), 1000+i)
			got := n.take("web", i+1)
			if got != first {
				t.Errorf("recreated it has %s, and had %s", got, first)
				first = got
			}
			if l := n.lease(got); l.MAC != macNo(i+1) || l.DHCP.State != ipam.LANBound {
				t.Errorf("it is %+v, %+v", l, l.DHCP)
			}
		}
	})
}

// TestLN15NAK: the server has given the address to another machine and refuses it: the lease is lost, with an
// event. The container keeps running with the address. When started again it gets another one.
func TestLN15NAK(t *testing.T) {
	eachHost(t, nil, func(t *testing.T, n *lanNetwork) {
		heard := newTap(t, n.lan.server.ns)
		web := n.robbed((*dhcpServer).forgetOne)
		within(t, time.Second, "the refusal on the wire", func() error {
			if no := heard.of(func(s said) bool { return s.no }); len(no) == 0 {
				return errors.New("nothing was refused")
			}
			return nil
		})
		lost := n.told(ipam.LeaseLost)
		if len(lost) != 1 || lost[0].Address != web {
			t.Fatalf("the events are %+v", lost)
		}
	})
}

// TestLN15ServerEmptied: the same with a server that has lost all leases and its DHCPv6 identity, and ignores
// unknown addresses. No two machines have one address.
func TestLN15ServerEmptied(t *testing.T) {
	eachHost(t, func(terms *dhcpTerms) { terms.shy = true }, func(t *testing.T, n *lanNetwork) {
		n.robbed(func(s *dhcpServer, _ netip.Addr) { s.forget() })
		if lost := n.told(ipam.LeaseLost); len(lost) != 1 {
			t.Errorf("the events are %+v", lost)
		}
	})
}

// robbed takes an address from a container while its host is cut off from the LAN: the server forgets the lease
// and gives the address to another machine. robbed returns the address once the lease is lost. The machine still
// has it.
func (n *lanNetwork) robbed(forget func(*dhcpServer, netip.Addr)) netip.Addr {
	t, l := n.t, n.lan
	t.Helper()
	web := n.take("web", 1)
	n.end(web)
	n.cut(lanParent)
	if got := n.take("web", 2); got != web {
		t.Fatalf("with the LAN away it has %s, and had %s", got, web)
	}
	n.stands(time.Second, "held unconfirmed", web)
	if l := n.lease(web); l.DHCP.MAC != macNo(2) {
		t.Errorf("its MAC is %s, and its lease is asked for by %s", macNo(2), l.DHCP.MAC)
	}
	l.server.stop()
	forget(l.server, web)
	l.server.start()
	if got := l.done(ipam.LANTake, owner(1), about(web)); got.Address != web {
		t.Fatalf("the other machine has %s, and wished for %s", got.Address, web)
	}
	n.connect(lanParent, l.bridge)
	n.stands(8*time.Second, "held lost", web)
	n.end(web)
	if got := n.take("web", 3); got == web {
		t.Errorf("started again it has %s, which is another machine's", got)
	}
	l.server.keeps(web.String(), "shop-web-1")
	if now := l.done(ipam.LANConfirm, owner(1), about(web)); now.Address != web {
		t.Errorf("the other machine has %s now, and had %s", now.Address, web)
	}
	return web
}

// TestLN15Silent: on a LAN with a silent server a start fails with the interface and the number of tries. Twenty
// starts on other networks do not wait for it.
func TestLN15Silent(t *testing.T) {
	l := newLAN(t, false)
	h := l.newHost("h1")
	others := []*lanNetwork{h.networkOf(l, "10.78.0.0/24", nil)} // Berth's own addresses
	for i, m := range makers {
		others = append(others, l.beside(h, 2*i, m, false, 120), l.beside(h, 2*i+1, m, true, 120))
	}
	six := &dhcpLAN{t: t, bridge: l.bridge, ipv6: true, terms: lanTerms[true]}
	silent := map[string]*lanNetwork{
		"DISCOVER": h.networkOf(l, "10.77.0.0/24", map[string]string{"dhcp": silentParent, "gateway": "10.77.0.1"}),
		"SOLICIT":  h.networkOf(six, "fd77::/64", map[string]string{"dhcp": silentParent}),
	}
	var refused sync.WaitGroup
	var over atomic.Bool
	for said, on := range silent {
		refused.Go(func() {
			_, err := on.ask("web", 1)
			over.Store(true)
			if err == nil || !strings.Contains(err.Error(), silentParent) ||
				!strings.Contains(err.Error(), said+" was sent 4 times") {
				t.Errorf("it is refused with %v", err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	startMany(t, 20, others...)
	if over.Load() {
		t.Error("the others were done only when a silent server was given up")
	}
	refused.Wait()
}

// startMany starts containers, many at a time, on each of the networks in turn.
func startMany(t *testing.T, many int, networks ...*lanNetwork) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, many)
	for i := range many {
		wg.Go(func() { _, errs[i] = networks[i%len(networks)].ask(fmt.Sprintf("other-%d", i), 10+i) })
	}
	wg.Wait()
	lab.Check(t, errs...)
}

// TestLN15Outside: Berth refuses an offer outside the subnet, and neither side records it. The error names both.
func TestLN15Outside(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		elsewhere := l.elsewhere()
		n := l.newHost("h1").networkOf(l, elsewhere.own.Masked().String(), map[string]string{"dhcp": lanParent,
			"gateway": elsewhere.own.Addr().String()})
		heard := newTap(t, l.server.ns)
		got, err := n.ask("web", 1)
		if err == nil {
			t.Fatalf("%s is given", got)
		}
		offers := heard.of(func(s said) bool { return s.kind == "OFFER" || s.kind == "ADVERTISE" })
		if len(offers) == 0 {
			t.Fatal("nothing was offered")
		}
		for _, want := range []string{offers[0].address.String(), elsewhere.own.Masked().String(), lanParent} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("it is refused without %s: %v", want, err)
			}
		}
		if taken := heard.of(said.renewal); len(taken) > 0 {
			t.Errorf("it was asked for: %+v", taken)
		}
		if _, err := l.server.until(offers[0].address); err == nil {
			t.Errorf("the server keeps a lease of %s", offers[0].address)
		}
	})
}

// TestLN15HostRestarted: after a power cut, while the server is away, containers get their old addresses at once.
// The server confirms them when it is back.
func TestLN15HostRestarted(t *testing.T) {
	eachHost(t, nil, func(t *testing.T, n *lanNetwork) {
		all := make([]netip.Addr, 20)
		for i := range all {
			all[i] = n.take(fmt.Sprintf("web-%d", i), i)
		}
		n.crash()
		n.lan.server.stop()
		n.restart()
		var wg sync.WaitGroup
		for i, had := range all {
			n.end(had) // the engine releases leftovers at its start
			wg.Go(func() {
				got, err := n.ask(fmt.Sprintf("web-%d", i), 100+i)
				if err != nil || got != had {
					t.Errorf("it has %s, and had %s (%v)", got, had, err)
				}
			})
		}
		wg.Wait()
		n.stands(time.Second, "held unconfirmed", all...)
		n.lan.server.start()
		n.stands(5*time.Second, "held bound", all...)
		if told := n.told(ipam.LeaseConfirmed); len(told) != len(all) {
			t.Errorf("%d events of %d", len(told), len(all))
		}
	})
}

// TestLN15Reserved: a container gets the address that the server has reserved for its client, or with dhcp_id=mac
// for its MAC, even at its first start.
func TestLN15Reserved(t *testing.T) {
	eachServer(t, func(terms *dhcpTerms) {
		terms.byMAC, terms.byID = [2]string{macNo(7).String(), "192.168.7.20"}, [2]string{"berth:web", "192.168.7.21"}
		if terms.ipv6 {
			terms.byMAC[1], terms.byID = "fd07::20", [2]string{uuidOf("berth:web"), "fd07::21"}
		}
	}, func(t *testing.T, l *dhcpLAN) {
		if got := l.newHost("h1").network(l, lanParent).take("web", 1); got != addr(l.terms.byID[1]) {
			t.Errorf("by its client it has %s, and not %s", got, l.terms.byID[1])
		}
		h := l.newHostOnly("h2", "--ask-mac")
		h.restart()
		cidr := l.terms.own.Masked().String()
		n := h.networkOf(l, cidr, map[string]string{"dhcp": lanParent, "dhcp_id": "mac",
			"gateway": l.terms.own.Addr().String()})
		for _, name := range []string{"db", "anything"} {
			got := n.take(name, 7)
			if got != addr(l.terms.byMAC[1]) {
				t.Errorf("by its MAC it has %s, and not %s", got, l.terms.byMAC[1])
			}
			n.end(got)
		}
		if got := n.take("db", 8); got == addr(l.terms.byMAC[1]) {
			t.Errorf("with another MAC it has %s, too", got)
		}
	})
}
