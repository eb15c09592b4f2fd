//go:build edge

package edge_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestDHCPTake: a client gets an address from the server, for the server's lease time, and the server knows its
// name. With another MAC the client gets the same address (LN-15).
func TestDHCPTake(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		offered := l.done(ipam.LANOffer, owner(1))
		if kept := l.server.kept(); strings.Contains(kept, offered.Address.String()) {
			t.Errorf("an offer is kept as a lease: %s", kept)
		}
		got := l.done(ipam.LANTake, owner(1))
		l.checkLease(got)
		id := hex.EncodeToString([]byte("\x00berth:shop/web/1"))
		if l.ipv6 {
			id = uuidOf("berth:shop/web/1")
		}
		l.server.keeps(got.Address.String(), "shop-web-1", id)
		again := owner(1)
		again.MAC = ipam.MAC{2, 0x42, 9, 9, 9, 9}
		if second := l.done(ipam.LANTake, again); second.Address != got.Address {
			t.Errorf("with another MAC it gets %s, and had %s", second.Address, got.Address)
		}
		if other := l.done(ipam.LANTake, owner(2)); other.Address == got.Address {
			t.Errorf("another client gets %s, too", other.Address)
		}
	})
}

// checkLease compares a lease with the server's terms.
func (l *dhcpLAN) checkLease(got ipam.LANLease) {
	l.t.Helper()
	if got.Address.Less(l.terms.from) || l.terms.to.Less(got.Address) {
		l.t.Errorf("the address is %s", got.Address)
	}
	// dnsmasq randomizes T1 and T2: up to a quarter earlier
	t1, t2 := time.Duration(got.T1), time.Duration(got.T2)
	if t1 < 45*time.Second || t1 > 60*time.Second || t2 < 80*time.Second || t2 > 105*time.Second {
		l.t.Errorf("it is to be renewed after %s and %s", t1, t2)
	}
	want := ipam.LANLease{Address: got.Address, Subnet: l.terms.own.Masked(), Gateway: l.terms.own.Addr(),
		Server: l.terms.own.Addr(), Lasts: ipam.Duration(120 * time.Second), T1: got.T1, T2: got.T2}
	if l.ipv6 {
		want.Subnet, want.Gateway = netip.Prefix{}, netip.Addr{}
		want.Server, want.ServerID = got.Server, got.ServerID
		if !got.Server.IsLinkLocalUnicast() || len(got.ServerID) < 8 {
			l.t.Errorf("the server is %s, %q", got.Server, got.ServerID)
		}
	}
	if got != want {
		l.t.Errorf("the lease is %+v\nand not      %+v", got, want)
	}
}

// TestDHCPConfirm: the server confirms an address for its client, even after a restart, with or without its
// leases.
func TestDHCPConfirm(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1), about(addr(l.terms.from.Next().String())))
		l.checkLease(l.done(ipam.LANConfirm, owner(1), about(got.Address)))
		l.server.stop()
		l.fails(ipam.LANSilent, ipam.LANConfirm, owner(1), about(got.Address),
			func(q *ipam.LANAsk) { q.Within = ipam.Duration(time.Second) })
		l.server.start()
		l.checkLease(l.done(ipam.LANConfirm, owner(1), about(got.Address)))
		l.server.stop()
		l.server.forget()
		l.server.start()
		if now := l.done(ipam.LANConfirm, owner(1), about(got.Address)); now.Address != got.Address {
			t.Errorf("confirmed is %s, and not %s", now.Address, got.Address)
		}
		l.server.keeps(got.Address.String())
	})
}

// TestDHCPDecline: the server does not give an address again that another machine uses.
func TestDHCPDecline(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		l.done(ipam.LANDecline, owner(1), of(got))
		within(t, 2*time.Second, "another address is given", func() error {
			if next := l.done(ipam.LANTake, owner(1)); next.Address == got.Address {
				return fmt.Errorf("%s is given again", got.Address)
			}
			return nil
		})
	})
}

// TestDHCPOutside: an offer outside the subnet is refused, and the error names both. If another server offers an
// address inside, the client takes that.
func TestDHCPOutside(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		elsewhere := l.elsewhere()
		inside := func(q *ipam.LANAsk) { q.Subnet = elsewhere.own.Masked() }
		a := l.fails(ipam.LANOutside, ipam.LANTake, owner(1), inside)
		for _, want := range []string{lanParent, a.Lease.Address.String(), elsewhere.own.Masked().String()} {
			if !strings.Contains(a.Error, want) {
				t.Errorf("it is refused without %s: %s", want, a.Error)
			}
		}
		if kept := l.server.kept(); strings.Contains(kept, a.Lease.Address.String()) {
			t.Errorf("the server keeps a lease of it: %s", kept)
		}
		l.newSecond(elsewhere)
		for n := range 10 {
			if got := l.done(ipam.LANTake, owner(10+n), inside); !elsewhere.own.Contains(got.Address) {
				t.Errorf("%s is taken", got.Address)
			}
		}
	})
}

// elsewhere are the terms of a server that gives addresses of another subnet.
func (l *dhcpLAN) elsewhere() dhcpTerms {
	terms := l.terms
	terms.own, terms.from, terms.to = netip.MustParsePrefix("10.66.0.1/24"), addr("10.66.0.100"), addr("10.66.0.199")
	if l.ipv6 {
		terms.own, terms.from, terms.to = netip.MustParsePrefix("fd66::1/64"), addr("fd66::100"), addr("fd66::1ff")
	}
	return terms
}

// newSecond puts a second server on the LAN, and waits until it answers.
func (l *dhcpLAN) newSecond(terms dhcpTerms) {
	l.t.Helper()
	l.newServer(l.server.maker, "dh2", terms)
	within(l.t, 5*time.Second, "the second server answers", func() error {
		a := l.ask(ipam.LANOffer, owner(999), func(q *ipam.LANAsk) { q.Subnet = terms.own.Masked() })
		if a.Failure != "" {
			return errors.New(a.Error)
		}
		return nil
	})
}

// TestDHCPParent: the error names an unusable interface at once. An interface that comes back, with another MAC or
// as a new device, works again.
func TestDHCPParent(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		again := func(what string) {
			t.Helper()
			if now := l.done(ipam.LANTake, owner(1)); now.Address != got.Address {
				t.Errorf("%s: it gets %s, and had %s", what, now.Address, got.Address)
			}
		}
		broken := func(want string) {
			t.Helper()
			a := l.fails(ipam.LANParent, ipam.LANTake, owner(1))
			if !strings.Contains(a.Error, lanParent) || !strings.Contains(a.Error, want) {
				t.Errorf("answered %s", a.Error)
			}
		}
		run(t, "ip link set eth0 down")
		broken("is down")
		run(t, "ip link set eth0 up")
		again("up again")
		run(t, "ip -n sw link set p-eth0 down")
		broken("no carrier")
		run(t, "ip -n sw link set p-eth0 up")
		again("plugged in again")
		run(t, "ip link set eth0 down")
		run(t, "ip link set eth0 address 02:00:00:00:77:01")
		run(t, "ip link set eth0 up")
		again("with another MAC")
		run(t, "ip link del eth0")
		broken("does not exist")
		l.plug(lanParent)
		run(t, "ip -n sw link set p-eth0 master lan")
		again("recreated")
	})
}
