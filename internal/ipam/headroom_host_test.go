package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"berth/store/mem"
)

// A host on its way out claims nothing, and gives back what nobody has.
func TestHeadroomOfALeavingHost(t *testing.T) {
	common, a, pool := newLan(t, 2)
	b := newSharingHost(t, common, "b")
	b.open()
	theirs := b.pool()
	b.mustLook()
	addr := a.take(AddressRequest{Pool: pool, MAC: testMAC(1)})
	b.edit(&DrainHost{Name: "a"})
	a.mustLook()
	if got := inStore(t, common); len(got) != 3 || len(a.free(pool)) != 0 {
		t.Fatal(got)
	}
	if a.State().Host != HostDraining {
		t.Fatal(a.State())
	}
	a.handle.Cut(errCut)
	a.refusedAway(AddressRequest{Pool: pool, MAC: testMAC(2)})
	a.give(pool, addr)
	a.handle.Heal()
	a.mustLook()
	isFree(t, common, addr)
	b.edit(&DrainHost{Name: "a", Undo: true})
	a.mustLook()
	a.handle.Cut(errCut)
	used := a.take(AddressRequest{Pool: pool, MAC: testMAC(3)})
	a.handle.Heal()

	a.handle.Announce("a", nil)
	b.edit(&RemoveHost{Name: "a"})
	a.mustLook() // it gives everything back, and says so
	for _, l := range leasesIn(t, common) {
		if l.Host != "b" || l.Attachment != theirs {
			t.Fatalf("left: %+v (%s was in use)", l, used)
		}
	}
	if err := a.look(); !errors.Is(err, ErrHost) {
		t.Fatal(err)
	}
	if _, err := a.ask(AddressRequest{Pool: pool, MAC: testMAC(3)}); !errors.Is(err, ErrHost) {
		t.Fatal(err)
	}
	a.handle.Cut(errCut)
	a.refusedAway2(AddressRequest{Pool: pool, MAC: testMAC(4)})
	if len(a.stocks[pool].spares) != 0 {
		t.Fatalf("%+v", a.stocks[pool])
	}
}

// refusedAway2 asks for an address that is given in no case.
func (h *sharingHost) refusedAway2(req AddressRequest) {
	h.t.Helper()
	if addr, err := h.ask(req); err == nil {
		h.t.Fatal("given:", addr)
	}
}

