package cluster

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
)

// Each attachment of a network with headroom has so many addresses claimed in advance, in the store and, behind that,
// on the host.
func TestHeadroomIsKept(t *testing.T) {
	common, a, pool := newLan(t, 3)
	wantAddrs(t, "claimed", a.free(pool), addrs("2", "3", "4"))
	if got := inStore(t, common); strings.Join(got, ";") != "10.77.0.2 headroom a -;10.77.0.3 headroom a -;10.77.0.4 "+
		"headroom a -" {
		t.Fatal(got)
	}
	if got := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}); got != addrs("5")[0] {
		t.Fatal("within reach the headroom was used:", got)
	}
	second := a.pool()
	b := newSharingHost(t, common, "b")
	b.open()
	theirs := b.pool()
	a.mustLook()
	b.mustLook()
	wantAddrs(t, "of the second attachment", a.free(second), addrs("6", "7", "8"))
	if got := b.free(theirs); len(got) != 3 {
		t.Fatal(got)
	}
	b.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: new(int)})
	a.mustLook()
	b.mustLook()
	if got := inStore(t, common); len(got) != 1 {
		t.Fatal(got)
	}
	wantAddrs(t, "of none", a.free(pool), nil)
	five := 5
	b.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: &five})
	a.mustLook()
	if got := a.free(pool); len(got) != 5 {
		t.Fatal(got)
	}
	two := 2
	b.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: &two})
	a.mustLook()
	if got := a.free(pool); len(got) != 2 {
		t.Fatal("shrunk:", got)
	}
	if st := a.State().Headroom; len(st) != 2 ||
		st[0] != (ipam.HeadroomState{Space: ipam.GlobalSpace, Network: "lan", Subnet: lanCIDR, Wanted: 2, Claimed: 2}) {
		t.Fatalf("%+v", st)
	}
	b.edit(&ipam.AddExclusion{Network: "lan",
		Range: ipam.Range{IPRange: allocator.WholeRange(netip.MustParsePrefix("10.77.0.2/32")).IPRange}})
	a.mustLook()
	if got := a.free(pool); len(got) != 2 || slices.Contains(got, addrs("2")[0]) {
		t.Fatal("an excluded address is headroom still:", got)
	}
	a.sound()
	n, err := a.svc.Network(context.Background(), "lan")
	if err != nil || n.Headroom != 2 {
		t.Fatal(n.Headroom, err)
	}
}

