package edit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/storetest"
)

// What an owner had before never leads out of the pool that it names (GA-16).
func TestMemoryStaysInNamedPool(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.10+5 name=front
		pool net1 192.0.2.20+5 name=back
		attach A net=net1
		ask A web mac=1 ip=192.0.2.77 -> 192.0.2.77
		back A 192.0.2.77
		take net1 web front -> 192.0.2.10
		ask A db mac=2 ip=192.0.2.78 -> 192.0.2.78
		back A 192.0.2.78
		reserve net1 db back -> 192.0.2.20
		take net1 x back -> 192.0.2.21
		release net1 x
		take net1 x front -> 192.0.2.11
		release net1 x
		take net1 x pool -> 192.0.2.11
	`}})
}

// An attachment follows the last range of its pool's name, whichever way that is renamed (invariant 5).
func TestAttachmentFollowsRenamedRange(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.10+5 name=a
		pool net1 192.0.2.20+5 name=b
		attach A net=net1 pool=a
		ask A mac=1 -> 192.0.2.10
		pool.set net1 192.0.2.10+5 front
		ask A mac=2 -> 192.0.2.11
		restart
		ask A mac=3 -> 192.0.2.12
		ask A mac=1 -> 192.0.2.10
	`}})
}

// More memories are cut off than one transaction deletes. They mean nothing, before and after the next start.
func TestShrinkOverManyMemories(t *testing.T) {
	r := ipamtest.New(t)
	open := func() {
		s, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now})
		fine(t, err)
		r.S = s
	}
	open()
	r.Edit(&ipam.CreateNetwork{Name: "net1",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.0.0/20"), Pool: true}}})
	from := netip.MustParseAddr("10.0.8.0")
	for i := range 20 {
		var wishes []ipam.Wish
		for slot := range 64 {
			wishes = append(wishes, ipam.Wish{Slot: slot, Address: from})
			from = from.Next()
		}
		r.Edit(&ipam.TakeAddress{Network: "net1", Owner: fmt.Sprintf("vm%d", i),
			Interface: ipam.Interface{Wishes: wishes}})
		r.Edit(&ipam.ReleaseAddress{Network: "net1", Owner: fmt.Sprintf("vm%d", i)})
	}
	check := func(when string, want int) {
		t.Helper()
		if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
			t.Fatalf("%s: %q, %v", when, problems[:min(len(problems), 3)], err)
		}
		subnets, err := r.S.Subnets(ctx, "")
		listed := 0
		for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}) {
			if l.State == "remembered" {
				listed++
			}
		}
		if err != nil || subnets[0].Remembered != want || listed != want {
			t.Fatalf("%s: %d are remembered and %d listed, want %d (%v)", when, subnets[0].Remembered, listed, want,
				err)
		}
	}
	check("before", 1280)
	r.Edit(&ipam.ModifySubnet{Network: "net1", Subnet: "10.0.0.0/20", CIDR: new(netip.MustParsePrefix("10.0.0.0/21"))})
	check("after", 0)
	open()
	check("after a restart", 0)
	if got := r.Edit(&ipam.TakeAddress{Network: "net1", Owner: "vm3"}); ipamtest.Joined(got.Results[0].Addresses) !=
		"10.0.0.1" {
		t.Errorf("got %v", got.Results[0].Addresses)
	}
	r.Edit(&ipam.ModifySubnet{Network: "net1", Subnet: "10.0.0.0/21", CIDR: new(netip.MustParsePrefix("10.0.0.0/20"))})
	check("wide again", 0)
}

