package elastic_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
)

// story makes random changes of what bears on elastic addresses, and lets refusals be.
type story struct {
	*bench
	running []netip.Addr
	tracked *room.Followed
	follows string // what was done, for a failure
}

// names have something in common: Compose's forms of one name, one that a rule makes another's, and a MAC.
var (
	trackedNames   = []string{"web", "job", "shop-web-1", "shop_web_1", "cron-7", "timer/7", trackedMAC.String()}
	trackedGuests  = []string{"10.20.0.2", "10.20.0.3", "10.20.0.4"}
	trackedElastic = []string{elastic, next, "203.0.113.12", "203.0.113.13"}
	trackedMAC     = ipam.MAC{2, 0, 0, 0, 0, 7}
)

// try makes an edit that may be refused.
func (s *story) try(e ipam.Edit) {
	_, err := s.Edit(s.t.Context(), ipam.EditOptions{}, e)
	s.follows += fmt.Sprintf("\n%s %+v: %v", e.Op(), e, err)
}

func (s *story) step(t *rapid.T) {
	name := rapid.SampledFrom(trackedNames).Draw(t, "name")
	guest := addr(rapid.SampledFrom(trackedGuests).Draw(t, "guest"))
	one := addr(rapid.SampledFrom(trackedElastic).Draw(t, "address"))
	flag := rapid.Bool().Draw(t, "flag")
	switch rapid.SampledFrom([]string{"start", "start", "both", "stop", "stop", "reserve", "unreserve", "associate",
		"associate", "associate", "disassociate", "account", "mode", "rule", "end", "subnet", "range", "recreate"}).
		Draw(t, "what") {
	case "start":
		s.startAs(name, guest, flag)
	case "both": // by its name, and with the MAC for which something may be reserved
		s.startWith(ipam.AddressRequest{Pool: s.pool, Name: name, MAC: trackedMAC})
	case "stop":
		if n := len(s.running); n > 0 {
			at := rapid.IntRange(0, n-1).Draw(t, "which")
			err := s.ReleaseAddress(s.t.Context(), s.pool, s.running[at])
			s.follows += fmt.Sprintf("\nstop %s: %v", s.running[at], err)
			s.running = slices.Delete(s.running, at, at+1)
		}
	case "reserve":
		s.try(&ipam.AddReservation{Network: "net1", Owner: name, Wishes: []ipam.Wish{{Address: guest}}})
	case "unreserve":
		s.try(&ipam.RemoveReservation{Network: "net1", Owner: name})
	case "associate":
		e := &ipam.AssociateElastic{Address: one, Instance: name, Move: true, EgressOnly: flag}
		if flag {
			e.Guest = guest
		}
		s.try(&ipam.AllocateElastic{Address: one})
		s.try(e)
	case "disassociate":
		s.try(&ipam.DisassociateElastic{Address: one})
		s.try(&ipam.ReleaseElastic{Address: one})
	case "account":
		s.try(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
		if !flag {
			s.try(&ipam.RemoveAccount{Account: "shop", Force: true})
		}
	case "mode":
		mode := map[bool]string{true: "on", false: "off"}[flag]
		s.try(&ipam.ModifyNetwork{Network: "net1", Elastic: &mode})
	case "rule":
		rule := ipam.OwnerRule{Pattern: "cron-*", Owner: map[bool]string{true: "timer/*", false: "job"}[flag]}
		s.try(&ipam.ModifyNetwork{Network: "net1", OwnerRules: []ipam.OwnerRule{rule}})
	case "recreate":
		s.recreate(name)
	case "end":
		s.try(&ipam.ReleaseOwner{Owner: name})
	case "subnet":
		s.try(&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: netip.MustParsePrefix("10.21.0.0/24")}})
		if flag {
			s.try(&ipam.RemoveSubnet{Network: "net1", Subnet: "10.21.0.0/24"})
		}
	case "range":
		var r ipam.Range
		_ = r.UnmarshalText([]byte("198.51.100.0/28"))
		s.try(&ipam.AddElasticRange{Range: r})
		s.try(&ipam.RemoveElasticRange{Range: r})
	}
}

// begun is a story with an owner of each sort, and two of them associated.
func begun(t *testing.T) *story {
	s := &story{bench: begin(t)}
	s.freeze()
	s.reserve("web", trackedGuests[0])
	s.reserve("timer/7", trackedGuests[1])
	s.reserve(trackedMAC.String(), trackedGuests[2])
	s.startAs("job", netip.Addr{}, false)
	s.startAs("shop-web-1", netip.Addr{}, false)
	s.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	s.edit(&ipam.AssociateElastic{Address: addr(next), Instance: "shop-web-1"})
	return s
}

// recreate removes the network's subnet with all that is in it, or a second network that has the owner, too.
func (s *story) recreate(owner string) {
	on := "on"
	s.try(&ipam.CreateNetwork{Name: "net2", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.30.0.0/24"),
		Pool: true}}})
	s.try(&ipam.ModifyNetwork{Network: "net2", Elastic: &on})
	s.try(&ipam.AddReservation{Network: "net2", Owner: owner, Wishes: []ipam.Wish{{Address: addr("10.30.0.9")}}})
	s.try(&ipam.AssociateElastic{Address: addr("203.0.113.13"), Instance: owner, Network: "net2", Move: true})
	if len(s.running)%2 == 0 {
		s.try(&ipam.RemoveReservation{Network: "net2", Owner: owner})
		s.try(&ipam.RemoveSubnet{Network: "net2", Subnet: "10.30.0.0/24"})
		s.try(&ipam.RemoveNetwork{Network: "net2", Force: true})
	}
}

// startAs has a container take an address: by its name, or as engines do that send a MAC alone.
func (s *story) startAs(name string, guest netip.Addr, byMAC bool) {
	req := ipam.AddressRequest{Pool: s.pool, Name: name}
	if byMAC {
		req = ipam.AddressRequest{Pool: s.pool, MAC: trackedMAC, Preferred: guest}
	}
	s.startWith(req)
}

func (s *story) startWith(req ipam.AddressRequest) {
	got, err := s.RequestAddress(s.t.Context(), req)
	s.follows += fmt.Sprintf("\nstart %+v: %v %v", req, got, err)
	if err == nil {
		s.running = append(s.running, got.Addr())
	}
}

// agrees waits until what an edge was told because of commits alone is what the records come to as a whole.
func (s *story) agrees(t *rapid.T) {
	want, err := s.Whole(s.t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.After(10 * time.Second); ; {
		got, err := s.tracked.Told(s.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-s.tracked.Woken():
		case <-end:
			t.Fatalf("an edge has been told\n%v\nand the records come to\n%v\nafter%s", got, want, s.follows)
		}
	}
}

// TestTracked: what an edge is told by looking at what each commit can have changed is what all records come to.
func TestTracked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := begun(t)
		s.tracked = s.Followed(ctx)
		defer func() { cancel(); s.tracked.End(); s.Ledger.Store().Close() }()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			s.step(rt)
			if rapid.Bool().Draw(rt, "look") {
				s.agrees(rt)
			}
		}
		s.agrees(rt)
	})
}

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
