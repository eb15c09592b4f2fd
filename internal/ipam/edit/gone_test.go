package edit_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store/storetest"
)

// BO-12: what was in use on a subnet that is gone is released by an event for each address, as any release is: with the
// lease that it ended, whose it was and through what.
func TestBO12LeasesOfGoneSubnet(t *testing.T) {
	for _, n := range []int{1, 3, 700} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(`attach A cidr=10.9.0.0/16`)
			leases := map[uint64]string{}
			for i := range n {
				got, err := r.S.RequestAddress(ctx,
					ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(i + 1), Name: fmt.Sprintf("c%d", i)})
				fine(t, err)
				leases[eventsOfLast(t, r).Lease] = fmt.Sprintf("%s %s c%d", got.Addr(), ipamtest.MAC(i+1), i)
			}
			last := ipamtest.LastEvent(t, r)
			r.Run(`detach A`)
			gone := settled(r, last)
			for id, want := range leases {
				if gone[id] != want {
					t.Errorf("lease %d, %s: released as %q", id, want, gone[id])
				}
			}
			if len(gone) != len(leases) {
				t.Errorf("%d were released, of %d", len(gone), len(leases))
			}
			if left := r.Taken(ipam.AddressFilter{}); len(left) > 0 {
				t.Error(left)
			}
			r.Run("attach A cidr=10.9.0.0/16\nask A c0 mac=1 -> 10.9.0.1\nask A new mac=900 -> 10.9.0.2")
		})
	}
}

// eventsOfLast is the latest event.
func eventsOfLast(t testing.TB, r *ipamtest.Room) ipam.Event {
	t.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{Last: 1})
	if err != nil || len(all) != 1 {
		t.Fatal(len(all), err)
	}
	return all[0]
}

// settled lets what goes in pages come to its end, and tells the leases that were released since an event; each may be
// so once.
func settled(r *ipamtest.Room, last uint64) map[uint64]string {
	r.T.Helper()
	r.Reopened()
	gone := map[uint64]string{}
	for _, e := range ipamtest.EventsAfter(r.T, r, last) {
		if e.Verb != ipam.LeaseReleased {
			continue
		}
		if gone[e.Lease] != "" {
			r.T.Errorf("lease %d was released twice: %+v", e.Lease, e)
		}
		gone[e.Lease] = fmt.Sprintf("%s %s %s", e.Address, e.MAC, e.Name)
	}
	return gone
}

// BO-12: what was reserved on a network that is removed by force, or on a subnet of it, ends by an event for each
// address.
func TestBO12ReservationsOfGoneNetwork(t *testing.T) {
	for _, n := range []int{1, 5, 600} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(`network n subnet=10.9.0.0/16,gw=10.9.255.254,pool+2001:db8::/64,pool`)
			for i := 0; i < n; i += 100 {
				var edits []ipam.Edit
				for j := i; j < min(n, i+100); j++ {
					edits = append(edits, &ipam.AddReservation{Network: "n", Owner: fmt.Sprintf("shop/web/%d", j)})
				}
				r.Edit(edits...)
			}
			r.Run("reserve n six 2001:db8::5\nnetwork.rm n ! inuse")
			last := ipamtest.LastEvent(t, r)
			r.Run(`network.rm n force`)
			r.Reopened()
			gone := removed(ipamtest.EventsAfter(t, r, last))
			if len(gone) != n+1 || len(slices.Compact(slices.Clone(gone))) != n+1 {
				t.Errorf("%d reservations ended, of %d", len(gone), n+1)
			}
			if left := r.Reservations(ipam.AddressFilter{}); len(left) > 0 {
				t.Error(left)
			}
			r.Run(`
				end shop under
				network n subnet=10.9.0.0/16,pool
				reserve n new -> 10.9.0.1
				owned n -> new=10.9.0.1:a
			`)
		})
	}
}

// BO-12: an end that is cut off goes on with the next start, and each address is released once.
func TestBO12CutOff(t *testing.T) {
	for n := range storetest.Sampled(t, 3) {
		cut := n + 1
		if cut > 6 {
			break
		}
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(`attach A cidr=10.9.0.0/16`)
			want := map[netip.Addr]bool{}
			for i := range 1100 {
				got, err := r.S.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(i + 1)})
				fine(t, err)
				want[got.Addr()] = true
			}
			last := ipamtest.LastEvent(t, r)
			r.Store.Each(func(n int) storetest.Fault {
				if n == cut {
					return storetest.Fault{Lost: context.DeadlineExceeded}
				}
				return storetest.Fault{}
			})
			err := r.S.ReleasePool(ctx, r.Pools["A"])
			r.Store.Each(nil)
			r.Store.Heal()
			r.Open()
			fine(t, r.S.ReleasePool(ctx, r.Pools["A"]))
			gone := settled(r, last)
			if len(gone) != len(want) {
				t.Errorf("cut off after %d (%v): %d were released, of %d", cut, err, len(gone), len(want))
			}
			if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
				t.Errorf("%q, %v", problems, err)
			}
			if subnets, err := r.S.Subnets(ctx, ""); err != nil || len(subnets) > 0 {
				t.Errorf("%v, %v", subnets, err)
			}
		})
	}
}

// BO-12: what the next start finds of a subnet that is gone is released through one that fits every address of its
// family: nobody knows any more which it was in.
func TestBO12CatchAll(t *testing.T) {
	for cidr, all := range map[string]string{"10.9.0.0/16": "0.0.0.0/0", "fd00:9::/64": "::/0"} {
		t.Run(cidr, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run("attach A cidr=" + cidr)
			for i := range 1100 {
				if _, err := r.S.RequestAddress(ctx,
					ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(i + 1)}); err != nil {
					t.Fatal(err)
				}
			}
			r.Store.Each(func(n int) storetest.Fault {
				if n == 3 {
					return storetest.Fault{Lost: context.DeadlineExceeded}
				}
				return storetest.Fault{}
			})
			if err := r.S.ReleasePool(ctx, r.Pools["A"]); err == nil {
				t.Fatal("it was not cut off")
			}
			r.Store.Each(nil)
			r.Store.Heal()
			last := ipamtest.LastEvent(t, r)
			r.Open()
			through := map[string]int{}
			for _, e := range ipamtest.EventsAfter(t, r, last) {
				if e.Verb == ipam.LeaseReleased {
					through[e.Subnet.String()]++
				}
			}
			if len(through) != 1 || through[all] == 0 {
				t.Errorf("released through %v", through)
			}
		})
	}
}