// A Docker network whose end was cut off is ended, though its subnet has another CIDR by then.
func TestResizeBetweenPagesOfDetach(t *testing.T) {
	for left := range 4 {
		r := ipamtest.New(t)
		r.Run("network net1 subnet=192.0.2.0/24,name=lan,pool\nattach A net=net1\nask A mac=1 -> 192.0.2.1\nask A " +
			"mac=2 -> 192.0.2.2")
		dying := &ipamtest.Failing{Store: r.Store, Left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.Clock.Now})
		fine(t, err)
		dying.Left = left
		if err := s.ReleasePool(ctx, r.Pools["A"]); err != nil && !errors.Is(err, ipamtest.ErrDied) {
			t.Fatal(err)
		}
		dying.Left = 1000
		r.S = s
		_, err = s.Edit(ctx, ipam.EditOptions{},
			&ipam.ModifySubnet{Network: "net1", Subnet: "lan", CIDR: new(netip.MustParsePrefix("192.0.2.0/25"))})
		if err != nil && ipamtest.KindOf(err) != "inuse" {
			t.Fatalf("%d: %v", left, err)
		}
		if err := s.ReleasePool(ctx, r.Pools["A"]); err != nil {
			t.Fatalf("cut off after %d: the end of the Docker network is not gone on with: %v", left, err)
		}
		r.Run("show net1 counts -> held 0 reserved 0 docker 0 planned true")
	}
}

// Addresses with a zone, or mapped into IPv6, name nothing.
func TestOddAddresses(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool+2001:db8::/64,pool+fe80::/64")
	zoned, mapped := netip.MustParseAddr("fe80::7%eth0"), netip.MustParseAddr("::ffff:192.0.2.7")
	wish := func(a netip.Addr) ipam.Interface { return ipam.Interface{Wishes: []ipam.Wish{{Address: a}}} }
	for _, a := range []netip.Addr{zoned, mapped} {
		for _, e := range []ipam.Edit{
			&ipam.ModifySubnet{Network: "net1", Subnet: "fe80::/64", Gateway: &a},
			&ipam.ModifySubnet{Network: "net1", Subnet: "192.0.2.0/24", Gateway: &a},
			&ipam.AddSubnet{Network: "net1",
				SubnetSpec: ipam.SubnetSpec{CIDR: netip.MustParsePrefix("fe80:0:0:1::/64"), Gateway: a}},
			&ipam.TakeAddress{Network: "net1", Owner: "a", Interface: wish(a)},
			&ipam.AddReservation{Network: "net1", Owner: "a", Wishes: wish(a).Wishes},
		} {
			before := ipamtest.Dump(t, r.Store)
			_, err := r.S.Edit(ctx, ipam.EditOptions{}, e)
			r.Refused(fmt.Sprintf("%T of %s", e, a), "invalid|notfound; "+a.String(), err)
			if len(ipamtest.Dump(t, r.Store)) != len(before) {
				t.Errorf("%T of %s wrote", e, a)
			}
		}
	}
	r.Run("attach A net=net1")
	for _, a := range []netip.Addr{zoned, mapped} {
		if got, err := r.S.RequestAddress(ctx,
			ipam.AddressRequest{Pool: r.Pools["A"], Preferred: a}); ipamtest.KindOf(err) != "invalid" {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
}

// Wishes that contradict themselves, and words that are too long or cannot be printed.
func TestOddRequests(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool")
	address := netip.MustParseAddr("192.0.2.9")
	long := strings.Repeat("a", 300)
	for name, e := range map[string]ipam.Edit{
		"address and pool": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: address, Pool: "front"}}}},
		"address and none": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Action: ipam.ModifyInterface,
				Wishes: []ipam.Wish{{Address: address, None: true}}}},
		"a slot twice": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{}, {}}}},
		"a gap": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{}, {Slot: 2}}}},
		"a slot too high": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Slot: 64}}}},
		"a slot below zero": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Action: ipam.ModifyInterface, Wishes: []ipam.Wish{{Slot: -1}}}},
		"an interface of 64": &ipam.TakeAddress{Network: "net1", Owner: "a", Interface: ipam.Interface{Number: 64}},
		"an unknown action": &ipam.TakeAddress{Network: "net1", Owner: "a",
			Interface: ipam.Interface{Action: "paint"}},
		"the next, not added":  &ipam.TakeAddress{Network: "net1", Owner: "a", Interface: ipam.Interface{Number: -1}},
		"no owner":             &ipam.TakeAddress{Network: "net1"},
		"a long owner":         &ipam.TakeAddress{Network: "net1", Owner: long},
		"reserved: a gap":      &ipam.AddReservation{Network: "net1", Owner: "a", Wishes: []ipam.Wish{{Slot: 1}}},
		"reserved: none":       &ipam.AddReservation{Network: "net1", Owner: "a", Wishes: []ipam.Wish{{None: true}}},
		"reserved: no owner":   &ipam.AddReservation{Network: "net1"},
		"unreserved: no owner": &ipam.RemoveReservation{Network: "net1"},
		"released: no owner":   &ipam.ReleaseAddress{Network: "net1"},
		"a long note":          &ipam.AddExclusion{Network: "net1", Range: ipamtest.MustRange("192.0.2.9"), Note: long},
		"a note of two lines": &ipam.AddExclusion{Network: "net1", Range: ipamtest.MustRange("192.0.2.9"),
			Note: "a\nb"},
		"no range":            &ipam.AddExclusion{Network: "net1"},
		"no range again":      &ipam.RemoveExclusion{Network: "net1"},
		"no pool":             &ipam.RemovePool{Network: "net1"},
		"a long tag":          &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"a": &long}},
		"a tag of two lines":  &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"a": new("a\x1b[2J")}},
		"an empty tag":        &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"": new("a")}},
		"a negative time":     &ipam.ModifyNetwork{Network: "net1", Quarantine: new(ipam.Duration(-1))},
		"no name":             &ipam.ModifyNetwork{Network: "net1", Name: new("")},
		"no name at all":      &ipam.CreateNetwork{},
		"no network":          &ipam.AddPool{Range: ipamtest.MustRange("192.0.2.9")},
		"no subnet":           &ipam.ModifySubnet{Network: "net1"},
		"a name with a slash": &ipam.AddPool{Network: "net1", Range: ipamtest.MustRange("192.0.2.9"), Name: "a/b"},
	} {
		before := ipamtest.Dump(t, r.Store)
		_, err := r.S.Edit(ctx, ipam.EditOptions{}, e)
		if kind := ipamtest.KindOf(err); err == nil || kind != "invalid" && kind != "notfound" {
			t.Errorf("%s: %s, %v", name, kind, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: the error has what cannot be printed: %q", name, err)
		}
		if len(ipamtest.Dump(t, r.Store)) != len(before) {
			t.Errorf("%s wrote", name)
		}
	}
}

