package elastic_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// thousands has an account with so many addresses, each associated with an owner of net1's second subnet.
func (b *bench) thousands(account string, n int) (first netip.Addr) {
	b.t.Helper()
	b.edit(&ipam.CreateAccount{Account: account, Owners: []string{"crowd/*"}})
	b.edit(&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: netip.MustParsePrefix("10.32.0.0/16")}})
	var r ipam.Range
	if err := r.UnmarshalText([]byte("198.18.0.0/16")); err != nil {
		b.t.Fatal(err)
	}
	edits := []ipam.Edit{&ipam.AddElasticRange{Range: r}}
	guest, one := addr("10.32.0.1"), addr("198.18.0.0")
	for i := range n {
		guest, one = guest.Next(), one.Next()
		owner := fmt.Sprintf("crowd/%d", i)
		edits = append(edits, &ipam.AddReservation{Network: "net1", Owner: owner, Wishes: []ipam.Wish{{Address: guest}}},
			&ipam.AllocateElastic{Account: account, Address: one}, &ipam.AssociateElastic{Address: one, Instance: owner})
		if len(edits) > ipam.MaxEdits-3 || i == n-1 {
			if _, err := b.Edit(b.t.Context(), ipam.EditOptions{}, edits...); err != nil {
				b.t.Fatal(err)
			}
			edits = nil
		}
	}
	return addr("198.18.0.1")
}

// TestThousandsOfAnAccount: an account is removed with more addresses than one transaction can release.
func TestThousandsOfAnAccount(t *testing.T) {
	b := begin(t)
	first := b.thousands("crowd", 2500)
	b.refused(&ipam.RemoveAccount{Account: "crowd"}, ipam.AccountInUse, first.String())
	b.edit(&ipam.RemoveAccount{Account: "crowd", Force: true})
	if all, err := b.Elastics(t.Context(), "", netip.Addr{}, 0); err != nil || len(all) != 2 {
		t.Errorf("%d addresses are left of two (%v)", len(all), err)
	}
}

// TestThousandsOfANetwork: a network is removed with more associations than one transaction can end.
func TestThousandsOfANetwork(t *testing.T) {
	b := begin(t)
	b.thousands("crowd", 2500)
	if err := b.ReleasePool(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	b.edit(&ipam.RemoveNetwork{Network: "net1", Force: true})
	all, err := b.Elastics(t.Context(), "crowd", netip.Addr{}, 0)
	if err != nil || len(all) != 2500 {
		t.Fatalf("the account has %d addresses (%v)", len(all), err)
	}
	for _, one := range all {
		if one.Associated {
			t.Fatalf("%s is associated still", one.Address)
		}
	}
	if _, err := b.Network(t.Context(), "net1"); !errors.Is(err, ipam.ErrNotFound) {
		t.Errorf("the network is there still: %v", err)
	}
}

// TestPages: the list by pages is the list.
func TestPages(t *testing.T) {
	b := begin(t)
	b.thousands("crowd", 30)
	var after netip.Addr
	n := 0
	for {
		page, err := b.Elastics(t.Context(), "crowd", after, 7)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, one := range page {
			if !after.Less(one.Address) || len(page) > 7 {
				t.Fatalf("%s comes behind %s, on a page of %d", one.Address, after, len(page))
			}
			after = one.Address
			n++
		}
	}
	if n != 30 {
		t.Errorf("the pages have %d addresses, of 30", n)
	}
}

// TestRevisions: the revision that an edit answers is the address's, and the next edit can be held to it.
func TestRevisions(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	out := b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	if seen := b.show(elastic).Revision; out.Revision != seen || seen == 0 {
		t.Errorf("the edit answers revision %d, and the address has %d", out.Revision, seen)
	}
	_, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: out.Revision - 1},
		&ipam.AllocateElastic{Address: addr(elastic)})
	if !errors.Is(err, ipam.ErrChanged) {
		t.Errorf("what was changed since is allocated: %v", err)
	}
	next := b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	if next.Revision <= out.Revision {
		t.Errorf("revision %d comes behind %d", next.Revision, out.Revision)
	}
	if freed := b.edit(&ipam.ReleaseElastic{Address: addr(elastic)}); freed.Revision != 0 {
		t.Errorf("a free address has the revision %d", freed.Revision)
	}
	_, err = b.Edit(t.Context(), ipam.EditOptions{IfMatch: 7}, &ipam.CreateAccount{Account: "one"})
	if !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("an account has no revision, and is made: %v", err)
	}
}
