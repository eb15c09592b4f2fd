package elastic_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// thousands allocates n addresses to the account crowd, and associates each with an owner on net1's second
// subnet.
func (b *bench) thousands(n int) (first netip.Addr) {
	b.t.Helper()
	b.plays(`
		account crowd crowd/*
		subnet net1 10.32.0.0/16
		range 198.18.0.0/16
	`)
	var edits []ipam.Edit
	guest, one := addr("10.32.0.1"), addr("198.18.0.0")
	for i := range n {
		guest, one = guest.Next(), one.Next()
		owner := fmt.Sprintf("crowd/%d", i)
		edits = append(edits, &ipam.AddReservation{Network: "net1", Owner: owner, Wishes: []ipam.Wish{{Address: guest}}},
			&ipam.AllocateElastic{Account: "crowd", Address: one},
			&ipam.AssociateElastic{Address: one, Instance: owner})
		if len(edits) > ipam.MaxEdits-3 || i == n-1 {
			if _, err := b.Edit(b.t.Context(), ipam.EditOptions{}, edits...); err != nil {
				b.t.Fatal(err)
			}
			edits = nil
		}
	}
	return addr("198.18.0.1")
}

// TestThousands: a network with more associations than one transaction can end is removed, then an account with
// more addresses than one transaction can release.
func TestThousands(t *testing.T) {
	b := begin(t)
	first := b.thousands(2500)
	b.plays(`
		detach
		network.rm net1 force
	`)
	all, err := b.Elastics(t.Context(), "crowd", netip.Addr{}, 0)
	if err != nil || len(all) != 2500 ||
		slices.ContainsFunc(all, func(e ipam.ElasticInfo) bool { return e.Associated }) {
		t.Fatalf("the account has %d addresses, of which some are associated (%v)", len(all), err)
	}
	if _, err := b.Network(t.Context(), "net1"); !errors.Is(err, ipam.ErrNotFound) {
		t.Errorf("the network is there still: %v", err)
	}
	b.plays("account.rm crowd ! AccountInUse; " + first.String() + "\naccount.rm crowd force")
	if all, err := b.Elastics(t.Context(), "", netip.Addr{}, 0); err != nil || len(all) != 2 {
		t.Errorf("%d addresses are left of two (%v)", len(all), err)
	}
}

// TestDryRunOfThousands: a dry run shows what an account with many addresses would release if one transaction
// holds it. Otherwise it is refused with the reason, and does not speak of several requests.
func TestDryRunOfThousands(t *testing.T) {
	remove := &ipam.RemoveAccount{Account: "crowd", Force: true}
	begins(t, `
		crowd 900
		# each, and the account
		try account.rm crowd force -> 901
	`)
	_, err := begins(t, "crowd 5400").Edit(t.Context(), ipam.EditOptions{DryRun: true}, remove)
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "do not fit in one transaction") {
		t.Fatalf("a dry run of 5400: %v", err)
	}
}

// TestLowest: the lowest free address is the one that a check of each address finds, whatever was taken and
// released, in any order (CS-2).
func TestLowest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &story{bench: begins(t, `
			range 2001:db8::10-2001:db8::13
			reserve net1 web G9
		`)}
		defer s.Ledger.Store().Close()
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			step := drawn(rt, "allocate $ADDR\nallocate\nfree $ADDR\nto $ADDR web;applies;off $ADDR\nleft $ADDR\nwhole",
				map[string][]string{"$ADDR": {"E0", "E1", "E2", "E3", "2001:db8::10", "2001:db8::11", "2001:db8::13"}})
			left, released := strings.CutPrefix(step, "left ")
			switch {
			case released: // and its edge is gone
				one := &ipam.Elastic{Address: addr(short.ReplaceAllStringFunc(left, long)),
					State: ipam.ElasticReleasing, Account: ipam.DefaultAccount}
				must(s.bench, s.Ledger.Update(t.Context(),
					func(c *ledger.Change) error { return c.SetElastic(one.Address, one) }))
			case step == "allocate":
				want, err := s.Lowest(t.Context(), "")
				must(s.bench, err)
				got, err := s.step([]string{"allocate"})
				if err != nil && want.IsValid() || err == nil && got != want.String() {
					rt.Fatalf("%s is the lowest free one, and the answer is %s %v after%s", want, got, err, s.follows)
				}
			default:
				s.tries(step)
			}
		}
		s.consistent()
	})
}

// TestPages: all pages together are the whole list.
func TestPages(t *testing.T) {
	b := begin(t)
	b.thousands(30)
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

// TestRevisions: the revision that an edit returns is the address's, and the next edit can require it.
func TestRevisions(t *testing.T) {
	b := begins(t, "reserve net1 web G9")
	revision := func() uint64 {
		info, err := b.Elastic(t.Context(), addr(elastic))
		must(b, err)
		return info.Revision
	}
	edit := func(step string, matches uint64) (uint64, error) {
		step = short.ReplaceAllStringFunc(step, long)
		out, err := b.Edit(t.Context(), ipam.EditOptions{IfMatch: matches}, b.read(strings.Fields(step))...)
		return out.Revision, err
	}
	first, err := edit("to E0 web", revision())
	if seen := revision(); err != nil || first != seen || seen == 0 {
		t.Errorf("the edit answers revision %d, %v, and the address has %d", first, err, seen)
	}
	for _, step := range []string{"allocate E0", "off E0"} {
		if _, err := edit(step, first-1); !errors.Is(err, ipam.ErrChanged) {
			t.Errorf("what was changed since is changed by %s: %v", step, err)
		}
	}
	if then, err := edit("off E0", 0); err != nil || then <= first {
		t.Errorf("revision %d comes behind %d, %v", then, first, err)
	}
	if freed, err := edit("free E0", 0); err != nil || freed != 0 {
		t.Errorf("a free address has the revision %d, %v", freed, err)
	}
	if _, err := edit("account one", 7); !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("an account has no revision, and is made: %v", err)
	}
}