// What is reserved and in nobody's hands is no lease, and the counts of all lists agree.
func TestCountsAgree(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/28,gw=192.0.2.1,pool+2001:db8::/64,pool
		reserve net1 a 192.0.2.2
		reserve net1 b 2001:db8::9
		take net1 c 0:ip0=pool,ip1=192.0.2.9
		exclude net1 192.0.2.12-192.0.2.13
		attach A net=net1
		ask A a mac=1
		ask A mac=2
		back A 192.0.2.4
	`)
	if got := ipamtest.HeldAddrs(t, r.S); strings.Join(got, " ") != "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.9" {
		t.Errorf("held: %q", got)
	}
	for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}) {
		if l.State == "remembered" && l.Address.String() != "192.0.2.4" {
			t.Errorf("%s is listed as %s (%s)", l.Address, l.State, l.Kind)
		}
	}
	n := r.Show("net1")
	subnets, err := r.S.Subnets(ctx, "")
	fine(t, err)
	for i, sub := range n.Subnets {
		if info := subnets[i]; info.Use.Leased != sub.Use.Leased || info.Use.Free.Cmp(sub.Pools[0].Free.Int) != 0 {
			t.Errorf("%s: held %d and %d, free %s and %s", sub.CIDR, info.Use.Leased, sub.Use.Leased, info.Use.Free, sub.Pools[0].Free)
		}
	}
	if subnets[0].Use.Leased != 4 || subnets[0].Remembered != 1 || subnets[1].Use.Leased != 0 || subnets[1].Remembered != 0 ||
		n.Use.Leased != 4 || n.Use.Reserved != 1 {
		t.Errorf("%+v\n%+v", n, subnets)
	}
	spaces, err := r.S.Spaces(ctx)
	if err != nil || spaces[1].Name != "local" || spaces[1].Leases != 4 || spaces[1].Subnets != 2 {
		t.Errorf("%+v, %v", spaces, err)
	}
}

// A network of more subnets than one transaction removes is gone at once for everybody, and its records go in pages,
// cut off wherever they may be.
func TestLargeNetworkRemoved(t *testing.T) {
	large := func(r *ipamtest.Room) {
		for page := range 4 {
			var edits []ipam.Edit
			if page == 0 {
				edits = append(edits, &ipam.CreateNetwork{Name: "large"})
			}
			for i := range 150 {
				n := page*150 + i
				edits = append(edits, &ipam.AddSubnet{Network: "large",
					SubnetSpec: ipam.SubnetSpec{CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8),
						byte(n), 0}), 24), Gateway: netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 1})}})
			}
			r.Edit(edits...)
		}
		r.Edit(&ipam.AddReservation{Network: "large", Owner: "web",
			Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.0.7.7")}}})
	}
	gone := func(r *ipamtest.Room, when string) {
		r.T.Helper()
		if _, err := r.S.Network(ctx, "large"); ipamtest.KindOf(err) != "notfound" {
			r.T.Fatalf("%s: it is seen: %v", when, err)
		}
		if left := r.Reservations(ipam.AddressFilter{}); len(left) != 0 {
			r.T.Fatalf("%s: %+v", when, left)
		}
		if all, err := r.S.Networks(ctx, ipam.NetworkFilter{}); err != nil || len(all) > 0 {
			r.T.Fatalf("%s: %d networks are listed, %v", when, len(all), err)
		}
		if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
			r.T.Fatalf("%s: %q, %v", when, problems[:min(len(problems), 3)], err)
		}
	}
	for n := range storetest.Sampled(t, 3) {
		left := n + 1
		if left >= 8 {
			break
		}
		r := ipamtest.New(t)
		large(r)
		dying := &ipamtest.Failing{Store: r.Store, Left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.Clock.Now})
		fine(t, err)
		r.S, dying.Left = s, left
		if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "large", Force: true}); err != nil &&
			!errors.Is(err, ipamtest.ErrDied) {
			t.Fatal(err)
		}
		dying.Left = 100_000
		gone(r, "cut off")
		// Its name is free at once.
		r.Edit(&ipam.CreateNetwork{Name: "large2"}, &ipam.ModifyNetwork{Network: "large2", Name: new("large")},
			&ipam.RemoveNetwork{Network: "large"})
		r.Open()
		gone(r, "after a restart")
		if n := ipamtest.CountKeys(t, r.Store, 'p') + ipamtest.CountKeys(t, r.Store, 'l') + ipamtest.CountKeys(t,
			r.Store, 'n') +
			ipamtest.CountKeys(t, r.Store, 'i'); n != 0 {
			t.Fatalf("cut off after %d: %d records are left", left, n)
		}
		r.Run("network large subnet=10.0.0.0/8,pool\ntake large a pool -> 10.0.0.1")
	}
}

// An owner that is a MAC address is the same in each way of writing it, also where it is looked for.
func TestMACOwnersAreListed(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool\nreserve net1 02:42:0A:00:00:01\ntake net1 02-42-0a-00-00-02 pool")
	for _, owner := range []string{"02:42:0a:00:00:01", "02:42:0A:00:00:01", "02-42-0A-00-00-01"} {
		n := 0
		for one, err := range r.S.Reservations(ctx, ipam.AddressFilter{Owner: owner}) {
			if err != nil || one.Address.String() != "192.0.2.1" {
				t.Fatal(one, err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%s: %d reservations", owner, n)
		}
	}
	if got := r.Taken(ipam.AddressFilter{Owner: "02:42:0A:00:00:02"}); len(got) != 1 {
		t.Errorf("%d addresses", len(got))
	}
}
