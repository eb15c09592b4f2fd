//go:build edge

package edge_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestDHCPTake: a client gets an address of the server's, for as long as that says, and the server knows its name.
// With another MAC it gets the same again (LN-15).
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

// checkLease holds a lease to the server's terms.
func (l *dhcpLAN) checkLease(got ipam.LANLease) {
	l.t.Helper()
	if got.Address.Less(l.terms.from) || l.terms.to.Less(got.Address) {
		l.t.Errorf("the address is %s", got.Address)
	}
	// dnsmasq draws both times, up to a quarter of them earlier
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

// TestDHCPConfirm: an address is confirmed for its client, also by a server that was started again, with its leases
// and without.
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

// TestDHCPRelease: what is given back is free for others.
func TestDHCPRelease(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		if other := l.done(ipam.LANTake, owner(2), about(got.Address)); other.Address == got.Address {
			t.Fatalf("%s is given to two", got.Address)
		}
		l.done(ipam.LANRelease, owner(1), of(got))
		within(t, 2*time.Second, "the address is free", func() error {
			if other := l.done(ipam.LANTake, owner(3), about(got.Address)); other.Address != got.Address {
				return fmt.Errorf("another one gets %s", other.Address)
			}
			return nil
		})
	})
}

// TestDHCPDecline: an address that somebody else has is not given again.
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

// TestDHCPRefused: the server says no to an address of somebody else.
func TestDHCPRefused(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		a := l.fails(ipam.LANRefused, ipam.LANConfirm, owner(2), of(got))
		for _, want := range []string{lanParent, got.Address.String(), owner(2).ID} {
			if !strings.Contains(a.Error, want) {
				t.Errorf("it is refused without %s: %s", want, a.Error)
			}
		}
		t.Log(a.Error)
		l.checkLease(l.done(ipam.LANConfirm, owner(1), of(got)))
	})
}

// TestDHCPOutside: what is offered outside the subnet is not taken, and both are told. Where another server offers an
// address inside, that one is taken.
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

// TestDHCPStranger: a second server, which knows nothing of the LAN's own subnet and says no to its addresses, takes
// nothing from those who have them.
func TestDHCPStranger(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		l.newSecond(l.elsewhere())
		for range 10 {
			if now := l.done(ipam.LANConfirm, owner(1), of(got)); now.Address != got.Address {
				t.Errorf("confirmed is %s, and not %s", now.Address, got.Address)
			}
			l.done(ipam.LANConfirm, owner(1), about(got.Address))
		}
	})
}

// TestDHCPMacvlan: a lease is renewed by the parent while the container has its address on a macvlan of it, as once it
// runs.
func TestDHCPMacvlan(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		got := l.done(ipam.LANTake, owner(1))
		bits := l.terms.own.Bits()
		script(t, fmt.Sprintf(`
			ip netns add ct
			ip link add mv0 link eth0 address %s type macvlan mode bridge
			ip link set mv0 netns ct
			ip netns exec ct sysctl -qw net.ipv6.conf.default.accept_dad=0
			ip -n ct link set mv0 up
			ip -n ct addr add %s/%d dev mv0`, owner(1).MAC, got.Address, bits))
		t.Cleanup(func() { run(t, "ip netns del ct") })
		l.checkLease(l.done(ipam.LANConfirm, owner(1), of(got)))
		if again := l.done(ipam.LANTake, owner(1), about(got.Address)); again.Address != got.Address {
			t.Errorf("it gets %s, and has %s", again.Address, got.Address)
		}
	})
}