// Local networks, and those of which Berth chooses no address, have none.
func TestHeadroomRefused(t *testing.T) {
	common := mem.New()
	a := newSharingHost(t, common, "a")
	a.open()
	for _, e := range []ipam.Edit{
		&ipam.CreateNetwork{Name: "n", Space: ipam.LocalSpace, Headroom: 1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: -1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: ipam.MaxHeadroom + 1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: 1, Type: "vip"},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: 1, Type: "dynamic"},
	} {
		if _, err := a.Edit(context.Background(), ipam.EditOptions{}, e); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// Out of reach the headroom is given out, durably, each address to one; what was given before the daemon's start is in
// doubt, and its endpoint has it again, once.
func TestHeadroomAway(t *testing.T) {
	common, a, pool := newLan(t, 4)
	a.handle.Cut(errCut)
	web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
	one := a.take(web)
	this := ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addrs("4")[0]}
	two := a.take(this)
	wantAddrs(t, "given", []netip.Addr{one, two}, addrs("2", "4"))
	again := func() {
		t.Helper()
		for _, req := range []ipam.AddressRequest{web, {Pool: pool, MAC: testMAC(1)},
			{Pool: pool, MAC: testMAC(1), Preferred: one}} {
			a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Preferred: one})
			a.bootLater() // and never reaches the store
			if got := a.take(req); got != one {
				t.Fatalf("%+v got %s", req, got)
			}
		}
		a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Preferred: one})
		if got := a.take(this); got != two {
			t.Fatal(got)
		}
		a.refusedAway(this)
		a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(9), Preferred: two})
		a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(9), Preferred: addrs("77")[0]})
		a.refusedAway(ipam.AddressRequest{Pool: pool, Gateway: true, Preferred: addrs("3")[0]})
	}
	again()
	again()
	three := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3)})
	aux := a.take(ipam.AddressRequest{Pool: pool, Preferred: addrs("5")[0], Telling: true})
	wantAddrs(t, "given then", []netip.Addr{three, aux}, addrs("3", "5"))
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(4)})
	if st := a.State(); st.Waiting != 4 || st.Headroom[0].Used != 4 || st.Headroom[0].Claimed != 0 ||
		st.Oldest.IsZero() {
		t.Fatalf("%+v", st)
	}
	a.sound()
	if n, err := Undelivered(context.Background(), a.own); n != 4 || err != nil {
		t.Fatal(n, err)
	}

	ids := map[netip.Addr]uint64{}
	for _, l := range leasesIn(t, common) {
		ids[l.Address] = l.ID
	}
	a.handle.Heal()
	svc := a.open()
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(4)}) // the uses are told first
	for addr, want := range map[netip.Addr]ipam.Lease{one: {Kind: ipam.Automatic, MAC: testMAC(1), Name: "web"},
		two: {Kind: ipam.Static, MAC: testMAC(2)}, three: {Kind: ipam.Automatic, MAC: testMAC(3)},
		aux: {Kind: ipam.Auxiliary}} {
		if l := isLease(t, common, addr, want.Kind, want.MAC); l.ID != ids[addr] || l.Name != want.Name ||
			l.Attachment != pool {
			t.Fatalf("%+v", l)
		}
	}
	if got, err := a.ask(this); !errors.Is(err, ipam.ErrInUse) {
		t.Fatal(got, err)
	}
	a.mustLook()
	if got := a.free(pool); len(got) != 4 {
		t.Fatal("it was not filled up:", got)
	}
	if len(a.warned) > 0 || a.State().Waiting != 0 {
		t.Fatal(a.warned)
	}
	who, err := svc.Who(context.Background(), ipam.WhoFilter{Address: one})
	if err != nil || len(who) != 1 || who[0].Name != "web" || who[0].Kind != "automatic" || who[0].Lease != ids[one] ||
		who[0].By != heldActor {
		t.Fatalf("%+v, %v", who, err)
	}
	a.give(pool, one)
	if who, err = svc.Who(context.Background(), ipam.WhoFilter{Name: "web"}); err != nil || len(who) != 1 ||
		who[0].Until.IsZero() || who[0].From.Before(ipam.EventTime(ids[one]).Add(time.Microsecond)) {
		t.Fatalf("%+v, %v", who, err)
	}
}

// What is released before the store has heard of it is headroom again: of its last holder first, and of others after
// the quarantine.
func TestHeadroomAgain(t *testing.T) {
	common, a, pool := newLan(t, 2)
	hour := ipam.Duration(time.Hour)
	a.edit(&ipam.ModifyNetwork{Network: "lan", Quarantine: &hour})
	a.mustLook()
	a.handle.Cut(errCut)
	web, db := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"},
		ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Name: "db"}
	one, two := a.take(web), a.take(db)
	a.give(pool, one)
	a.give(pool, one)
	a.give(pool, two)
	if a.keeps() || len(a.outbox) > 0 {
		t.Fatal("there is something to tell:", a.outbox)
	}
	a.boot()
	web.MAC = testMAC(7) // the engine draws another with each start
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(3), Name: "new"})
	if got := a.take(db); got != two {
		t.Fatal(got)
	}
	if got := a.take(web); got != one {
		t.Fatal(got)
	}
	a.give(pool, one)
	a.now = a.now.Add(2 * time.Hour)
	if got := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3), Name: "new"}); got != one {
		t.Fatal(got)
	}
	a.give(pool, two)
	a.handle.Heal()
	a.mustLook()
	isLease(t, common, one, ipam.Automatic, testMAC(3))
	isLease(t, common, two, ipam.Headroom, ipam.MAC{})
	a.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: new(int)})
	a.mustLook()
	isLease(t, common, two, ipam.Headroom, ipam.MAC{}) // in quarantine, of which the store knows nothing
	a.now = a.now.Add(2 * time.Hour)
	a.mustLook()
	isFree(t, common, two)
}

