package cluster_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// owned shows what an owner has in both stores; ! marks what was replaced.
func (m *manor) owned(owner string) string {
	m.t.Helper()
	var all []string
	for _, r := range listed(m.t, m.Reservations(m.t.Context(), ipam.AddressFilter{Owner: owner})) {
		mark := map[bool]string{true: "!"}[r.Replaced]
		all = append(all, fmt.Sprintf("%s=%s%s", r.Network, r.Address, mark))
	}
	return strings.Join(all, " ")
}

// BO-13: a service that moves from the host's own store to the cluster's, or back, keeps its address until it runs with
// the new one; what it stays on in either store is as it was, and so is what others have.
func TestBO13AnotherStore(t *testing.T) {
	cidrs := map[string]netip.Prefix{"own": netip.MustParsePrefix("10.1.0.0/24"),
		"lan": netip.MustParsePrefix("10.77.0.0/24")}
	for _, way := range []struct{ from, to, stays string }{{"own", "lan", "lab"}, {"lan", "own", "dmz"},
		{"lan", "own", "lab"}, {"own", "lan", "dmz"}} {
		t.Run(way.from+" to "+way.to+", and on "+way.stays, func(t *testing.T) {
			_, a := furnished(t)
			other := a.owned("db")
			for _, network := range []string{way.from, way.stays} {
				a.must(&ipam.AddReservation{Network: network, Owner: "shop/app/1"})
			}
			before := map[string]string{}
			for _, r := range listed(t, a.Reservations(t.Context(), ipam.AddressFilter{Owner: "shop/app/1"})) {
				before[r.Network] = r.Address.String()
			}
			move := &ipam.AddReservation{Network: way.to, Owner: "shop/app/1", Replace: true, Only: []string{way.stays}}
			tried, err := a.Edit(t.Context(), ipam.EditOptions{DryRun: true}, move)
			fine(t, err)
			if got := a.owned("shop/app/1"); strings.Contains(got, "!") || strings.Contains(got, way.to+"=") {
				t.Errorf("after a dry run: %s", got)
			}
			for i := range 2 {
				out := a.must(move)
				if want := 2 * (1 - i); len(out.Changes) != want || i == 0 && len(tried.Changes) != want {
					t.Errorf("run %d changes %v, and a dry run said %v", i, out.Changes, tried.Changes)
				}
			}
			now := a.owned("shop/app/1")
			for _, want := range []string{way.from + "=" + before[way.from] + "!", way.to + "=", way.stays + "=" +
				before[way.stays]} {
				if !strings.Contains(now, want) || strings.Contains(now, way.stays+"="+before[way.stays]+"!") {
					t.Errorf("%s is not in %s", want, now)
				}
			}
			release := &ipam.ReleaseOwner{Owner: "shop/app/1", Replaced: true}
			a.must(release)
			if got := a.owned("shop/app/1"); got != now {
				t.Errorf("it does not run yet, and has %s", got)
			}
			pool, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: way.to, CIDR: cidrs[way.to]})
			fine(t, err)
			_, err = a.RequestAddress(t.Context(),
				ipam.AddressRequest{Pool: pool.ID, Name: "shop-app-1", Telling: true})
			fine(t, err)
			a.must(release)
			if got := a.owned("shop/app/1"); strings.Contains(got, "!") || strings.Contains(got, way.from+"=") {
				t.Errorf("it runs with the new one, and has %s", got)
			}
			if got := a.owned("db"); got != other {
				t.Errorf("another one has %s, and had %s", got, other)
			}
		})
	}
}

// What cannot be marked in the cluster's store is told, where the owner is known to have something there; all else goes
// on.
func TestBO13AnotherStoreAway(t *testing.T) {
	_, a := furnished(t)
	a.must(&ipam.AddReservation{Network: "lan", Owner: "shop/app/1"})
	a.handle.Cut(errNoEtcd)
	a.must(&ipam.AddReservation{Network: "own", Owner: "shop/new/1", Replace: true, Only: []string{}})
	move := &ipam.AddReservation{Network: "own", Owner: "shop/app/1", Replace: true, Only: []string{}}
	_, err := a.Edit(t.Context(), ipam.EditOptions{}, move)
	refusedBy(t, "a move out of reach", err, ipam.ErrAway, "is reserved", "ask for it again")
	a.reach()
	a.must(move)
	if got := a.owned("shop/app/1"); !strings.Contains(got, "lan=") || strings.Count(got, "!") != 1 {
		t.Errorf("it has %s", got)
	}
}
