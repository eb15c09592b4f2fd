package service_test

import (
	"net/netip"
	"testing"

	"berth/internal/golden"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// shownOf returns all that Berth shows.
func shownOf(t *testing.T, r *ipamtest.Stage) map[string]any {
	t.Helper()
	all := map[string]any{}
	add := func(name string, list any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = list
	}
	spaces, err := r.S.Spaces(ctx)
	add("spaces", spaces, err)
	networks, err := r.S.Networks(ctx, ipam.NetworkFilter{})
	add("networks", networks, err)
	for _, n := range networks {
		add("network "+n.Name, r.Show(n.ID.String()), nil)
	}
	subnets, err := r.S.Subnets(ctx, "")
	add("subnets", subnets, err)
	add("leases", ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}), nil)
	accounts, err := r.S.Accounts(ctx)
	add("accounts", accounts, err)
	ranges, err := r.S.ElasticRanges(ctx)
	add("elastic ranges", ranges, err)
	elastics, err := r.S.Elastics(ctx, "", netip.Addr{}, 100)
	add("elastic addresses", elastics, err)
	events, err := r.S.Events(ctx, ipam.EventFilter{})
	add("events", events, err)
	return all
}

// TestGoldenKinds: the golden state has each kind of record that a host has in a store of its own.
func TestGoldenKinds(t *testing.T) {
	ipamtest.Golden(t)
	kinds := map[byte]bool{}
	for _, rec := range golden.Records(t, "state.txt") {
		kinds[rec.Key[0]] = true
	}
	// TestGoldenCluster has the kinds of a cluster. c marks a copy, and such a state is refused.
	for _, kind := range []byte("adefgiklmnopstuwx") {
		if !kinds[kind] {
			t.Errorf("it has no record of the kind %c", kind)
		}
	}
}

// GA-26, formats: a state of 1.0 opens, is sound, and shows the same as in 1.0.
func TestGoldenState(t *testing.T) {
	r := ipamtest.Golden(t)
	r.Open()
	if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	golden.JSON(t, "shown.json", shownOf(t, r))
}

// GA-26, invariant 5: Docker's ids stay valid, repeated requests get the same addresses, and all of it can end.
func TestGoldenStateGoesOn(t *testing.T) {
	r := ipamtest.Golden(t)
	r.Open()
	r.Run(`
		ask O web mac=11 -> 10.4.0.3
		ask O db mac=12 -> 10.4.0.4
		ask O other mac=97 -> 10.4.0.6
		ask O gone mac=99 -> 10.4.0.5
		ask O mail mac=98 -> 10.4.0.210
		ask C one mac=21 -> 10.5.0.64
		ask C mac=96 ip=10.5.0.77 ! inuse
		ask L lab mac=23 -> 10.5.0.1
		ask S mac=24 ip=2001:db8:1::77 -> 2001:db8:1::77
		attach D cidr=10.5.0.0/24 range=10.5.0.0/25 ! overlap
		reserve office later -> 10.4.0.7
	`)
	for name, id := range r.Pools {
		if err := r.S.ReleasePool(ctx, id); err != nil {
			t.Errorf("the end of %s: %v", name, err)
		}
	}
	r.Run("show networks -> net1 office seen spare") // Docker's own networks ended with their pools
}
