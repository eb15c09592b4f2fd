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

// A remembered address outside the pool that a request names is not chosen (GA-16).
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

// An attachment follows the last range with its pool's name, by whichever edit it is renamed (invariant 5).
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

// A smaller CIDR may cut off more remembered addresses than one transaction deletes. They no longer count, before
// and after the next start.
func TestShrinkOverManyMemories(t *testing.T) {
	r := ipamtest.New(t)
	open := func() {
		s, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now})
		fine(t, err)
		r.S = s
	}
	remembers := func(when string, want int) {
		t.Helper()
		subnets, err := r.S.Subnets(ctx, "")
		listed := len(ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true})) // nobody holds any
		if err != nil || subnets[0].Remembered != want || listed != want {
			t.Fatalf("%s: %d are remembered and %d listed, want %d (%v)", when, subnets[0].Remembered, listed,
				want, err)
		}
	}
	open()
	r.Line("network net1 subnet=10.0.0.0/20,pool")
	for i := range 20 {
		var wishes []string
		for slot := range 64 {
			wishes = append(wishes, fmt.Sprintf("ip%d=10.0.%d.%d", slot, 8+i/4, i%4*64+slot))
		}
		r.Line(fmt.Sprintf("take net1 vm%d %s", i, strings.Join(wishes, ",")))
		r.Line(fmt.Sprintf("release net1 vm%d", i))
	}
	remembers("before", 1280)
	r.Line("subnet.set net1 10.0.0.0/20 cidr=10.0.0.0/21")
	remembers("after", 0)
	open()
	remembers("after a restart", 0)
	r.Line("take net1 vm3 pool -> 10.0.0.1")
	r.Line("release net1 vm3")
	r.Line("subnet.set net1 10.0.0.0/21 cidr=10.0.0.0/20")
	remembers("wide again", 1)
}

// The end of a Docker network that was cut off is completed, also if its subnet has another CIDR by then.
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

// Addresses with a zone or mapped into IPv6, contradicting wishes, and texts that are too long or not printable are
// refused.
func TestOddRequests(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool+2001:db8::/64,pool+fd00::/64")
	for _, odd := range []string{"fd00::7%eth0", "::ffff:192.0.2.7"} {
		for row := range ipamtest.Rows(2, `
			subnet.modify | "subnet": "fd00::/64", "gateway": "ODD"
			subnet.modify | "subnet": "192.0.2.0/24", "gateway": "ODD"
			subnet.add | "cidr": "fd00:0:0:1::/64", "gateway": "ODD"
			address.take | "owner": "a", "interface": {"wishes": [{"address": "ODD"}]}
			reservation.add | "owner": "a", "wishes": [{"address": "ODD"}]
		`) {
			r.Line(`edit ` + row[0] + ` {"network": "net1", ` + strings.ReplaceAll(row[1], "ODD", odd) +
				`} ! invalid|notfound; ` + odd)
		}
		r.Run("attach A net=net1\nask A ip=" + odd + " ! invalid\ndetach A")
	}
	for row := range ipamtest.Rows(2, `
		address.take | "owner": "a", "interface": {"wishes": [{"address": "192.0.2.9", "pool": "front"}]}
		address.take | "owner": "a", "interface": {"action": "modify", "wishes": [{"address": "192.0.2.9", "none": true}]}
		# a slot twice, a gap, a slot that is too high, and one below zero
		address.take | "owner": "a", "interface": {"wishes": [{}, {}]}
		address.take | "owner": "a", "interface": {"wishes": [{}, {"slot": 2}]}
		address.take | "owner": "a", "interface": {"wishes": [{"slot": 64}]}
		address.take | "owner": "a", "interface": {"action": "modify", "wishes": [{"slot": -1}]}
		address.take | "owner": "a", "interface": {"number": 64}
		address.take | "owner": "a", "interface": {"action": "paint"}
		# the next one, not added
		address.take | "owner": "a", "interface": {"number": -1}
		address.take | "owner": ""
		address.take | "owner": "LONG"
		address.release | "owner": ""
		reservation.add | "owner": "a", "wishes": [{"slot": 1}]
		reservation.add | "owner": "a", "wishes": [{"none": true}]
		reservation.add | "owner": ""
		reservation.remove | "owner": ""
		exclusion.add | "range": "192.0.2.9", "note": "LONG"
		exclusion.add | "range": "192.0.2.9", "note": "a\nb"
		exclusion.add | "note": "no range"
		exclusion.remove | "network": "net1"
		pool.remove | "pool": ""
		pool.add | "range": "192.0.2.9", "network": ""
		pool.add | "range": "192.0.2.9", "name": "a/b"
		network.modify | "tags": {"a": "LONG"}
		network.modify | "tags": {"a": "a\u001b[2J"}
		network.modify | "tags": {"": "a"}
		network.modify | "name": ""
		network.create | "name": ""
		subnet.modify | "subnet": ""
	`) {
		r.Line(`edit ` + row[0] + ` {"network": "net1", ` + row[1] + `} ! invalid|notfound`)
	}
	_ = refused(r, "a negative time", "invalid", ipam.EditOptions{},
		&ipam.ModifyNetwork{Network: "net1", Quarantine: new(ipam.Duration(-1))})
}

// A network with more subnets than one transaction removes is gone at once. Its records are deleted in batches,
// wherever that is cut off.
func TestLargeNetworkRemoved(t *testing.T) {
	for n := range storetest.Sampled(t, 3) {
		left := n + 1
		if left >= 8 {
			break
		}
		r := ipamtest.New(t)
		gone := func(when string) {
			t.Helper()
			r.Line("network.rm large ! notfound")
			if diff := ipamtest.ShownDiff(ipamtest.Shown{}, r.Everything()); diff != "" {
				t.Fatalf("%s: shown is\n%s", when, diff)
			}
		}
		largeNetwork(r)
		dying := &ipamtest.Failing{Store: r.Store, Left: 1000}
		s, err := service.Open(ctx, service.Config{Store: dying, Host: "h1", Now: r.Clock.Now})
		fine(t, err)
		r.S, dying.Left = s, left
		if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "large", Force: true}); err != nil &&
			!errors.Is(err, ipamtest.ErrDied) {
			t.Fatal(err)
		}
		dying.Left = 100_000
		gone("cut off")
		// Its name is free at once.
		r.Line("network large2 + network.set large2 name=large + network.rm large")
		r.Open()
		gone("after a restart")
		for _, kind := range []byte("plni") {
			if n := ipamtest.CountKeys(t, r.Store, kind); n != 0 {
				t.Fatalf("cut off after %d: %d records %c are left", left, n, kind)
			}
		}
		r.Run("network large subnet=10.0.0.0/8,pool\ntake large a pool -> 10.0.0.1")
	}
}

// A MAC address as an owner is found in each of its spellings.
func TestMACOwnersAreListed(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24,pool
		reserve net1 02:42:0A:00:00:01
		take net1 02-42-0a-00-00-02 pool
		owned net1 02:42:0a:00:00:01 -> 02:42:0a:00:00:01=192.0.2.1:a
		owned net1 02:42:0A:00:00:01 -> 02:42:0a:00:00:01=192.0.2.1:a
		owned net1 02-42-0A-00-00-01 -> 02:42:0a:00:00:01=192.0.2.1:a
		show net1 taken 02:42:0A:00:00:02 -> 02:42:0a:00:00:02:0.0=192.0.2.2
	`}})
}
