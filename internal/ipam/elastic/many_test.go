package elastic_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
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

// TestDryRunOfThousands: what an account of many addresses would release is shown where one transaction holds it, and
// else refused with the reason, without a word of several requests.
func TestDryRunOfThousands(t *testing.T) {
	b := begin(t)
	b.crowd(900)
	remove := &ipam.RemoveAccount{Account: "crowd", Force: true}
	out, err := b.Edit(t.Context(), ipam.EditOptions{DryRun: true}, remove)
	if err != nil || len(out.Results) != 1 || len(out.Results[0].Addresses) != 900 {
		t.Fatalf("a dry run of 900 comes to %d results, %v", len(out.Results), err)
	}
	var all []ipam.Edit
	for one, i := addr("198.18.100.0"), 0; i < 4500; i++ {
		all = append(all, &ipam.AllocateElastic{Account: "crowd", Address: one})
		if one = one.Next(); len(all) == ipam.MaxEdits || i == 4499 {
			if _, err := b.Edit(t.Context(), ipam.EditOptions{}, all...); err != nil {
				t.Fatal(err)
			}
			all = nil
		}
	}
	if _, err = b.Edit(t.Context(), ipam.EditOptions{DryRun: true}, remove); !errors.Is(err, ipam.ErrInvalid) ||
		!strings.Contains(err.Error(), "a dry run shows what one transaction holds") {
		t.Fatalf("a dry run of 5400: %v", err)
	}
	b.consistent()
	b.edit(remove)
}

// TestLowest: the lowest free address is the one that a look at each finds, whatever was taken and given back, and in
// whichever order (CS-2).
func TestLowest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := begin(t)
		defer b.Ledger.Store().Close()
		b.edit(&ipam.AddElasticRange{Range: rangeAt(t, "2001:db8::10-2001:db8::13")})
		b.reserve("web", "10.20.0.9")
		drawn := func() netip.Addr {
			from := rapid.SampledFrom([]string{elastic, "2001:db8::10"}).Draw(rt, "range")
			at := addr(from)
			for range rapid.IntRange(0, 3).Draw(rt, "at") {
				at = at.Next()
			}
			return at
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			var e ipam.Edit
			switch rapid.SampledFrom([]string{"take", "any", "release", "map", "forget", "left"}).Draw(rt, "what") {
			case "take":
				e = &ipam.AllocateElastic{Address: drawn()}
			case "release":
				e = &ipam.ReleaseElastic{Address: drawn()}
			case "map": // so that it waits for the edge when it is released
				one := drawn()
				_, _ = b.Edit(t.Context(), ipam.EditOptions{}, &ipam.AssociateElastic{Address: one, Instance: "web"})
				b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: one}}})
				e = &ipam.DisassociateElastic{Address: one}
			case "left": // released, and the edge that had it is no more
				one := &ipam.Elastic{Address: drawn(), State: ipam.ElasticReleasing, Account: ipam.DefaultAccount}
				err := b.Ledger.Update(t.Context(), func(c *ledger.Change) error { return c.SetElastic(one.Address, one) })
				if err != nil {
					rt.Fatal(err)
				}
				continue
			case "forget":
				b.report(ipam.EdgeReport{Whole: true})
				continue
			case "any":
				want, err := b.Lowest(t.Context(), "")
				if err != nil {
					rt.Fatal(err)
				}
				out, err := b.Edit(t.Context(), ipam.EditOptions{}, &ipam.AllocateElastic{})
				if err != nil && want.IsValid() || err == nil && out.Results[0].Addresses[0] != want {
					rt.Fatalf("%s is the lowest free one, and the answer is %v %v", want, out.Results, err)
				}
				continue
			}
			_, _ = b.Edit(t.Context(), ipam.EditOptions{}, e)
		}
		b.consistent()
	})
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
	out, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: b.show(elastic).Revision},
		&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	if err != nil {
		t.Fatal(err)
	}
	if seen := b.show(elastic).Revision; out.Revision != seen || seen == 0 {
		t.Errorf("the edit answers revision %d, and the address has %d", out.Revision, seen)
	}
	for _, e := range []ipam.Edit{&ipam.AllocateElastic{Address: addr(elastic)},
		&ipam.DisassociateElastic{Address: addr(elastic)}} {
		_, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: out.Revision - 1}, e)
		if !errors.Is(err, ipam.ErrChanged) {
			t.Errorf("what was changed since is changed by %s: %v", e.Op(), err)
		}
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
