package elastic_test

import (
	"strings"
	"testing"

	"berth/internal/ipam"
)

// TestClaims: a new account does not take over a container to which another account's address is mapped, whether it
// runs or not (CS-14).
func TestClaims(t *testing.T) {
	b := begin(t)
	ip := b.start("shop-web-1")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-web-1"})
	claims := &ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}}
	b.refused(claims, ipam.OtherAccount, "shop-web-1", elastic, "default")
	b.stop(ip)
	b.refused(claims, ipam.OtherAccount, "shop-web-1", elastic)
	b.edit(&ipam.CreateAccount{Account: "other", Owners: []string{"other/*"}})
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.edit(claims)
	b.start("shop-web-1")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "shop-web-1"}, ipam.OtherAccount, "shop")
}

// TestOfAnotherAccountSince: a container that has come to be another account's, because its name means somebody else on
// its network now, is mapped no more, whether it runs or not, and that is found; it is mapped again when it is the
// account's again (CS-14).
func TestOfAnotherAccountSince(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.CreateAccount{Account: "ops", Owners: []string{"timer/*"}})
	b.start("cron-7")
	b.reserve("cron-9", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "cron-7"})
	b.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "cron-9"})
	means := func(owner string, mapped int) {
		t.Helper()
		rule := ipam.OwnerRule{Pattern: "cron-*", Owner: owner}
		b.edit(&ipam.ModifyNetwork{Network: "net1", OwnerRules: []ipam.OwnerRule{rule}})
		if set := b.wanted().Set; len(set) != mapped {
			t.Errorf("while cron-* means %s an edge is told %+v", owner, set)
		}
		if got := b.show(elastic); !got.Associated || got.Account != ipam.DefaultAccount {
			t.Errorf("while cron-* means %s it is shown as %+v", owner, got)
		}
	}
	means("job/*", 2)
	means("timer/*", 0)
	check, err := b.CheckElastic(t.Context())
	if err != nil || len(check.Findings) != 1 || check.Findings[0].Address != addr(elastic) ||
		!strings.Contains(check.Findings[0].Detail, "cron-7 is account ops's by now") {
		t.Errorf("it is found: %+v %v", check.Findings, err)
	}
	means("job/*", 2)
}

// TestShownInterface: an address shows at which interface of its owner its guest is: that of the reservation which the
// association means, the first one for a guest without any, and that of the guest to which it leads after a move
// (CS-6).
func TestShownInterface(t *testing.T) {
	b := begin(t)
	b.secondNetwork("", "10.21.0.0/24")
	b.edit(&ipam.AddReservation{Network: "net1", Owner: "web", Wishes: []ipam.Wish{{Address: addr("10.20.0.9")},
		{Slot: 1, Address: addr("10.20.0.10")}}})
	b.edit(&ipam.AddReservation{Network: "net2", Owner: "web", Number: 1,
		Wishes: []ipam.Wish{{Address: addr("10.21.0.9")}}})
	shown := func(when, guest string, number int) {
		t.Helper()
		if got := b.show(elastic); got.Interface != number || got.Guest != addr(guest) {
			t.Errorf("%s it is shown at interface %d with the guest %s", when, got.Interface, got.Guest)
		}
	}
	for _, at := range []struct {
		guest  string
		number int
	}{{"10.20.0.9", 0}, {"10.21.0.9", 1}, {"10.20.0.10", 0}, {"10.21.0.9", 1}} {
		b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", Guest: addr(at.guest), Move: true})
		shown("associated there", at.guest, at.number)
	}
	b.edit(&ipam.RemoveReservation{Network: "net2", Owner: "web"})
	shown("without its reservation", "10.21.0.9", 0)
	ip := b.start("job")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "job", Move: true})
	shown("at one that has none", ip.String(), 0)
}