// TestDHCPSilent: where nobody answers, interface and tries are told within the time, and meanwhile clients of another
// interface get what they ask for.
func TestDHCPSilent(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		var wg sync.WaitGroup
		wg.Go(func() {
			begun := time.Now()
			a := l.ask(ipam.LANTake, owner(1), func(q *ipam.LANAsk) {
				q.Parent, q.Within = silentParent, ipam.Duration(3*time.Second)
			})
			if a.Failure != ipam.LANSilent || !strings.Contains(a.Error, silentParent) ||
				!strings.Contains(a.Error, "said 4 times") {
				t.Errorf("answered %+v", a)
			}
			if took := time.Since(begun); took < 2*time.Second {
				t.Errorf("nobody is waited for but for %s", took)
			}
		})
		for n := range 20 {
			wg.Go(func() { l.checkAnswer(l.ask(ipam.LANTake, owner(10+n))) })
		}
		wg.Wait()
	})
}

func (l *dhcpLAN) checkAnswer(a ipam.LANAnswer) {
	if a.Failure != "" {
		l.t.Errorf("%s: %s", a.Failure, a.Error)
	}
}

// TestDHCPMany: a hundred clients at a time get an address each.
func TestDHCPMany(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		has := map[netip.Addr]int{}
		for n := range 100 {
			wg.Go(func() {
				a := l.ask(ipam.LANTake, owner(n))
				if l.checkAnswer(a); a.Failure != "" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if other, twice := has[a.Lease.Address]; twice {
					t.Errorf("%s is given to %d and %d", a.Lease.Address, other, n)
				}
				has[a.Lease.Address] = n
			})
		}
		wg.Wait()
	})
}

// TestDHCPReserved: a server that has reserved an address by MAC or by client gives that one.
func TestDHCPReserved(t *testing.T) {
	byMAC, byID := owner(1), owner(2)
	byMAC.ID = ""
	eachServer(t, func(terms *dhcpTerms) {
		terms.byMAC = [2]string{byMAC.MAC.String(), "192.168.7.20"}
		terms.byID = [2]string{byID.ID, "192.168.7.21"}
		if terms.ipv6 {
			// the first 16 bytes of the SHA-256 of berth:shop/web/2, as a UUID of version 8
			terms.byMAC[1], terms.byID = "fd07::20", [2]string{uuidOf(byID.ID), "fd07::21"}
		}
	}, func(t *testing.T, l *dhcpLAN) {
		for _, c := range []struct {
			client ipam.LANClient
			want   string
		}{{byMAC, l.terms.byMAC[1]}, {byID, l.terms.byID[1]}} {
			if got := l.done(ipam.LANTake, c.client); got.Address != addr(c.want) {
				t.Errorf("%+v gets %s, and not %s", c.client, got.Address, c.want)
			}
		}
	})
}

// TestDHCPParent: an interface that cannot be spoken on is named at once. One that goes and comes back, under another
// MAC or as another one, is spoken on as if nothing had been.
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
			begun := time.Now()
			a := l.fails(ipam.LANParent, ipam.LANTake, owner(1))
			if !strings.Contains(a.Error, lanParent) || !strings.Contains(a.Error, want) {
				t.Errorf("answered %s", a.Error)
			}
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("that took %s", took)
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
		broken("is not there")
		l.plug(lanParent)
		run(t, "ip -n sw link set p-eth0 master lan")
		again("recreated")
	})
}

// TestDHCPNotEthernet: what has no Ethernet is no LAN.
func TestDHCPNotEthernet(t *testing.T) {
	l := newLAN(t, false)
	lo := func(q *ipam.LANAsk) { q.Parent = "lo" }
	if a := l.fails(ipam.LANParent, ipam.LANOffer, owner(1), lo); !strings.Contains(a.Error, "no Ethernet") {
		t.Error(a.Error)
	}
}

// TestDHCPEnds: a question whose asker goes ends at once.
func TestDHCPEnds(t *testing.T) {
	l := newLAN(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	a := l.client.Do(ctx, ipam.LANAsk{Verb: ipam.LANTake, Parent: silentParent, Client: owner(1),
		Within: ipam.Duration(time.Hour)})
	if a.Failure != ipam.LANSilent {
		t.Errorf("answered %+v", a)
	}
}
