package elastic_test

import (
	"errors"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TestStaged: what goes out of a reserved guest is mapped before its container starts, what comes in only while it
// runs; a stop keeps the association (CS-8).
func TestStaged(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	id := b.wanted().Set[0].Association
	want := ipam.EdgeMapping{Elastic: addr(elastic), Guest: addr("10.20.0.9"), Subnet: netip.MustParsePrefix(lan),
		Staged: true, Association: id}
	if got := b.wanted(); len(got.Set) != 1 || got.Set[0] != want || len(got.Ranges) != 1 {
		t.Errorf("before the start an edge is told %+v", got)
	}
	ip := b.start("web")
	want.Staged = false
	if got := b.wanted().Set; len(got) != 1 || got[0] != want {
		t.Errorf("while it runs an edge is told %+v", got)
	}
	b.stop(ip)
	want.Staged = true
	if got := b.wanted().Set; len(got) != 1 || got[0] != want {
		t.Errorf("after its stop an edge is told %+v", got)
	}
	if _, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: b.pool,
		MAC: ipam.MAC{2, 0, 0, 0, 0, 9}, Preferred: addr("10.20.0.9")}); err != nil {
		t.Fatal(err)
	}
	if got := b.wanted().Set; len(got) != 1 || got[0].Staged {
		t.Errorf("one without a name may be the owner, and an edge is told %+v", got)
	}
}

// TestUnreserved: a container without a reservation is mapped while it runs, wherever it gets its address.
func TestUnreserved(t *testing.T) {
	b := begin(t)
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"}, ipam.GuestUnclear, "job", "IPv4")
	ip := b.start("job")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"})
	if got := b.wanted().Set; len(got) != 1 || got[0].Guest != ip || got[0].Staged {
		t.Errorf("an edge is told %+v", got)
	}
	b.stop(ip)
	if got := b.wanted().Set; len(got) != 0 {
		t.Errorf("of one that does not run an edge is told %+v", got)
	}
	b.edit(&ipam.TakeAddress{Network: "net1", Owner: "printer", Interface: ipam.Interface{
		Wishes: []ipam.Wish{{Address: ip}}}})
	if other := b.start("job"); other == ip {
		t.Fatal("it has its address again, which the printer has")
	} else if got := b.wanted().Set; len(got) != 1 || got[0].Guest != other {
		t.Errorf("at its new address an edge is told %+v", got)
	}
	if got := b.show(elastic); !got.Associated || got.Instance != "job" || got.Host != "h1" {
		t.Errorf("it is shown as %+v", got)
	}
}

// TestReleasing: an address is free at once where no edge has mapped it, else as soon as that has said so, and can be
// asked for meanwhile by its account. Nothing is stuck.
func TestReleasing(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	m := b.wanted().Set[0]
	applied := ipam.EdgeApplied{Address: m.Elastic, Association: m.Association, Guest: m.Guest}
	b.report(ipam.EdgeReport{Whole: true, Applied: []ipam.EdgeApplied{applied}})
	if got := b.show(elastic).Applied; got == nil || got.Host != "h1" || got.Error != "" || got.Since.IsZero() {
		t.Errorf("it is mapped, and shown as %+v", got)
	}
	since := b.show(elastic).Applied.Since
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{applied}})
	if got := b.show(elastic).Applied.Since; !got.Equal(since) {
		t.Errorf("said again, it is mapped since %s and not since %s", got, since)
	}
	b.refused(&ipam.ReleaseElastic{Address: addr(elastic)}, ipam.AddressAssociated, "web", "10.20.0.9", "h1")
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.again(false)
	if got := b.show(elastic); got.State != ipam.ElasticReleasing || got.Account != ipam.DefaultAccount {
		t.Errorf("it is shown as %+v", got)
	}
	b.edit(&ipam.CreateAccount{Account: "shop"})
	b.refused(&ipam.AllocateElastic{Account: "shop", Address: addr(elastic)}, ipam.AddressAllocated, "default", "h1")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}, ipam.AddressNotAllocated)
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.AllocateElastic{Address: addr(elastic)})
	if got := b.show(elastic).State; got != ipam.ElasticAllocated {
		t.Errorf("asked for by its account it is %s", got)
	}
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	b.report(ipam.EdgeReport{Whole: true})
	if got := b.show(elastic).State; got != ipam.ElasticFree {
		t.Errorf("no edge maps it, and it is %s", got)
	}
	b.edit(&ipam.ReleaseElastic{Address: addr(next)})
	if got := b.show(next).State; got != ipam.ElasticFree {
		t.Errorf("it was never mapped, and is %s", got)
	}
}

// TestFailed: what an edge cannot map is told with the reason, and that a new association is not the old one's.
func TestFailed(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	m := b.wanted().Set[0]
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: m.Elastic, Association: m.Association,
		Guest: m.Guest, Error: "no such device"}}})
	if got := b.show(elastic).Applied; got == nil || got.Error != "no such device" {
		t.Errorf("it is shown as %+v", got)
	}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	if got := b.show(elastic); got.Applied != nil || !got.EgressOnly {
		t.Errorf("what was said of the association before is shown of the new one: %+v", got)
	}
}

