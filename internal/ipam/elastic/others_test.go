package elastic_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
)

// Faults that others had; each is a test here.

// TestFailedAssociationChangesNothing: an association that is refused leaves the address as it was: it is neither
// allocated for good nor half moved (CloudStack PR 3836: a failed enable leaves the address allocated).
func TestFailedAssociationChangesNothing(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.reserve("mail", "10.20.0.10")
	b.reserve("shop/db/1", "10.20.0.11")
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.published["mail"] = []string{"25/tcp"}
	before, free := b.show(elastic), b.show("203.0.113.13")
	events := func() int {
		all, err := b.Events(t.Context(), ipam.EventFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	told := events()
	for _, c := range []struct {
		edit ipam.AssociateElastic
		code ipam.Code
	}{
		{ipam.AssociateElastic{Instance: "nobody", Move: true}, ipam.GuestUnclear},
		{ipam.AssociateElastic{Instance: "mail", Move: true}, ipam.PublishesPorts},
		{ipam.AssociateElastic{Instance: "shop/db/1", Move: true}, ipam.OtherAccount},
		{ipam.AssociateElastic{Instance: "mail"}, ipam.PublishesPorts},
		{ipam.AssociateElastic{Instance: "web", Guest: addr("10.20.0.99"), Move: true}, ipam.GuestUnclear},
	} {
		c.edit.Address = addr(elastic)
		b.refused(&c.edit, c.code)
	}
	b.refused(&ipam.AssociateElastic{Address: addr("203.0.113.13"), Instance: "web"}, ipam.AddressNotAllocated)
	if diff := cmp.Diff(before, b.show(elastic), cmp.Comparer(sameAddr)); diff != "" {
		t.Errorf("refusals have changed the address (-before +after):\n%s", diff)
	}
	if got := b.show("203.0.113.13"); got.State != free.State || got.Account != "" {
		t.Errorf("a refusal has allocated an address: %+v", got)
	}
	if got := events(); got != told {
		t.Errorf("refusals have %d events", got-told)
	}
}

// TestNoSilentDisplacement: a second address for a container is refused, with --move too, and the first stays mapped to
// it (AWS: a second address on an instance silently displaces the first).
func TestNoSilentDisplacement(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	for _, move := range []bool{false, true} {
		b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "web", Move: move}, ipam.GuestAssociated, elastic)
	}
	if set := b.wanted().Set; len(set) != 1 || set[0].Elastic != addr(elastic) {
		t.Errorf("an edge is told %+v", set)
	}
	if b.show(next).Associated {
		t.Error("the second address is associated")
	}
}

// TestBothWaysWithoutReservation: a mapping is both ways, also for a container whose address is automatic, and after
// that one has changed (Incus #1965: inbound only at first, #3833: only for static addresses).
func TestBothWaysWithoutReservation(t *testing.T) {
	b := begin(t)
	ip := b.start("web")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	bothWays := func(when string, guest ipam.EdgeMapping) {
		t.Helper()
		if guest.EgressOnly || guest.Staged {
			t.Errorf("%s an edge is told %+v", when, guest)
		}
	}
	set := b.wanted().Set
	if len(set) != 1 || set[0].Guest != ip {
		t.Fatalf("an edge is told %+v", set)
	}
	bothWays("at first", set[0])
	b.stop(ip)
	other := b.start("other")
	again := b.start("web")
	if set := b.wanted().Set; len(set) != 1 || set[0].Guest != again || again == other {
		t.Fatalf("after a restart at %s an edge is told %+v", again, set)
	}
	bothWays("after a restart", b.wanted().Set[0])
}

func sameAddr(a, b netip.Addr) bool { return a == b }
