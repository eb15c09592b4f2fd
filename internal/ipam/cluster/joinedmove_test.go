package cluster_test

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// moves reserves an address for an owner on a network. It replaces what the owner has on other networks, except
// on those in stays.
func (m *joinedHost) moves(network string, dry bool, stays ...string) (changes int, err error) {
	out, err := m.Edit(m.t.Context(), ipam.EditOptions{DryRun: dry},
		&ipam.AddReservation{Network: network, Owner: "shop/app/1", Replace: true, Only: append([]string{}, stays...)})
	return len(out.Changes), err
}

// BO-13: a service that moves from the host's own store to the cluster's, or back, keeps its address until it
// runs with the new one. What it stays on in either store is unchanged, and so is what others have.
func TestBO13AnotherStore(t *testing.T) {
	for way := range ipamtest.Rows(4, `
		own | lan | lab | lan lab own!
		lan | own | dmz | dmz lan! own
		lan | own | lab | lan! lab own
		own | lan | dmz | dmz lan own!
	`) {
		from, to, stays, both := way[0], way[1], way[2], way[3]
		t.Run(from+" to "+to+", and on "+stays, func(t *testing.T) {
			p, a := furnished(t)
			words := strings.NewReplacer("FROM", from, "TO", to, "STAYS", stays, "BOTH", both,
				"BEFORE", strings.ReplaceAll(strings.Replace(" "+both, " "+to, "", 1)[1:], "!", ""))
			p.plays(words.Replace(`
				reserve FROM shop/app/1
				reserve STAYS shop/app/1
				owns shop/app/1 -> BEFORE
			`))
			had := a.room.Owned([]string{stays}) + a.room.Owned([]string{from, "db"})
			tried, err := a.moves(to, true, stays)
			fine(t, err)
			p.plays(words.Replace("owns shop/app/1 -> BEFORE"))
			first, err := a.moves(to, false, stays)
			fine(t, err)
			if again, err := a.moves(to, false, stays); tried != 2 || first != 2 || again != 0 || err != nil {
				t.Errorf("a dry run says %d changes, the first run %d, the second %d (%v)", tried, first, again, err)
			}
			p.plays(words.Replace(`
				owns shop/app/1 -> BOTH
				# it does not run yet
				end shop/app/1 replaced
				owns shop/app/1 -> BOTH
				ask TO shop-app-1 telling
				end shop/app/1 replaced
			`))
			if got := a.owns("shop/app/1"); strings.Contains(got, "!") || strings.Contains(got, from) {
				t.Errorf("it runs with the new one, and has %s", got)
			}
			if has := a.room.Owned([]string{stays}) + a.room.Owned([]string{from, "db"}); has != had {
				t.Errorf("there is %s, and was %s", has, had)
			}
		})
	}
}

// If a reservation in the cluster's store cannot be marked as replaced, and the owner is known to have something
// there, the move reports that. Everything else continues.
func TestBO13AnotherStoreAway(t *testing.T) {
	p, a := furnished(t)
	p.plays(`
		cut
		own reserve own shop/new/1 replace
		reach
		reserve lan shop/app/1
		cut
	`)
	_, err := a.moves("own", false)
	refusedBy(t, "a move out of reach", err, ipam.ErrAway, "is reserved", "try again")
	a.reach()
	_, err = a.moves("own", false)
	fine(t, err)
	p.plays("owns shop/app/1 -> lan! own")
}
