package service_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// What an owner had before never leads out of the pool that it names (GA-16).
func TestMemoryStaysInNamedPool(t *testing.T) {
	runScripts(t, []script{{"", `
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
	runScripts(t, []script{{"", `
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
	r := newRoom(t)
	open := func() {
		s, err := service.Open(ctx, service.Config{Store: r.store, Host: "h1", Now: r.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		r.s = s
	}
	open()
	r.edit(&ipam.CreateNetwork{Name: "net1",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.0.0/20"), Pool: true}}})
	from := netip.MustParseAddr("10.0.8.0")
	for i := range 20 {
		var wishes []ipam.Wish
		for slot := range 64 {
			wishes = append(wishes, ipam.Wish{Slot: slot, Address: from})
			from = from.Next()
		}
		r.edit(&ipam.TakeAddress{Network: "net1", Owner: fmt.Sprintf("vm%d", i),
			Interface: ipam.Interface{Wishes: wishes}})
		r.edit(&ipam.ReleaseAddress{Network: "net1", Owner: fmt.Sprintf("vm%d", i)})
	}
	check := func(when string, want int) {
		t.Helper()
		if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
			t.Fatalf("%s: %q, %v", when, problems[:min(len(problems), 3)], err)
		}
		subnets, err := r.s.Subnets(ctx, "")
		listed := 0
		for _, l := range listLeases(t, r.s, ipam.LeaseFilter{Remembered: true}) {
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
	r.edit(&ipam.ModifySubnet{Network: "net1", Subnet: "10.0.0.0/20", CIDR: ptr(netip.MustParsePrefix("10.0.0.0/21"))})
	check("after", 0)
	open()
	check("after a restart", 0)
	if got := r.edit(&ipam.TakeAddress{Network: "net1", Owner: "vm3"}); joined(got.Results[0].Addresses) != "10.0.0.1" {
		t.Errorf("got %v", got.Results[0].Addresses)
	}
	r.edit(&ipam.ModifySubnet{Network: "net1", Subnet: "10.0.0.0/21", CIDR: ptr(netip.MustParsePrefix("10.0.0.0/20"))})
	check("wide again", 0)
}

// A Docker network whose end was cut off is ended, though its subnet has another CIDR by then.
func TestResizeBetweenPagesOfDetach(t *testing.T) {
	for left := range 4 {
		r := newRoom(t)
		r.run("network net1 subnet=192.0.2.0/24,name=lan,pool\nattach A net=net1\nask A mac=1 -> 192.0.2.1\nask A " +
			"mac=2 -> 192.0.2.2")
		dying := &failing{Store: r.store, left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		dying.left = left
		if err := s.ReleasePool(ctx, r.pools["A"]); err != nil && !errors.Is(err, errDied) {
			t.Fatal(err)
		}
		dying.left = 1000
		r.s = s
		_, err = s.Edit(ctx, ipam.EditOptions{},
			&ipam.ModifySubnet{Network: "net1", Subnet: "lan", CIDR: ptr(netip.MustParsePrefix("192.0.2.0/25"))})
		if err != nil && kindOf(err) != "inuse" {
			t.Fatalf("%d: %v", left, err)
		}
		if err := s.ReleasePool(ctx, r.pools["A"]); err != nil {
			t.Fatalf("cut off after %d: the end of the Docker network is not gone on with: %v", left, err)
		}
		r.run("show net1 counts -> held 0 reserved 0 docker 0 planned true")
	}
}

// Addresses with a zone, or mapped into IPv6, name nothing.
func TestOddAddresses(t *testing.T) {
	r := newRoom(t)
	r.run("network net1 subnet=192.0.2.0/24,pool+2001:db8::/64,pool+fe80::/64")
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
			before := dump(t, r.store)
			_, err := r.s.Edit(ctx, ipam.EditOptions{}, e)
			r.refused(fmt.Sprintf("%T of %s", e, a), "invalid|notfound; "+a.String(), err)
			if len(dump(t, r.store)) != len(before) {
				t.Errorf("%T of %s wrote", e, a)
			}
		}
	}
	r.run("attach A net=net1")
	for _, a := range []netip.Addr{zoned, mapped} {
		if got, err := r.s.RequestAddress(ctx,
			ipam.AddressRequest{Pool: r.pools["A"], Preferred: a}); kindOf(err) != "invalid" {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
}

// Wishes that contradict themselves, and words that are too long or cannot be printed.
func TestOddRequests(t *testing.T) {
	r := newRoom(t)
	r.run("network net1 subnet=192.0.2.0/24,pool")
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
		"a long note":          &ipam.AddExclusion{Network: "net1", Range: mustRange("192.0.2.9"), Note: long},
		"a note of two lines":  &ipam.AddExclusion{Network: "net1", Range: mustRange("192.0.2.9"), Note: "a\nb"},
		"no range":             &ipam.AddExclusion{Network: "net1"},
		"no range again":       &ipam.RemoveExclusion{Network: "net1"},
		"no pool":              &ipam.RemovePool{Network: "net1"},
		"a long tag":           &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"a": &long}},
		"a tag of two lines":   &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"a": ptr("a\x1b[2J")}},
		"an empty tag":         &ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"": ptr("a")}},
		"a negative time":      &ipam.ModifyNetwork{Network: "net1", Quarantine: ptr(ipam.Duration(-1))},
		"no name":              &ipam.ModifyNetwork{Network: "net1", Name: ptr("")},
		"no name at all":       &ipam.CreateNetwork{},
		"no network":           &ipam.AddPool{Range: mustRange("192.0.2.9")},
		"no subnet":            &ipam.ModifySubnet{Network: "net1"},
		"a name with a slash":  &ipam.AddPool{Network: "net1", Range: mustRange("192.0.2.9"), Name: "a/b"},
	} {
		before := dump(t, r.store)
		_, err := r.s.Edit(ctx, ipam.EditOptions{}, e)
		if kind := kindOf(err); err == nil || kind != "invalid" && kind != "notfound" {
			t.Errorf("%s: %s, %v", name, kind, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: the error has what cannot be printed: %q", name, err)
		}
		if len(dump(t, r.store)) != len(before) {
			t.Errorf("%s wrote", name)
		}
	}
}

// What is reserved and in nobody's hands is no lease, and the counts of all lists agree.
func TestCountsAgree(t *testing.T) {
	r := newRoom(t)
	r.run(`
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
	if got := heldAddrs(t, r.s); strings.Join(got, " ") != "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.9" {
		t.Errorf("held: %q", got)
	}
	for _, l := range listLeases(t, r.s, ipam.LeaseFilter{Remembered: true}) {
		if l.State == "remembered" && l.Address.String() != "192.0.2.4" {
			t.Errorf("%s is listed as %s (%s)", l.Address, l.State, l.Kind)
		}
	}
	n := r.show("net1")
	subnets, err := r.s.Subnets(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, sub := range n.Subnets {
		if info := subnets[i]; info.Held != sub.Held || info.Free.Cmp(sub.Pools[0].Free.Int) != 0 {
			t.Errorf("%s: held %d and %d, free %s and %s", sub.CIDR, info.Held, sub.Held, info.Free, sub.Pools[0].Free)
		}
	}
	if subnets[0].Held != 4 || subnets[0].Remembered != 1 || subnets[1].Held != 0 || subnets[1].Remembered != 0 ||
		n.Held != 4 || n.Reserved != 2 {
		t.Errorf("%+v\n%+v", n, subnets)
	}
	spaces, err := r.s.Spaces(ctx)
	if err != nil || spaces[1].Name != "local" || spaces[1].Leases != 4 || spaces[1].Subnets != 2 {
		t.Errorf("%+v, %v", spaces, err)
	}
}

// A network of more subnets than one transaction removes is gone at once for everybody, and its records go in pages,
// cut off wherever they may be.
func TestLargeNetworkRemoved(t *testing.T) {
	large := func(r *room) {
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
			r.edit(edits...)
		}
		r.edit(&ipam.AddReservation{Network: "large", Owner: "web",
			Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.0.7.7")}}})
	}
	gone := func(r *room, when string) {
		r.t.Helper()
		if _, err := r.s.Network(ctx, "large"); kindOf(err) != "notfound" {
			r.t.Fatalf("%s: it is seen: %v", when, err)
		}
		if left := r.reservations(ipam.AddressFilter{}); len(left) != 0 {
			r.t.Fatalf("%s: %+v", when, left)
		}
		if all, err := r.s.Networks(ctx, ipam.NetworkFilter{}); err != nil || len(all) > 0 {
			r.t.Fatalf("%s: %d networks are listed, %v", when, len(all), err)
		}
		if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
			r.t.Fatalf("%s: %q, %v", when, problems[:min(len(problems), 3)], err)
		}
	}
	for left := 1; left < 8; left++ {
		if service.RaceEnabled && left%3 != 1 {
			continue
		}
		r := newRoom(t)
		large(r)
		dying := &failing{Store: r.store, left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.clock.Now})
		if err != nil {
			t.Fatal(err)
		}
		r.s, dying.left = s, left
		if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "large", Force: true}); err != nil &&
			!errors.Is(err, errDied) {
			t.Fatal(err)
		}
		dying.left = 100_000
		gone(r, "cut off")
		// Its name is free at once.
		r.edit(&ipam.CreateNetwork{Name: "large2"}, &ipam.ModifyNetwork{Network: "large2", Name: ptr("large")},
			&ipam.RemoveNetwork{Network: "large"})
		r.open()
		gone(r, "after a restart")
		if n := countKeys(t, r.store, 'p') + countKeys(t, r.store, 'l') + countKeys(t, r.store, 'n') +
			countKeys(t, r.store, 'i'); n != 0 {
			t.Fatalf("cut off after %d: %d records are left", left, n)
		}
		r.run("network large subnet=10.0.0.0/8,pool\ntake large a pool -> 10.0.0.1")
	}
}

// A swarm manager's replay on a planned network: what it holds moves to the new attachment, and the plan stays.
func TestReplayOnPlanned(t *testing.T) {
	r := newRoom(t)
	r.run(`
		network net1 space=global subnet=10.0.9.0/24,gw=10.0.9.1
		pool net1 10.0.9.10+20 name=front
		reserve net1 web 10.0.9.12`)
	request := func(cidr string) ipam.ID {
		t.Helper()
		req := ipam.PoolRequest{Space: "global", Network: "net1", Pool: "front", Swarm: true}
		if cidr != "" {
			req.CIDR = netip.MustParsePrefix(cidr)
		}
		grant, err := r.s.RequestPool(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		return grant.ID
	}
	one := request("")
	gateway := mustTake(t, r.s,
		ipam.AddressRequest{Pool: one, Gateway: true, Preferred: netip.MustParseAddr("10.0.9.1")})
	vip, task, third := mustTake(t, r.s, ipam.AddressRequest{Pool: one}),
		mustTake(t, r.s, ipam.AddressRequest{Pool: one}), mustTake(t, r.s, ipam.AddressRequest{Pool: one})
	if joined([]netip.Addr{gateway, vip, task, third}) != "10.0.9.1 10.0.9.10 10.0.9.11 10.0.9.13" {
		t.Fatalf("%v %v %v %v", gateway, vip, task, third)
	}
	r.reopened()
	// Replanned between: what is held comes back all the same.
	r.run("exclude net1 10.0.9.11\npool.rm net1 10.0.9.10\npool.set net1 front back")
	two := request2(t, r, "10.0.9.0/24")
	for _, again := range []ipam.AddressRequest{{Pool: two, Preferred: gateway, Gateway: true},
		{Pool: two, Preferred: vip}, {Pool: two, Preferred: task}} {
		if got := mustTake(t, r.s, again); got != again.Preferred {
			t.Fatalf("replaying %v gave %v", again.Preferred, got)
		}
	}
	if err := r.s.ReleasePool(ctx, two); err != nil {
		t.Fatal(err)
	}
	r.run(`
		show net1 counts -> held 1 reserved 1 docker 0 planned true
		show net1 pools -> back:10.0.9.11-10.0.9.29
		show net1 subnets -> -:10.0.9.0/24:10.0.9.1:false`)
}

// request2 is the manager's request after its restart: the options are those of before, and the pool has another name
// by then.
func request2(t *testing.T, r *room, cidr string) ipam.ID {
	t.Helper()
	grant, err := r.s.RequestPool(ctx,
		ipam.PoolRequest{Space: "global", Network: "net1", Pool: "back", Swarm: true,
			CIDR: netip.MustParsePrefix(cidr)})
	if err != nil {
		t.Fatal(err)
	}
	return grant.ID
}

// An owner that is a MAC address is the same in each way of writing it, also where it is looked for.
func TestMACOwnersAreListed(t *testing.T) {
	r := newRoom(t)
	r.run("network net1 subnet=192.0.2.0/24,pool\nreserve net1 02:42:0A:00:00:01\ntake net1 02-42-0a-00-00-02 pool")
	for _, owner := range []string{"02:42:0a:00:00:01", "02:42:0A:00:00:01", "02-42-0A-00-00-01"} {
		n := 0
		for one, err := range r.s.Reservations(ctx, ipam.AddressFilter{Owner: owner}) {
			if err != nil || one.Address.String() != "192.0.2.1" {
				t.Fatal(one, err)
			}
			n++
		}
		if n != 1 {
			t.Errorf("%s: %d reservations", owner, n)
		}
	}
	if got := r.taken(ipam.AddressFilter{Owner: "02:42:0A:00:00:02"}); len(got) != 1 {
		t.Errorf("%d addresses", len(got))
	}
}
