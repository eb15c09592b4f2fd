package lan_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store/mem"
)

// waitAway lets time pass while the store is away, with a round in each second. It returns how often the server
// was asked for an address.
func (h *harness) waitAway(d time.Duration, addr netip.Addr) (asks int) {
	h.t.Helper()
	h.server.Asked()
	for end := h.clock.Time.Add(d); h.clock.Time.Before(end); {
		h.clock.Time = h.clock.Time.Add(time.Second)
		if err := h.keeper.Round(context.Background()); err != nil && !errors.Is(err, ipam.ErrAway) {
			h.t.Fatal(err)
		}
		if h.server.Has(addr) == "" {
			h.t.Fatalf("%s before the end of the absence %s is free at the server", end.Sub(h.clock.Time), addr)
		}
	}
	for _, ask := range h.server.Asked() {
		if ask.Address == addr {
			asks++
		}
	}
	return asks
}

// expires returns when an address's lease ends by the record.
func (h *harness) expires(addr netip.Addr) time.Time {
	h.t.Helper()
	all := ipamtest.ListLeases(h.t, h.s, ipam.LeaseFilter{Address: addr})
	if len(all) != 1 || all[0].DHCP == nil {
		h.t.Fatalf("the records of %s are %+v", addr, all)
	}
	return all[0].DHCP.Expires
}

// TestLN15StoreAway: while the store is away, a lease is renewed, and no more often than otherwise, also while
// another lease expires. The record is right a second after the store is back.
func TestLN15StoreAway(t *testing.T) {
	for _, another := range []bool{false, true} {
		h := newHarness(t)
		web := h.take("web", 1)
		if another {
			h.take("old", 2)
			h.back(web.Next()) // it expires in two minutes
		}
		h.wait(50 * time.Second)
		h.store.(*mem.Store).Cut(errors.New("its quorum is lost"))
		if asks := h.waitAway(10*time.Minute, web); asks > 11 {
			t.Errorf("a lease of two minutes was asked for %d times in ten minutes", asks)
		}
		h.store.(*mem.Store).Heal()
		h.wait(time.Second)
		h.is(web, "held bound")
		if got, want := h.expires(web), h.server.Until(web); got.Before(want.Add(-2*time.Second)) || got.After(want) {
			t.Errorf("it lasts until %s, and by its record until %s", want, got)
		}
		if lost := h.told(ipam.LeaseLost); len(lost) > 0 {
			t.Errorf("it was lost: %v", lost)
		}
		if another {
			h.is(web.Next(), "")
		}
		h.wait(5 * time.Minute)
		h.is(web, "held bound")
	}
}

// TestLN15StoreAwayServerSilent: the server's answer while the store is away counts like a written one. Berth asks
// for the address until the lease expires. Then the lease is lost.
func TestLN15StoreAwayServerSilent(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.wait(50 * time.Second)
	h.store.(*mem.Store).Cut(errors.New("its quorum is lost"))
	h.waitAway(15*time.Second, web) // it was renewed
	h.server.Fail(ipam.LANSilent)
	if asks := h.waitAway(100*time.Second, web); asks == 0 {
		t.Error("the server was not asked again")
	}
	h.store.(*mem.Store).Heal()
	h.wait(time.Second)
	h.is(web, "held bound")
	h.wait(20 * time.Second)
	h.is(web, "held lost")
	h.server.Fail("")
	h.wait(2 * time.Minute)
	h.is(web, "held bound")
}

// TestLN15StoreAwayRefused: a lease that the server refused while the store was away is lost after that.
func TestLN15StoreAwayRefused(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.wait(50 * time.Second)
	h.store.(*mem.Store).Cut(errors.New("its quorum is lost"))
	h.waitAway(15*time.Second, web)
	h.server.Forget(true)
	h.server.Give(web, "a printer")
	h.waitAway(time.Minute, web)
	h.store.(*mem.Store).Heal()
	h.wait(time.Second)
	h.is(web, "held lost")
}