// TestPublishes: a container with published ports is refused, naming them (CS-13).
func TestPublishes(t *testing.T) {
	b := begin(t)
	b.reserve("shop/web/1", "10.20.0.9")
	b.published["shop-web-1"] = []string{"8080/tcp"}
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/web/1"}, ipam.PublishesPorts, "shop-web-1",
		"8080/tcp")
	delete(b.published, "shop-web-1")
	b.published["other"] = []string{"8080/tcp"}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/web/1"})
}

// TestUnsuited: what goes past the host's own network cannot be mapped (CS-16).
func TestUnsuited(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.driver = "macvlan"
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}, ipam.NetworkUnsuited, "macvlan")
	b.driver = "bridge"
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
}

// TestOfOtherAccounts: the pattern that says most claims a container, and by a MAC nobody gets around it (CS-14).
func TestOfOtherAccounts(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
	b.edit(&ipam.CreateAccount{Account: "db", Owners: []string{"shop/db/*"}})
	b.reserve("shop/db/1", "10.20.0.9")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop/db/1"}, ipam.OtherAccount, "default", "db")
	b.edit(&ipam.AllocateElastic{Account: "db"})
	b.edit(&ipam.AssociateElastic{Address: addr("203.0.113.12"), Instance: "shop/db/1"})
	b.edit(&ipam.DisassociateElastic{Address: addr("203.0.113.12")})
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-db-1"}, ipam.OtherAccount)

	mac := ipam.MAC{2, 0, 0, 0, 0, 7}
	b.reserve(mac.String(), "10.20.0.30")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: mac.String()})
	if _, err := b.RequestAddress(t.Context(), ipam.AddressRequest{Pool: b.pool, Name: "shop-cart-1",
		MAC: mac}); err != nil {
		t.Fatal(err)
	}
	if got := b.wanted().Set; len(got) != 0 {
		t.Errorf("the container that runs is another account's, and an edge is told %+v", got)
	}
}

// TestOneForAGuest: a guest address has one elastic address.
func TestOneForAGuest(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "web"}, ipam.GuestAssociated, elastic)
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "web"})
}

// TestEnds: an association ends with its owner, also when that one's time is over, and the address stays with its
// account (CS-8).
func TestEnds(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.edit(&ipam.ReleaseOwner{Owner: "web"})
	if got := b.show(elastic); got.Associated || got.State != ipam.ElasticAllocated {
		t.Errorf("its owner has ended, and it is shown as %+v", got)
	}
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.edit(&ipam.RemoveReservation{Network: "net1", Owner: "web"})
	if got := b.show(elastic); !got.Associated {
		t.Error("its owner has no reservation any more, and has not ended")
	}
	b.refused(&ipam.RemoveNetwork{Network: "net1"}, "")
}

// TestDryRun changes nothing, and If-Match holds a change to what its requester saw.
func TestDryRun(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	e := &ipam.AssociateElastic{Address: addr(elastic), Instance: "web"}
	if out, err := b.Edit(t.Context(), ipam.EditOptions{DryRun: true}, e); err != nil || len(out.Changes) != 1 {
		t.Fatalf("a dry run comes to %+v, %v", out, err)
	}
	b.consistent()
	if b.show(elastic).Associated {
		t.Error("a dry run has associated it")
	}
	seen := b.show(elastic).Revision
	if _, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: seen}, e); err != nil {
		t.Fatal(err)
	}
	_, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: seen}, &ipam.DisassociateElastic{Address: addr(elastic)})
	if !errors.Is(err, ipam.ErrChanged) {
		t.Errorf("what was changed since is changed again: %v", err)
	}
}

// TestOff: turned off, an edge is told to map nothing, and what there is lasts (CS-11).
func TestOff(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.again(true)
	if got := b.wanted(); len(got.Set) != 0 || len(got.Ranges) != 0 || !got.Whole {
		t.Errorf("an edge is told %+v", got)
	}
	b.refused(&ipam.DisassociateElastic{Address: addr(elastic)}, ipam.ElasticTurnedOff)
	b.again(false)
	if got := b.wanted().Set; len(got) != 1 {
		t.Errorf("turned on again, an edge is told %+v", got)
	}
}

// TestMany: the lowest free address is found, and taken once, until there is none.
func TestMany(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.ReleaseElastic{Address: addr(elastic)})
	for _, want := range []string{elastic, "203.0.113.12", "203.0.113.13"} {
		if got := b.edit(&ipam.AllocateElastic{}).Results[0].Addresses[0]; got != addr(want) {
			t.Errorf("%s is allocated, and %s is the lowest free one", got, want)
		}
	}
	b.refused(&ipam.AllocateElastic{}, ipam.NoElasticFree)
	count := 0
	b.Ledger.Read(func(ix *ledger.Index) {
		for range ix.Elastics() {
			count++
		}
	})
	if count != 4 {
		t.Errorf("%d addresses are somebody's", count)
	}
}
