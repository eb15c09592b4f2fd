package elastic_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
)

// trigger is a change of one kind of record, after which an edge is to be told something else.
type trigger struct {
	name    string
	prepare func(*bench)
	change  func(*bench)
}

func triggers() []trigger {
	mac := ipam.MAC{2, 0, 0, 0, 0, 7}
	web := func(b *bench) {
		b.reserve("web", "10.20.0.9")
		b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	}
	rule := func(owner string) *ipam.ModifyNetwork {
		return &ipam.ModifyNetwork{Network: "net1", OwnerRules: []ipam.OwnerRule{{Pattern: "cron-*", Owner: owner}}}
	}
	return []trigger{
		{"a lease", web, func(b *bench) { b.start("web") }},
		{"an address", web, func(b *bench) { b.edit(&ipam.DisassociateElastic{Address: addr(elastic)}) }},
		{"a network whose names mean others", func(b *bench) {
			b.edit(rule("timer/*"))
			b.start("cron-7")
			b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "timer/7"})
		}, func(b *bench) { b.edit(rule("job")) }},
		{"a subnet of another size", func(b *bench) {
			b.secondNetwork("", "10.21.0.0/24")
			b.edit(&ipam.AddReservation{Network: "net2", Owner: "web"})
			b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
		}, func(b *bench) {
			other := netip.MustParsePrefix("10.21.0.0/25")
			b.edit(&ipam.ModifySubnet{Network: "net2", Subnet: "10.21.0.0/24", CIDR: &other})
		}},
		{"an account whose containers are another's", func(b *bench) {
			b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
			b.reserve(mac.String(), "10.20.0.30")
			b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: mac.String()})
			if _, err := b.RequestAddress(b.t.Context(), ipam.AddressRequest{Pool: b.pool, Name: "shop-cart-1",
				MAC: mac}); err != nil {
				b.t.Fatal(err)
			}
		}, func(b *bench) { b.edit(&ipam.RemoveAccount{Account: "shop"}) }},
		{"a range", web, func(b *bench) {
			b.edit(&ipam.AddElasticRange{Range: rangeAt(b.t, "198.51.100.0/28")})
		}},
	}
}

// told is what an edge has been told, ranges and mappings.
func told(b *bench, tracked *room.Followed) string {
	b.t.Helper()
	got, err := tracked.Told(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return shown(got, tracked.Ranges())
}

func shown(mappings map[netip.Addr]ipam.EdgeMapping, ranges []ipam.EdgeRange) string {
	text := fmt.Sprintf("%v", ranges)
	for _, one := range slices.SortedFunc(maps.Keys(mappings), netip.Addr.Compare) {
		text += fmt.Sprintf("\n%+v", mappings[one])
	}
	return text
}

// right is what an edge is to be told, out of all records at once.
func right(b *bench) string {
	b.t.Helper()
	want, err := b.Whole(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return shown(want, b.wanted().Ranges)
}

// tracks begins to follow a bench whose moment stands still, and looks once at all there is.
func tracks(b *bench) *room.Followed {
	b.freeze()
	ctx, cancel := context.WithCancel(b.t.Context())
	tracked := b.Followed(ctx)
	b.t.Cleanup(func() { cancel(); tracked.End() })
	if got, want := told(b, tracked), right(b); got != want {
		b.t.Fatalf("at first an edge is told\n%s\nand not\n%s", got, want)
	}
	return tracked
}

// TestTriggers: a commit of each kind that bears on what an edge is to have has it told, with nothing that looks by
// itself.
func TestTriggers(t *testing.T) {
	for _, one := range triggers() {
		t.Run(one.name, func(t *testing.T) {
			b := begin(t)
			one.prepare(b)
			tracked := tracks(b)
			before := right(b)
			one.change(b)
			want := right(b)
			if want == before {
				t.Fatal("nothing is to be told")
			}
			for end := time.After(10 * time.Second); told(b, tracked) != want; {
				select {
				case <-tracked.Woken():
				case <-end:
					t.Fatalf("an edge has been told\n%s\nand the records come to\n%s", told(b, tracked), want)
				}
			}
		})
	}
}

// TestBearing: a lease, a reservation, a network and a subnet to which no association leads have nothing worked out.
func TestBearing(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	followed := tracks(b)
	second := netip.MustParsePrefix("10.22.0.0/24")
	for _, one := range []struct {
		what  string
		do    func()
		bears bool
	}{
		{"a lease", func() { b.stop(b.start("other")) }, false},
		{"a network", func() { b.secondNetwork("", "10.21.0.0/24") }, false},
		{"a reservation", func() { b.edit(&ipam.AddReservation{Network: "net2", Owner: "web"}) }, false},
		{"a subnet", func() {
			b.edit(&ipam.AddSubnet{Network: "net2", SubnetSpec: ipam.SubnetSpec{CIDR: second}})
		}, false},
		{"the guest's lease", func() { b.start("web") }, true},
	} {
		told(b, followed)
		one.do()
		bear := 0
		for noted, end := 0, time.After(10*time.Second); noted == 0 || one.bears && bear == 0; {
			select {
			case <-followed.Woken():
			case <-end:
				t.Fatalf("%s: of %d commits that were noted %d bear on what is wanted", one.what, noted, bear)
			}
			more, of := followed.Bearing()
			noted, bear = noted+more, bear+of
		}
		if !one.bears && bear > 0 {
			t.Errorf("%s bears on what is wanted", one.what)
		}
	}
}

// TestNet: what a commit has changed and nobody heard of is found after thirty seconds, and not before.
func TestNet(t *testing.T) {
	b := begin(t)
	b.reserve("web", "10.20.0.9")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	tracked := tracks(b)
	b.passes(room.LookAgain)
	before := told(b, tracked)
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	for lost, end := 0, time.After(10*time.Second); lost == 0; lost = tracked.Lose() {
		select {
		case <-tracked.Woken():
		case <-end:
			t.Fatal("no commit was noted")
		}
	}
	b.passes(room.LookAlways - 1)
	if told(b, tracked) != before {
		t.Fatal("it was not lost")
	}
	b.passes(1)
	if got, want := told(b, tracked), right(b); got != want {
		t.Fatalf("after %s an edge is told\n%s\nand not\n%s", room.LookAlways, got, want)
	}
}
