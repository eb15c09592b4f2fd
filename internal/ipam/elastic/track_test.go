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