// The store that was told of a use may have it, whatever it answered. A release then is one of a lease.
func TestHeadroomTold(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, restart := range []bool{true, false} {
			common, a, pool := newLan(t, 1)
			a.handle.Cut(errCut)
			addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
			a.handle.Heal()
			a.handle.CutNext(committed, errCut)
			if err := a.look(); !isUnknown(err) {
				t.Fatal(err)
			}
			if svc, _ := a.service(); a.tellUses(context.Background(), svc, a.usesPage()) == nil {
				t.Fatal("out of reach it was told")
			}
			a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
			if restart {
				a.bootLater()
				if got := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}); got != addr {
					t.Fatal(got)
				}
			}
			a.give(pool, addr)
			a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
			a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
			a.handle.Heal()
			a.mustLook()
			if got := inStore(t, common); len(got) != 1 || len(a.free(pool)) != 1 {
				t.Fatalf("committed %t: %v, %v", committed, got, a.free(pool))
			}
			if len(a.warned) > 0 {
				t.Fatal(a.warned)
			}
			a.sound()
		}
	}
}

// A use that ends while the store is being told of it is told of again.
func TestHeadroomReleasedMeanwhile(t *testing.T) {
	common, a, pool := newLan(t, 1)
	a.handle.Cut(errCut)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	a.handle.Heal()
	page, err := a.markTold(context.Background(), a.usesPage())
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	a.give(pool, addr)
	if lost, err := allocator.SettleUses(context.Background(), a.svc.Ledger, page); err != nil || len(lost) > 0 {
		t.Fatal(lost, err)
	}
	isLease(t, common, addr, ipam.Automatic, testMAC(1))
	if err := a.forgetUses(context.Background(), page); err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	isFreeFor(t, a, pool, 1)
}

// isFreeFor checks that a host has so much headroom, and nothing is left of what it gave out.
func isFreeFor(t *testing.T, h *sharingHost, pool ipam.ID, n int) {
	t.Helper()
	if got := h.free(pool); len(got) != n || len(inStore(t, h.common)) != n || h.keeps() {
		t.Fatalf("%v, and in the store %v", got, inStore(t, h.common))
	}
}

// While the release of a pool waits, nothing is taken over, or claimed, for it.
func TestHeadroomOfAPoolThatWaits(t *testing.T) {
	common, a, pool := newLan(t, 2)
	a.handle.Cut(errCut)
	if err := a.ReleasePool(context.Background(), pool); err != nil {
		t.Fatal(err)
	}
	a.handle.Heal()
	three := 3
	other := newSharingHost(t, common, "b")
	other.open()
	other.edit(&ipam.ModifyNetwork{Network: "lan", Headroom: &three})
	if err := a.reviewOne(context.Background(), a.svc, pool); err != nil {
		t.Fatal(err)
	}
	if a.headroomOf(pool) != nil || len(inStore(t, common)) != 2 {
		t.Fatal(a.headroomOf(pool), inStore(t, common))
	}
	a.mustLook()
	isFreeFor(t, a, pool, 0)
}

