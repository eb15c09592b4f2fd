package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// A host on its way out claims nothing, and gives back what nobody has.
func TestHeadroomOfALeavingHost(t *testing.T) {
	common, a, pool := newLan(t, 2)
	b := newSharingHost(t, common, "b")
	b.open()
	theirs := b.pool()
	b.mustLook()
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	b.edit(&ipam.DrainHost{Name: "a"})
	a.mustLook()
	if got := inStore(t, common); len(got) != 3 || len(a.free(pool)) != 0 {
		t.Fatal(got)
	}
	if a.State().Host != ipam.HostDraining {
		t.Fatal(a.State())
	}
	a.handle.Cut(errCut)
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	a.give(pool, addr)
	a.handle.Heal()
	a.mustLook()
	isFree(t, common, addr)
	b.edit(&ipam.DrainHost{Name: "a", Undo: true})
	a.mustLook()
	a.handle.Cut(errCut)
	used := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3)})
	a.handle.Heal()

	a.handle.Announce("a", nil)
	b.edit(&ipam.RemoveHost{Name: "a"})
	a.mustLook() // it gives everything back, and says so
	for _, l := range leasesIn(t, common) {
		if l.Host != "b" || l.Attachment != theirs {
			t.Fatalf("left: %+v (%s was in use)", l, used)
		}
	}
	if err := a.look(); !errors.Is(err, ipam.ErrHost) {
		t.Fatal(err)
	}
	if _, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(3)}); !errors.Is(err, ipam.ErrHost) {
		t.Fatal(err)
	}
	a.handle.Cut(errCut)
	a.refusedAway2(ipam.AddressRequest{Pool: pool, MAC: testMAC(4)})
	if len(a.headroom[pool].addrs) != 0 {
		t.Fatalf("%+v", a.headroom[pool])
	}
}

// refusedAway2 asks for an address that is given in no case.
func (h *sharingHost) refusedAway2(req ipam.AddressRequest) {
	h.t.Helper()
	if addr, err := h.ask(req); err == nil {
		h.t.Fatal("given:", addr)
	}
}

