package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestMoves: an automatic address that is excluded, or outside of every pool, is replaced where a deploy says so, once,
// and kept until the owner runs with the new one; the others stay, and so does what a person has reserved by address
// (BO-9, BO-13).
func TestMoves(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`network net1 subnet=192.0.2.0/24
pool net1 192.0.2.10+10
reserve net1 shop/web/1
reserve net1 shop/web/2
reserve net1 shop/web/3 192.0.2.99
exclude net1 192.0.2.10`)
	ask := func(moves bool) (has []string) {
		t.Helper()
		for n := 1; n <= 3; n++ {
			out, err := r.S.Edit(ctx, ipam.EditOptions{}, &ipam.AddReservation{Network: "net1",
				Owner: fmt.Sprintf("shop/web/%d", n), Wishes: []ipam.Wish{{Subnet: "192.0.2.0/24"}}, Replace: true, Moves: moves})
			fine(t, err)
			has = append(has, out.Results[0].Addresses[0].String())
		}
		return has
	}
	for range 2 {
		if got := strings.Join(ask(true), " "); got != "192.0.2.12 192.0.2.11 192.0.2.99" {
			t.Errorf("they have %s", got)
		}
	}
	r.Run(`exclude net1 192.0.2.11`)
	if got := strings.Join(ask(false), " "); got != "192.0.2.12 192.0.2.11 192.0.2.99" {
		t.Errorf("where nothing is to move they have %s", got)
	}
	var held []string
	for one, err := range r.S.Reservations(ctx, ipam.AddressFilter{Network: "net1", Owner: "shop/web/1"}) {
		fine(t, err)
		held = append(held, fmt.Sprint(one.Address, one.Replaced))
	}
	if got := strings.Join(held, " "); got != "192.0.2.10 true 192.0.2.12 false" {
		t.Errorf("of the one that moved %s is held", got)
	}
	_, err := r.S.Edit(ctx, ipam.EditOptions{}, &ipam.AddReservation{Network: "net1", Owner: "shop/web/1", Moves: true})
	if err == nil || !strings.Contains(err.Error(), "ask for replace, or leave out moves") {
		t.Errorf("without replace: %v", err)
	}
}
