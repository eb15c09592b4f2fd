package edit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store/storetest"
)

// crowded attaches the pool A of a prefix and takes addresses for n endpoints of it. It returns their leases.
func crowded(t *testing.T, cidr string, n int) (r *ipamtest.Stage, leases map[uint64]string) {
	t.Helper()
	r = ipamtest.New(t)
	r.Run("attach A cidr=" + cidr)
	for i := range n {
		ipamtest.MustTake(t, r.S,
			ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(i + 1), Name: fmt.Sprintf("c%d", i)})
	}
	leases = map[uint64]string{}
	for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{}) {
		leases[l.ID] = fmt.Sprintf("%s %s %s", l.Address, l.MAC, l.Name)
	}
	return r, leases
}

// detachCut ends the pool A, and is cut off in its n-th transaction. The release succeeds all the same.
func detachCut(r *ipamtest.Stage, n int) {
	r.T.Helper()
	r.Store.Each(func(i int) storetest.Fault {
		if i == n {
			return storetest.Fault{Lost: context.DeadlineExceeded}
		}
		return storetest.Fault{}
	})
	// a host's own store lets the rest wait; a shared one reports it, and the host's outbox continues
	if err := r.S.ReleasePool(ctx, r.Pools["A"]); !errors.Is(err, context.DeadlineExceeded) {
		fine(r.T, err)
	}
	r.Store.Each(nil)
	r.Store.Heal()
}

// wantReleased completes what is done in batches. Each lease must have been released once since an event.
func wantReleased(r *ipamtest.Stage, last uint64, want map[uint64]string) {
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
	if !maps.Equal(gone, want) {
		r.T.Errorf("%d leases were released, of %d:\n%v\n%v", len(gone), len(want), gone, want)
	}
}

// BO-12: when a subnet goes, each address in use is released with an event, as by any release: with the lease, its
// holder and the subnet.
func TestBO12LeasesOfGoneSubnet(t *testing.T) {
	for _, n := range []int{1, 3, 700} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r, leases := crowded(t, "10.9.0.0/16", n)
			last := ipamtest.LastEvent(t, r)
			r.Run(`detach A`)
			wantReleased(r, last, leases)
			r.Run("attach A cidr=10.9.0.0/16\nask A c0 mac=1 -> 10.9.0.1\nask A new mac=900 -> 10.9.0.2")
		})
	}
}

// BO-12: when a network is removed by force, each of its reservations ends with an event.
func TestBO12ReservationsOfGoneNetwork(t *testing.T) {
	for _, n := range []int{1, 5, 600} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(`network n subnet=10.9.0.0/16,gw=10.9.255.254,pool+2001:db8::/64,pool`)
			for i := 0; i < n; i += 100 {
				owners := ""
				for j := i; j < min(n, i+100); j++ {
					owners += fmt.Sprintf(" shop/web/%d", j)
				}
				r.Line("bind n" + owners)
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

// BO-12: an end that is cut off continues with the next start, and each address is released once.
func TestBO12CutOff(t *testing.T) {
	for n := range storetest.Sampled(t, 3) {
		cut := n + 1
		if cut > 6 {
			break
		}
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			r, leases := crowded(t, "10.9.0.0/16", 1100)
			last := ipamtest.LastEvent(t, r)
			detachCut(r, cut)
			r.Open()
			r.Run("detach A")
			wantReleased(r, last, leases)
			if subnets, err := r.S.Subnets(ctx, ""); err != nil || len(subnets) > 0 {
				t.Errorf("%v, %v", subnets, err)
			}
		})
	}
}

// BO-12: a start that finds leases of a removed subnet releases them with the prefix of all addresses of their
// family, because nobody knows the subnet any more.
func TestBO12CatchAll(t *testing.T) {
	for cidr, all := range map[string]string{"10.9.0.0/16": "0.0.0.0/0", "fd00:9::/64": "::/0"} {
		t.Run(cidr, func(t *testing.T) {
			r, _ := crowded(t, cidr, 1100)
			detachCut(r, 3)
			if ipamtest.CountKeys(t, r.Store, 'l') == 0 {
				t.Fatal("it was not cut off")
			}
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