// Where nothing else is free, or exactly that is asked for, a host gives of its own headroom within reach, too, and of
// no other's.
func TestHeadroomIsTheLast(t *testing.T) {
	common := mem.New()
	a, b := newSharingHost(t, common, "a"), newSharingHost(t, common, "b")
	a.open()
	b.open()
	a.edit(&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Headroom: 2,
		Subnets: []ipam.SubnetSpec{{CIDR: lanCIDR}}},
		&ipam.AddPool{Network: "lan", Range: mustRange(t, "10.77.0.10-10.77.0.15")})
	mine, theirs := a.pool(), b.pool()
	a.mustLook()
	b.mustLook()
	own := a.free(mine)
	if got := a.take(ipam.AddressRequest{Pool: mine, MAC: testMAC(1), Preferred: own[1]}); got != own[1] {
		t.Fatal(got)
	}
	isLease(t, common, own[1], ipam.Static, testMAC(1))
	if _, err := a.ask(ipam.AddressRequest{Pool: mine, MAC: testMAC(9), Preferred: b.free(theirs)[0]}); !errors.Is(err,
		ipam.ErrInUse) || !strings.Contains(err.Error(), "the headroom of host b") {
		t.Fatal(err)
	}
	for i := range 3 { // two that are free, and what is left of the headroom
		a.take(ipam.AddressRequest{Pool: mine, MAC: testMAC(10 + i)})
	}
	isLease(t, common, own[0], ipam.Automatic, testMAC(12))
	_, err := a.ask(ipam.AddressRequest{Pool: mine, MAC: testMAC(20)})
	if !errors.Is(err, ipam.ErrExhausted) || !strings.Contains(err.Error(), "headroom among them: 2 of host b") {
		t.Fatal(err)
	}
	if len(b.free(theirs)) != 2 {
		t.Fatal(b.free(theirs))
	}
	a.give(mine, own[1])
	a.mustLook()
	if st := a.State().Headroom[0]; st.Wanted != 2 || st.Claimed != 1 {
		t.Fatalf("%+v", st) // there is no more
	}
	a.sound()
}

func mustRange(t testing.TB, text string) ipam.Range {
	t.Helper()
	var r ipam.Range
	if err := r.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return r
}

// An address that is reserved for the owner is not replaced by one of the headroom.
func TestHeadroomOfOwners(t *testing.T) {
	_, a, pool := newLan(t, 2)
	a.edit(&ipam.AddReservation{Network: "lan", Owner: "web", Wishes: []ipam.Wish{{Address: addrs("50")[0]}}},
		&ipam.RemovePool{Network: "lan", Pool: "10.77.0.0/24"},
		&ipam.AddPool{Network: "lan", Range: mustRange(t, "10.77.0.2-10.77.0.99")},
		&ipam.AddPool{Network: "lan", Range: mustRange(t, "10.77.0.100-10.77.0.150"), Name: "db"},
		&ipam.ModifyNetwork{Network: "lan", OwnerRules: []ipam.OwnerRule{{Pattern: "db-*", Pool: "db"}}})
	a.handle.Cut(errCut)
	if _, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}); !errors.Is(err, ipam.ErrAway) ||
		!strings.Contains(err.Error(), "reserved for web") {
		t.Fatal(err)
	}
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "db-1"}) // it has a pool of its own
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "app"})
}

// What the store does not have for this host is told of, loudly, and forgotten.
func TestHeadroomLost(t *testing.T) {
	for what, replace := range map[string]func(*ipam.Lease) *ipam.Lease{
		"it is gone":              func(*ipam.Lease) *ipam.Lease { return nil },
		"it was claimed again":    func(l *ipam.Lease) *ipam.Lease { l.ID++; return l },
		"it is another network's": func(l *ipam.Lease) *ipam.Lease { l.Attachment = ipam.NewID(); return l },
		"it is somebody's, and else": func(l *ipam.Lease) *ipam.Lease {
			l.ID, l.Kind, l.MAC = l.ID+1, ipam.Automatic,
				testMAC(9)
			return l
		},
	} {
		common, a, pool := newLan(t, 2)
		a.handle.Cut(errCut)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"})
		other := common.Join()
		key := ledger.LeaseKey(nil, a.svc.Ledger.Attachment(pool).Subnet, addr)
		after := replace(heldAt(t, common, addr))
		err := other.Update(context.Background(), func(tx store.Tx) error {
			if after == nil {
				return tx.Delete(key)
			}
			return tx.Put(key, ipam.EncodeLease(nil, after))
		})
		if err != nil {
			t.Fatal(err)
		}
		a.handle.Heal()
		a.mustLook()
		if len(a.warned) != 1 || !strings.Contains(a.warned[0], addr.String()) ||
			!strings.Contains(a.warned[0], "web") || a.keeps() {
			t.Fatal(what, a.warned)
		}
		if l := heldAt(t, common, addr); after != nil && l != nil && l.MAC == testMAC(1) {
			t.Fatalf("%s: the store has it as %+v", what, l)
		}
	}
}
