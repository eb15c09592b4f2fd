package elastic_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
)

// secondNetwork plans net2 with elastic addresses on.
func (b *bench) secondNetwork(space, subnet string) {
	b.t.Helper()
	b.edit(&ipam.CreateNetwork{Name: "net2", Space: space,
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(subnet), Pool: true}}})
	on := "on"
	b.edit(&ipam.ModifyNetwork{Network: "net2", Elastic: &on})
}

// TestChangedHands: a guest address that somebody else has now is another guest, to whom an elastic address is moved,
// or not at all.
func TestChangedHands(t *testing.T) {
	b := begin(t)
	ip := b.start("job")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"})
	b.stop(ip)
	b.edit(&ipam.AddReservation{Network: "net1", Owner: "job2", Wishes: []ipam.Wish{{Address: ip}}})
	for _, egress := range []bool{false, true} {
		b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job2", EgressOnly: egress},
			ipam.AddressAssociated, "job")
	}
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job2", Move: true})
	if got := b.show(elastic); got.Instance != "job2" {
		t.Errorf("after the move it is shown as %+v", got)
	}
	if got := b.wanted().Set; len(got) != 1 || got[0].Guest != ip {
		t.Errorf("after the move an edge is told %+v", got)
	}
}

// TestAgain: the same association once more succeeds and changes nothing, whatever its guest does meanwhile.
func TestAgain(t *testing.T) {
	b := begin(t)
	ip := b.start("job")
	e := &ipam.AssociateElastic{Address: addr(elastic), Instance: "job"}
	first := b.edit(e).Results[0]
	again := func(what string) {
		t.Helper()
		seen := b.show(elastic).Revision
		for _, network := range []string{"", "net1"} {
			e.Network = network
			got := b.edit(e).Results[0]
			if got.Network != first.Network || got.Subnet != first.Subnet || got.CIDR != first.CIDR ||
				!slices.Equal(got.Addresses, first.Addresses) {
				t.Errorf("%s: it comes to %+v, and at first to %+v", what, got, first)
			}
		}
		if b.show(elastic).Revision != seen {
			t.Errorf("%s: it was written again", what)
		}
	}
	again("while it runs")
	b.published["job"] = []string{"80/tcp"}
	again("while it publishes a port")
	b.stop(ip)
	again("while it is stopped")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job", EgressOnly: true}, ipam.GuestUnclear)
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job", Guest: ip}, ipam.GuestUnclear)
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job", Network: "net9"}, "")
}

// TestEndsOnItsNetwork: when the time of an owner is over on one network, what is reserved for it on another keeps its
// elastic address.
func TestEndsOnItsNetwork(t *testing.T) {
	b := begin(t)
	b.secondNetwork("", "10.21.0.0/24")
	b.edit(&ipam.AddReservation{Network: "net1", Owner: "web", WantedTerms: ipam.WantedTerms{
		For: ipam.Duration(time.Hour)}})
	b.edit(&ipam.AddReservation{Network: "net2", Owner: "web"})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", Network: "net1"})
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "web", Network: "net2"})
	b.later = 2 * time.Hour
	b.edit(&ipam.CreateAccount{Account: "shop"}) // any change: what is due ends before it
	if b.show(elastic).Associated {
		t.Error("its owner's time is over, and it is associated")
	}
	if !b.show(next).Associated {
		t.Error("its owner has an address on its network for ever, and it is not associated")
	}
}

// TestEndsByName: an association ends with its owner also where it is by the name of that one's container, and the
// owner has several addresses.
func TestEndsByName(t *testing.T) {
	b := begin(t)
	second := addr("10.20.0.10")
	b.edit(&ipam.AddReservation{Network: "net1", Owner: "shop/web/1", WantedTerms: ipam.WantedTerms{
		For: ipam.Duration(time.Hour)}, Wishes: []ipam.Wish{{Address: addr("10.20.0.9")}, {Slot: 1, Address: second}}})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop_web_1", Guest: second})
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "shop/web/1", Guest: second}, ipam.GuestAssociated)
	b.later = 2 * time.Hour
	b.edit(&ipam.CreateAccount{Account: "shop"})
	if b.show(elastic).Associated {
		t.Error("its owner has ended, and it is associated")
	}
}

// TestEndsByRule: a rule that makes one owner of several names is seen through, too.
func TestEndsByRule(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.ModifyNetwork{Network: "net1", OwnerRules: []ipam.OwnerRule{{Pattern: "batch-*", Owner: "batch"}}})
	b.edit(&ipam.AddReservation{Network: "net1", Owner: "batch", WantedTerms: ipam.WantedTerms{
		For: ipam.Duration(time.Hour)}})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "batch-7"})
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "batch-8"}, ipam.GuestAssociated, elastic)
	b.later = 2 * time.Hour
	b.edit(&ipam.CreateAccount{Account: "one"})
	if b.show(elastic).Associated {
		t.Error("its owner has ended, and it is associated")
	}
}

// TestOnePerAddress: a host has a guest's address once, so that one on another network with the same address is refused
// an elastic one of its own.
func TestOnePerAddress(t *testing.T) {
	b := begin(t)
	b.secondNetwork("other", lan)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AddReservation{Network: "net2", Owner: "mail", Wishes: []ipam.Wish{{Address: addr("10.20.0.9")}}})
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "mail"}, ipam.GuestAssociated, elastic, "web",
		"net1")
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "mail"})
}

// TestOneAfterItMoved: one that has another address than it was associated with is found there.
func TestOneAfterItMoved(t *testing.T) {
	b := begin(t)
	ip := b.start("job")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job"})
	b.stop(ip)
	b.edit(&ipam.TakeAddress{Network: "net1", Owner: "printer", Interface: ipam.Interface{
		Wishes: []ipam.Wish{{Address: ip}}}})
	if b.start("job") == ip {
		t.Fatal("it has its address again, which the printer has")
	}
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "job"}, ipam.GuestAssociated, elastic)
}

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
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "web"})
}

func sameAddr(a, b netip.Addr) bool { return a == b }
