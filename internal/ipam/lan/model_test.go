package lan_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"pgregory.net/rapid"
)

// life is an owner's life on a LAN: the container, the server and the daemon come and go in any order.
type life struct {
	*harness
	mac     int
	holds   netip.Addr // zero: the container is away
	had     netip.Addr // its last address
	until   time.Time  // end of its lease by the server's last word; zero: it has none
	down    bool       // the server is down
	known   bool       // an owner keeps the address
	ended   bool       // its owner ended while it was away: the address goes back to the server
	printer int
}

// TestLN15Life: whatever happens, an address has one holder here. A container that comes back while its lease
// lasts has its address. The server has confirmed each bound lease. An expired address that somebody holds is
// reported as lost.
func TestLN15Life(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{harness: newHarness(t)}
		t.Repeat(map[string]func(*rapid.T){
			"start": l.startContainer, "stop": l.stopContainer, "start2": l.startContainer,
			"server": l.turnServer, "stranger": l.stranger, "kill": func(*rapid.T) { l.start("h1") },
			"wait": l.passes, "absent": l.absent, "reserve": l.reserve, "end": l.end,
			"": l.check,
		})
	})
}

func (l *life) startContainer(t *rapid.T) {
	if l.holds.IsValid() {
		t.Skip("it runs")
	}
	l.mac++
	p, err := l.s.RequestAddress(context.Background(), ipam.AddressRequest{Pool: l.pool, Name: "web",
		MAC: ipamtest.MAC(l.mac)})
	lasts := l.until.After(l.clock.Time) && (l.down || l.server.Has(l.had) != "printer")
	switch {
	case err != nil && lasts:
		t.Fatalf("its lease of %s lasts, and it was refused: %v", l.had, err)
	case err != nil && !l.down:
		t.Fatalf("the server is there, and it was refused: %v", err)
	case err != nil:
		return
	case lasts && p.Addr() != l.had:
		t.Fatalf("its lease of %s lasts, and it has %s", l.had, p.Addr())
	case l.down && !lasts:
		t.Fatalf("it has %s of nobody", p.Addr())
	}
	l.holds, l.had, l.ended = p.Addr(), p.Addr(), false
	if !l.down {
		l.until = l.clock.Time.Add(l.server.Lasts)
	}
}

func (l *life) stopContainer(t *rapid.T) {
	if !l.holds.IsValid() {
		t.Skip("it does not run")
	}
	if state, _ := l.state(l.holds); state != "held bound" && state != "held unconfirmed" {
		l.until = time.Time{}
	}
	l.back(l.holds)
	l.holds = netip.Addr{}
}

func (l *life) turnServer(*rapid.T) {
	if l.down = !l.down; l.down {
		l.server.Fail(ipam.LANSilent)
	} else {
		l.server.Fail("")
	}
}

// stranger gives the address to another machine. The server has forgotten whose it is.
func (l *life) stranger(t *rapid.T) {
	if !l.had.IsValid() || l.printer > 3 {
		t.Skip("there is nothing to be taken")
	}
	l.printer++
	l.server.Forget(true)
	l.server.Give(l.had, "printer")
}

func (l *life) passes(t *rapid.T) {
	l.wait(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
}

// absent lets time pass while no daemon runs.
func (l *life) absent(t *rapid.T) {
	l.clock.Time = l.clock.Time.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
	l.start("h1")
	l.wait(5 * time.Second)
}

func (l *life) reserve(*rapid.T) {
	l.edit(&ipam.AddReservation{Network: l.net, Owner: "web"})
	l.known = true
}

func (l *life) end(*rapid.T) {
	l.edit(&ipam.ReleaseOwner{Owner: "web"})
	if l.known && !l.holds.IsValid() {
		l.ended, l.until = true, time.Time{}
	}
	l.known = false
}

// check compares the records with the server and with what the container has.
func (l *life) check(t *rapid.T) {
	if problems, err := l.s.Check(context.Background()); err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	held, kept := 0, false
	for _, one := range ipamtest.ListLeases(t, l.s, ipam.LeaseFilter{Remembered: true}) {
		if one.Kind == ipam.Gateway {
			continue
		}
		kept = kept || one.Address == l.had
		if one.State == "held" {
			held++
			if one.Address != l.holds || one.DHCP == nil {
				t.Fatalf("%+v is held, and the container has %s", one, l.holds)
			}
		}
		if one.Address == l.had && one.DHCP != nil && one.DHCP.State == ipam.LANBound {
			l.until = one.DHCP.Expires // a renewal
			if l.ended {
				l.until = time.Time{}
			}
		} else if one.Address == l.had {
			if one.DHCP == nil || one.DHCP.State != ipam.LANUnconfirmed {
				l.until = time.Time{}
			}
		}
		if d := one.DHCP; d != nil && d.State == ipam.LANBound && one.State == "held" && !l.down &&
			d.Expires.Add(2*time.Second).Before(l.clock.Time) {
			t.Fatalf("%s ended at %s, now is %s, and it is held as bound", one.Address, d.Expires, l.clock.Time)
		}
	}
	if !kept {
		if l.until.After(l.clock.Time) && l.server.Has(l.had) != "printer" {
			t.Fatalf("the lease of %s lasts, and is forgotten", l.had)
		}
		l.until = time.Time{} // the keeper has heard whose it is
	}
	if (held == 1) != l.holds.IsValid() || held > 1 {
		t.Fatalf("%d are held, and the container has %s", held, l.holds)
	}
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