// A host that was taken out while it was away has no headroom any more as soon as it hears of it; let in again it
// claims anew.
func TestHeadroomOfARemovedHost(t *testing.T) {
	for _, restart := range []bool{false, true} {
		common, a, pool := newLan(t, 2)
		b := newSharingHost(t, common, "b")
		b.open()
		a.handle.Cut(errCut)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.give(pool, addr)
		b.edit(&ipam.RemoveHost{Name: "a", Off: true})
		if got := inStore(t, common); len(got) != 0 {
			t.Fatal(got)
		}
		if restart {
			a.boot()
		}
		a.handle.Heal()
		if err := a.Run(context.Background()); !errors.Is(err, ipam.ErrHost) {
			t.Fatal(err)
		}
		if st := a.State(); !errors.Is(st.Err, ipam.ErrHost) {
			t.Fatalf("%+v", st)
		}
		if st := a.headroom[pool]; st != nil && len(st.addrs) > 0 {
			t.Fatalf("%+v", st)
		}
		a.refusedAway2(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		if restart {
			if _, err := a.service(); !errors.Is(err, ipam.ErrHost) {
				t.Fatal(err)
			}
		}
		b.edit(&ipam.AdmitHost{Name: "a"})
		a.mustLook()
		again := a.pool()
		a.mustLook()
		if len(a.free(again)) != 2 || a.headroom[pool] != nil {
			t.Fatal(a.free(again))
		}
	}
}

// A swarm's manager asks for all it has again through other attachments: no headroom is claimed for it.
func TestHeadroomOfASwarm(t *testing.T) {
	common, a, _ := newLan(t, 2)
	grant, err := a.RequestPool(context.Background(),
		ipam.PoolRequest{Network: "lan", Space: ipam.GlobalSpace, CIDR: lanCIDR, Swarm: true})
	if err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	if got := inStore(t, common); len(got) != 2 || a.headroom[grant.ID] != nil {
		t.Fatal(got)
	}
}

// A host whose own store is put back to what it was may not give out what it has written there.
func TestDropHeadroom(t *testing.T) {
	common, a, pool := newLan(t, 2)
	a.handle.Cut(errCut)
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	if err := DropHeadroom(context.Background(), a.own); err != nil {
		t.Fatal(err)
	}
	a.boot()
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	a.handle.Heal()
	a.mustLook()
	if got := inStore(t, common); len(got) != 2 || len(a.free(pool)) != 2 {
		t.Fatal(got)
	}
}

// The witness sees headroom as what it is: it counts for nobody, gets no name, and is given back by its host alone.
func TestHeadroomAndTheWitness(t *testing.T) {
	common, a, pool := newLan(t, 2)
	all, err := a.svc.Attachments(context.Background())
	if err != nil || len(all) != 1 || all[0].Live != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, addr := range a.free(pool) {
		ref := ipam.LeaseRef{Space: ipam.GlobalSpace, Address: addr, ID: heldAt(t, common, addr).ID}
		if done, err := a.svc.ReleaseLease(context.Background(), ref); done || err != nil {
			t.Fatal(done, err)
		}
		if err := a.svc.NameLeases(context.Background(), []ipam.LeaseName{{LeaseRef: ref, Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		if err := a.svc.ReleaseAddress(context.Background(), pool, addr); err != nil {
			t.Fatal(err)
		}
		if l := isLease(t, common, addr, ipam.Headroom, ipam.MAC{}); l.Name != "" {
			t.Fatalf("%+v", l)
		}
	}
	a.free(pool)
	var shown []string
	for l, err := range a.svc.Leases(context.Background(), ipam.LeaseFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, fmt.Sprint(l.Kind, " ", l.State, " ", l.Host))
	}
	if !slices.Contains(shown, "headroom held a") {
		t.Fatal(shown)
	}
}

// Claims larger than one transaction, and addresses of IPv6.
func TestLargeHeadroom(t *testing.T) {
	common := mem.New()
	a := newSharingHost(t, common, "a")
	a.open()
	cidr := netip.MustParsePrefix("fd00:77::/64")
	a.edit(&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Headroom: 100,
		Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}})
	grant, err := a.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	if got := a.free(grant.ID); len(got) != 100 {
		t.Fatal(len(got))
	}
	a.handle.Cut(errCut)
	for i := range 100 {
		if _, err := a.RequestAddress(context.Background(),
			ipam.AddressRequest{Pool: grant.ID, MAC: testMAC(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	a.boot()
	a.sound()
	a.handle.Heal()
	a.mustLook()
	if got := inStore(t, common); len(got) != 200 {
		t.Fatal(len(got))
	}
	a.sound()
}

// The first request after the store went away has an unknown outcome. It is answered out of the headroom all the same,
// and what it may have taken is given back.
func TestHeadroomOfALostRequest(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, restart := range []bool{true, false} {
			common, a, pool := newLan(t, 2)
			web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
			a.handle.CutNext(committed, errCut)
			addr := a.take(web)
			if len(a.outbox) != 1 || a.outbox[0].Address == addr {
				t.Fatalf("%s was given, and there waits %+v", addr, a.outbox)
			}
			lost := a.outbox[0]
			this := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Preferred: addr}
			a.refusedAway(this)
			if restart {
				a.bootLater()
				if got := a.take(web); got != addr {
					t.Fatal(got)
				}
				a.refusedAway(this)
			}
			a.handle.Heal()
			if committed && !restart {
				isLease(t, common, lost.Address, ipam.Automatic, testMAC(1))
			}
			// The use is told, and then the connection breaks before the release is.
			if svc, err := a.attempt(); err != nil || a.tellUses(context.Background(), svc, a.usesPage()) != nil {
				t.Fatal(err)
			}
			a.handle.Cut(errCut)
			a.refusedAway(this)
			a.handle.Heal()
			a.mustLook()
			isLease(t, common, addr, ipam.Automatic, testMAC(1))
			if got := inStore(t, common); len(got) != 3 || len(a.free(pool)) != 2 {
				t.Fatal(got)
			}
			if got, err := a.ask(this); !errors.Is(err, ipam.ErrInUse) {
				t.Fatal(got, err)
			}
			a.sound()

			// One that is asked for by address is given so, or not at all.
			a.handle.CutNext(committed, errCut)
			if got, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(2),
				Preferred: addrs("99")[0]}); !isUnknown(err) {
				t.Fatal(got, err)
			}
			a.handle.Heal()
			a.mustLook()
			isFree(t, common, addrs("99")[0])
		}
	}
}

// The store has taken a use in, and its answer got lost with the daemon. The next daemon gives the address again, out
// of reach, and only once, whether the store is being told of the use meanwhile or not.
func TestHeadroomAgainOnce(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		common, a, pool := newLan(t, 1)
		web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
		a.handle.Cut(errCut)
		addr := a.take(web)
		a.handle.Heal()
		a.handle.CutNext(true, errCut)
		if err := a.look(); !isUnknown(err) {
			t.Fatal(err)
		}
		a.bootLater()
		told := func() {}
		if meanwhile {
			a.handle.Heal()
			told = a.tellsUses(a.open())
			a.handle.Cut(errCut)
			a.now = a.now.Add(time.Second)
		}
		if got := a.take(web); got != addr {
			t.Fatalf("%s was given again, and it had %s", got, addr)
		}
		a.handle.Heal()
		told()
		a.mustLook()
		isLease(t, common, addr, ipam.Automatic, testMAC(1))
		if got := a.take(web); got == addr {
			t.Fatalf("%s was given to a second endpoint (%t)", addr, meanwhile)
		}
		a.bootLater() // from now on it is in doubt again
		a.open()
		web.Preferred = addr
		a.take(web)
		a.sound()
	}
}

// Of a use that the store has taken in unheard the host knows more than the store, also out of reach: who was given the
// address again has it, and nobody who gave it back.
func TestHeadroomToldUnheard(t *testing.T) {
	for _, what := range []string{"given again", "given back"} {
		common, a, pool := newLan(t, 1)
		web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
		a.handle.Cut(errCut)
		addr := a.take(web)
		a.handle.Heal()
		a.handle.LoseNext(true)
		if err := a.look(); !isUnknown(err) {
			t.Fatal(err)
		}
		a.bootLater()
		a.open()
		a.handle.Cut(errCut)
		if what == "given again" {
			if got := a.take(web); got != addr {
				t.Fatalf("%s was given again, and it had %s", got, addr)
			}
		} else {
			a.give(pool, addr)
		}
		a.refusedAway(web)
		a.handle.Heal()
		a.mustLook()
		if what == "given again" {
			isLease(t, common, addr, ipam.Automatic, testMAC(1))
		} else {
			isFree(t, common, addr)
		}
	}
}

// tellsUses has the store take in the uses of headroom that there are. What it returns is to be called once that is
// known here.
func (h *sharingHost) tellsUses(svc *service.Service) (told func()) {
	h.t.Helper()
	ctx := context.Background()
	page, err := h.markTold(ctx, h.usesPage())
	if err != nil || len(page) == 0 {
		h.t.Fatal(page, err)
	}
	if lost, err := allocator.SettleUses(ctx, svc.Ledger, page); err != nil || len(lost) > 0 {
		h.t.Fatal(lost, err)
	}
	return func() {
		if err := h.forgetUses(ctx, page); err != nil {
			h.t.Fatal(err)
		}
	}
}
