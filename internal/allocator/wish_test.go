package allocator_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// wishCase is the state of an address: its holder, the state of a container w that requests it by its own
// configuration, whether it is reserved for r, and its last holder.
type wishCase struct{ holder, wish, reserved, last string }

// mayAsk is the column "asked for by address" of the table "Who may have an address" in docs/dev/design.md.
func (c wishCase) mayAsk(who string) bool {
	switch {
	case c.holder != "":
		return false
	case c.reserved != "":
		return who == c.reserved
	}
	return true
}

// mayBeChosen is the column "chosen for" of that table.
func (c wishCase) mayBeChosen(who string) bool {
	switch {
	case c.holder != "":
		return false
	case c.reserved != "":
		return who == c.reserved
	case c.wish == "stopped": // w requests the address itself
		return who == "w" && who == c.last
	case c.wish == "never ran":
		return who != "" && who == c.last
	}
	return true
}

// room returns a service in which the only address of a pool has that state.
func (c wishCase) room(t *testing.T) *ipamtest.Stage {
	r := ipamtest.NewAt(t, "")
	r.Run(`
		network net1 subnet=192.0.2.0/29
		pool net1 192.0.2.2-192.0.2.2
		attach A net=net1`)
	run := func(line, who string) {
		if who != "" {
			r.Line(fmt.Sprintf(line, who))
		}
	}
	if c.last != "" {
		run("ask A %s -> 192.0.2.2", c.last)
		r.Run("back A 192.0.2.2\nwait 1h")
	}
	run("reserve net1 %s 192.0.2.2", c.reserved)
	if c.holder != "" { // a request without a name gets the address of another container
		r.Line("ask A ip=192.0.2.2 -> 192.0.2.2")
		run("seen 192.0.2.2 %s", c.holder)
	}
	switch c.wish {
	case "stopped", "runs":
		r.Line("want 192.0.2.2 w")
	case "never ran":
		r.Line("want 192.0.2.2 w new")
	}
	return r
}

// comer is a container that requests an address.
type comer struct{ who, way string }

// ask reports whether the container gets the address.
func (c comer) ask(r *ipamtest.Stage) bool {
	req := ipam.AddressRequest{Pool: r.Pools["A"], Name: c.who}
	switch c.way {
	case "by a guess":
		r.Line("idle " + c.who)
		req.Name = ""
	case "by address":
		req.Preferred = netip.MustParseAddr("192.0.2.2")
	}
	got, err := r.S.RequestAddress(r.T.Context(), req)
	if refused := new(ipam.Refusal); err != nil && !errors.As(err, &refused) {
		r.T.Fatal(err)
	}
	return err == nil && got.Addr() == netip.MustParseAddr("192.0.2.2")
}

// may returns what the table says about the container.
func (c comer) may(of wishCase) bool {
	switch c.way {
	case "by address":
		return of.mayAsk(c.who)
	case "by a guess": // a guess refuses nobody
		return of.mayBeChosen(c.who) || of.mayBeChosen("")
	}
	return of.mayBeChosen(c.who)
}

// TestWishes tests each case of that table: an address that a container requests by its own configuration, in each
// state, against each requester, by name, by a guess, and by address.
func TestWishes(t *testing.T) {
	var cases []wishCase
	for _, reserved := range []string{"", "r"} {
		for _, last := range []string{"", "l", "w"} {
			cases = append(cases, wishCase{"w", "runs", reserved, last})
			for _, wish := range []string{"", "stopped", "never ran"} {
				cases = append(cases, wishCase{"", wish, reserved, last}, wishCase{"h", wish, reserved, last})
			}
		}
	}
	for _, c := range cases {
		for _, who := range []string{"w", "r", "l", "stranger"} {
			for _, way := range []string{"by name", "by a guess", "by address"} {
				comes := comer{who, way}
				if got, may := comes.ask(c.room(t)), comes.may(c); got != may {
					t.Errorf("%+v, and %+v comes: he has it is %t, and the table says %t", c, comes, got, may)
				}
			}
		}
	}
}
