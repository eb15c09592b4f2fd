package edit_test

import (
	"context"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// moves reserves for an owner what it is to have, and nothing elsewhere but on the networks that only names.
func moves(r *ipamtest.Room, network, owner, wishes string, only ...string) {
	r.T.Helper()
	if only == nil {
		only = []string{}
	}
	r.Edit(&ipam.AddReservation{Network: network, Owner: owner, Wishes: r.Wishes(wishes), Replace: true, Only: only})
}

func wantOwned(r *ipamtest.Room, want string) {
	r.T.Helper()
	if got := r.Owned([]string{""}); got != want {
		r.T.Errorf("reserved are %s\nwant %s", got, want)
	}
}

// BO-13: what an owner has on a network that it leaves is kept until it runs with what it has on the other; what it has
// on those that it stays on is as it was, and so is what others have.
func TestBO13AnotherNetwork(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network m subnet=198.51.100.0/28,pool
		network o subnet=203.0.113.0/28,pool
		reserve n a 192.0.2.5
		reserve n b 192.0.2.6
		reserve o a 203.0.113.5
		attach N net=n
		attach M net=m
		ask N a mac=1 -> 192.0.2.5
	`)
	moves(r, "m", "a", "", "o")
	wantOwned(r, "a=192.0.2.5*! b=192.0.2.6 a=198.51.100.1:a a=203.0.113.5")
	release := &ipam.ReleaseOwner{Owner: "a", Replaced: true}
	r.Edit(release)
	wantOwned(r, "a=192.0.2.5*! b=192.0.2.6 a=198.51.100.1:a a=203.0.113.5") // it does not run with the new one yet
	moves(r, "m", "a", "", "o")                                              // again: the same
	wantOwned(r, "a=192.0.2.5*! b=192.0.2.6 a=198.51.100.1:a a=203.0.113.5")
	r.Run(`back N 192.0.2.5
		ask M a mac=1 -> 198.51.100.1`)
	r.Edit(release)
	wantOwned(r, "b=192.0.2.6 a=198.51.100.1:a* a=203.0.113.5")
}

// BO-13: back again before anything ran with the new one: it has what it had, and the other one is kept for a while.
func TestBO13BackAgain(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network m subnet=198.51.100.0/28,pool
		reserve n a -> 192.0.2.1
	`)
	moves(r, "m", "a", "")
	moves(r, "n", "a", "", "gone")
	wantOwned(r, "a=192.0.2.1:a a=198.51.100.1:a!")
}

// What is on other networks is left alone where nothing is said of them, and asked about where the words contradict
// themselves.
func TestOnlyIsForReplace(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network m subnet=198.51.100.0/28,pool
		reserve n a -> 192.0.2.1
	`)
	r.Edit(&ipam.AddReservation{Network: "m", Owner: "a", Replace: true})
	wantOwned(r, "a=192.0.2.1:a a=198.51.100.1:a")
	_, err := r.S.Edit(context.Background(), ipam.EditOptions{},
		&ipam.AddReservation{Network: "m", Owner: "a", Only: []string{"n"}})
	if ipamtest.KindOf(err) != "invalid" {
		t.Errorf("only without replace: %v", err)
	}
}

// BO-5: in a state that is rebuilt from what runs, too, who says what there is to be in the end may say it twice, as
// `berth compose` does; the address of another is refused.
func TestBO5ForgetsCompose(t *testing.T) {
	r := ipamtest.Forgetful(t)
	r.Edit(&ipam.CreateNetwork{Name: "n",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/28"), Pool: true}}})
	r.Edit(&ipam.CreateNetwork{Name: "d", Type: "dynamic",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("198.51.100.0/28")}}})
	for range 2 {
		moves(r, "n", "a", "192.0.2.5", "d")
		moves(r, "n", "b", "", "d")
		moves(r, "d", "a", "", "n")
		if got := r.Owned([]string{"n"}); got != "b=192.0.2.1:a a=192.0.2.5" {
			t.Errorf("reserved are %s", got)
		}
	}
	_, err := r.S.Edit(context.Background(), ipam.EditOptions{},
		&ipam.AddReservation{Network: "n", Owner: "b", Wishes: r.Wishes("192.0.2.5"), Replace: true})
	if ipam.CodeOf(err) != ipam.AlreadyInUse {
		t.Errorf("the address of another: %v", err)
	}
}
