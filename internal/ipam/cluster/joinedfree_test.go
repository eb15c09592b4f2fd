package cluster_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// What is found is of both stores, in one order, however long the pages are; and `global`, which each store has from
// the beginning, is found once.
func TestJoinedFind(t *testing.T) {
	p, a := furnished(t)
	ctx := t.Context()
	kinds := func(found []ipam.Found) (all []string) {
		for _, one := range found {
			all = append(all, fmt.Sprint(one.Kind, " ", one.What))
		}
		return all
	}
	found := listed(t, a.Find(ctx, ipam.FindFilter{Word: "router"}))
	places := map[string]bool{}
	for _, one := range found {
		places[one.Space] = true
	}
	if len(found) < 4 || len(places) != 4 {
		t.Errorf("router is found in %v: %q", places, kinds(found))
	}
	b := p.host("b") // sees the cluster's alone, and what is its own
	theirs := listed(t, b.Find(ctx, ipam.FindFilter{Word: "router"}))
	if len(theirs) == 0 || len(theirs) >= len(found) {
		t.Errorf("host b finds %d, host a %d", len(theirs), len(found))
	}
	for _, one := range theirs {
		if one.Space != ipam.GlobalSpace && one.Space != "dmz" {
			t.Errorf("host b finds what is of host a alone: %+v", one)
		}
	}
	global := 0
	for _, one := range listed(t, a.Find(ctx, ipam.FindFilter{Word: "global"})) {
		if one.Kind == ipam.FoundSpace {
			global++
		}
	}
	if global != 1 {
		t.Errorf("the space global is found %d times", global)
	}
	for _, word := range []string{"a", "10.", "router", "lan"} {
		whole := listed(t, a.Find(ctx, ipam.FindFilter{Word: word}))
		if len(whole) < 2 || !slices.IsSortedFunc(whole, func(x, y ipam.Found) int { return x.Mark().Compare(y.Mark()) }) {
			t.Errorf("%q finds, in no order: %q", word, kinds(whole))
		}
		for i := range whole {
			rest := listed(t, a.Find(ctx, ipam.FindFilter{Word: word, After: whole[i].Mark()}))
			if !slices.Equal(kinds(rest), kinds(whole[i+1:])) {
				t.Errorf("%q behind %s %s: %q, not %q", word, whole[i].Kind, whole[i].What, kinds(rest), kinds(whole[i+1:]))
			}
		}
	}
	err := lastError(a.Find(ctx, ipam.FindFilter{}))
	refusedBy(t, "no word", err, ipam.ErrInvalid)
}

// What is free is told by the store that has the network, and what would be given next is what is then given: on each
// host of a cluster, one after the other.
func TestJoinedFree(t *testing.T) {
	p := newParish(t)
	hosts := []*manor{p.host("a"), p.host("b"), p.host("c")}
	ctx := t.Context()
	hosts[0].must(planned("lan", ipam.GlobalSpace, "10.77.0.0/28"))
	for i, h := range hosts {
		h.must(planned("own", "", fmt.Sprintf("10.1.%d.0/29", i)))
		comesTo(t, "each host sees the network", func() bool {
			_, err := h.Network(ctx, "lan")
			return err == nil
		})
	}
	given := map[netip.Addr]string{}
	pools := map[string]ipam.ID{}
	for round := range 3 {
		for i, h := range hosts {
			for _, network := range []string{"lan", "own"} {
				at := fmt.Sprint(network, " on host ", i)
				if _, has := pools[at]; !has {
					grant, err := h.RequestPool(ctx, ipam.PoolRequest{Network: network})
					fine(t, err)
					pools[at] = grant.ID
				}
				free, err := h.Free(ctx, network, ipam.FreeFilter{})
				fine(t, err)
				next, err := h.NextFree(ctx, network, ipam.FreeFilter{})
				fine(t, err)
				got, err := h.RequestAddress(ctx, ipam.AddressRequest{Pool: pools[at], MAC: ipamtest.MAC(10*round + i),
					Name: fmt.Sprint("c", round, i)})
				fine(t, err)
				if len(next) != 1 || next[0].Start != got.Addr() || next[0].End != got.Addr() {
					t.Errorf("%s: %v was to be given next, and %s is given", at, next, got)
				}
				within := func(r ipam.FreeRange) bool { return !got.Addr().Less(r.Start) && !r.End.Less(got.Addr()) }
				if !slices.ContainsFunc(free, within) {
					t.Errorf("%s: %s is given, and free were %v", at, got, free)
				}
				if who, taken := given[got.Addr()]; taken {
					t.Errorf("%s: %s is given twice; %s has it", at, got, who)
				}
				given[got.Addr()] = at
				after, err := h.Free(ctx, network, ipam.FreeFilter{})
				fine(t, err)
				if slices.ContainsFunc(after, within) {
					t.Errorf("%s: %s is still free: %v", at, got, after)
				}
			}
		}
	}
	for _, h := range hosts {
		_, err := h.Free(ctx, "nowhere", ipam.FreeFilter{})
		refusedBy(t, "free", err, ipam.ErrNotFound, "there is no")
		_, err = h.NextFree(ctx, "nowhere", ipam.FreeFilter{})
		refusedBy(t, "next", err, ipam.ErrNotFound, "there is no")
	}
}

// A network of which nobody can say what is free, as its store was never reached, is said to be out of sight.
func TestJoinedFreeAway(t *testing.T) {
	p := newParish(t)
	b := p.host("b")
	b.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	lan, err := b.Network(t.Context(), "lan")
	fine(t, err)
	a := p.away("a", time.Now)
	a.must(planned("own", "", "10.1.0.0/24"))
	for what, err := range map[string]error{
		"free": second(a.Free(t.Context(), lan.ID.String(), ipam.FreeFilter{})),
		"next": second(a.NextFree(t.Context(), "lan", ipam.FreeFilter{})),
	} {
		refusedBy(t, what, err, ipam.ErrAway, "out of reach")
	}
	if next, err := a.NextFree(t.Context(), "own", ipam.FreeFilter{}); err != nil || len(next) != 1 {
		t.Errorf("of its own network: %v, %v", next, err)
	}
	if found := listed(t, a.Find(t.Context(), ipam.FindFilter{Word: "own"})); len(found) == 0 {
		t.Error("what is its own is not found")
	}
}