// A host that was taken out while it was away has no headroom any more as soon as it hears of it; let in again it claims anew.
func TestHeadroomOfARemovedHost(t *testing.T) {
	for _, restart := range []bool{false, true} {
		common, a, pool := newLan(t, 2)
		b := newSharingHost(t, common, "b")
		b.open()
		a.handle.Cut(errCut)
		addr := a.take(AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.give(pool, addr)
		b.edit(&RemoveHost{Name: "a", Off: true})
		if got := inStore(t, common); len(got) != 0 {
			t.Fatal(got)
		}
		if restart {
			a.boot()
		}
		a.handle.Heal()
		if err := a.Run(context.Background()); !errors.Is(err, ErrHost) {
			t.Fatal(err)
		}
		if st := a.State(); !errors.Is(st.Err, ErrHost) {
			t.Fatalf("%+v", st)
		}
		if st := a.stocks[pool]; st != nil && len(st.spares) > 0 {
			t.Fatalf("%+v", st)
		}
		a.refusedAway2(AddressRequest{Pool: pool, MAC: testMAC(1)})
		if restart {
			if _, err := a.service(); !errors.Is(err, ErrHost) {
				t.Fatal(err)
			}
		}
		b.edit(&AdmitHost{Name: "a"})
		a.mustLook()
		again := a.pool()
		a.mustLook()
		if len(a.free(again)) != 2 || a.stocks[pool] != nil {
			t.Fatal(a.free(again))
		}
	}
}

// A swarm's manager asks for all it has again through other attachments: no headroom is claimed for it.
func TestHeadroomOfASwarm(t *testing.T) {
	common, a, _ := newLan(t, 2)
	grant, err := a.RequestPool(context.Background(), PoolRequest{Network: "lan", Space: GlobalSpace, CIDR: lanCIDR, Swarm: true})
	if err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	if got := inStore(t, common); len(got) != 2 || a.stocks[grant.ID] != nil {
		t.Fatal(got)
	}
}

// A host whose own store is put back to what it was may not give out what it has written there.
func TestDropHeadroom(t *testing.T) {
	common, a, pool := newLan(t, 2)
	a.handle.Cut(errCut)
	a.take(AddressRequest{Pool: pool, MAC: testMAC(1)})
	if err := DropHeadroom(context.Background(), a.own); err != nil {
		t.Fatal(err)
	}
	a.boot()
	a.refusedAway(AddressRequest{Pool: pool, MAC: testMAC(2)})
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
		ref := LeaseRef{Space: GlobalSpace, Address: addr, ID: heldAt(t, common, addr).ID}
		if done, err := a.svc.ReleaseLease(context.Background(), ref); done || err != nil {
			t.Fatal(done, err)
		}
		if err := a.svc.NameLeases(context.Background(), []LeaseName{{LeaseRef: ref, Name: "web"}}); err != nil {
			t.Fatal(err)
		}
		if err := a.svc.ReleaseAddress(context.Background(), pool, addr); err != nil {
			t.Fatal(err)
		}
		if l := isLease(t, common, addr, Headroom, MAC{}); l.Name != "" {
			t.Fatalf("%+v", l)
		}
	}
	a.free(pool)
	var shown []string
	for l, err := range a.svc.Leases(context.Background(), LeaseFilter{}) {
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
	a.edit(&CreateNetwork{Name: "lan", Space: GlobalSpace, Headroom: 100, Subnets: []SubnetSpec{{CIDR: cidr, Pool: true}}})
	grant, err := a.RequestPool(context.Background(), PoolRequest{Network: "lan", CIDR: cidr})
	if err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	if got := a.free(grant.ID); len(got) != 100 {
		t.Fatal(len(got))
	}
	a.handle.Cut(errCut)
	for i := range 100 {
		if _, err := a.RequestAddress(context.Background(), AddressRequest{Pool: grant.ID, MAC: testMAC(i + 1)}); err != nil {
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

// The first request after the store went away has an unknown outcome. It is answered out of the headroom all the same, and what it
// may have taken is given back.
func TestHeadroomOfALostRequest(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, restart := range []bool{true, false} {
			common, a, pool := newLan(t, 2)
			web := AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
			a.handle.CutNext(committed, errCut)
			addr := a.take(web)
			if len(a.outbox) != 1 || a.outbox[0].Address == addr {
				t.Fatalf("%s was given, and there waits %+v", addr, a.outbox)
			}
			lost := a.outbox[0]
			if restart {
				a.boot()
			}
			for range 2 {
				if got := a.take(web); got != addr {
					t.Fatal(got)
				}
			}
			a.handle.Heal()
			if committed && !restart {
				isLease(t, common, lost.Address, Automatic, testMAC(1))
			}
			// The use is told, and then the connection breaks before the release is.
			if svc, err := a.attempt(); err != nil || a.tellUses(context.Background(), svc, a.usesPage()) != nil {
				t.Fatal(err)
			}
			a.handle.Cut(errCut)
			if got := a.take(web); got != addr {
				t.Fatal(got)
			}
			a.handle.Heal()
			a.mustLook()
			isLease(t, common, addr, Automatic, testMAC(1))
			if got := inStore(t, common); len(got) != 3 || len(a.free(pool)) != 2 {
				t.Fatal(got)
			}
			if got := a.take(web); got != addr {
				t.Fatal(got)
			}
			a.sound()

			// One that is asked for by address is given so, or not at all.
			a.handle.CutNext(committed, errCut)
			if got, err := a.ask(AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addrs("99")[0]}); !isUnknown(err) {
				t.Fatal(got, err)
			}
			a.handle.Heal()
			a.mustLook()
			isFree(t, common, addrs("99")[0])
		}
	}
}
