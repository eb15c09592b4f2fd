package allocator_test

import (
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

func swarmRequest() ipam.PoolRequest {
	return ipam.PoolRequest{Space: "global", Swarm: true, CIDR: netip.MustParsePrefix("10.0.9.0/24")}
}

// Two networks of a swarm have the same subnet, and the second was created with the first one's gateway. This
// looks like a replay until the first network sends another request. The first network keeps its addresses, and
// no other gets them.
func TestSuccessorOfTheLiving(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	one := ipamtest.MustPool(t, s, swarmRequest())
	gateway := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID, Gateway: true})
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID})
	two := ipamtest.MustPool(t, s, swarmRequest())
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: two.ID, Gateway: true, Preferred: gateway})
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: two.ID, Preferred: netip.MustParseAddr("10.0.9.2")})
	live := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID})
	three := ipamtest.MustPool(t, s, swarmRequest())
	must(t, s.ReleasePool(ctx, two.ID))
	if got, err := s.RequestAddress(ctx,
		ipam.AddressRequest{Pool: three.ID, Preferred: live, MAC: ipamtest.MAC(3)}); err == nil {
		t.Errorf("%v has two holders", got)
	}
	if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: one.ID}); err != nil {
		t.Errorf("the first network ended with the second: %v", err)
	}
}

// An attachment that is kept when its successor ends no longer has a successor. It does not end at the next
// start.
func TestSparedForGood(t *testing.T) {
	st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	req := swarmRequest()
	req.Gateway = netip.MustParseAddr("10.0.9.1")
	one := ipamtest.MustPool(t, s, req)
	task := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID})
	two := ipamtest.MustPool(t, s, req)
	must(t, s.ReleasePool(ctx, two.ID))
	must(t, s.ReleaseAddress(ctx, one.ID, task))
	s = ipamtest.OpenService(t, st, time.Now)
	if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: one.ID}); err != nil {
		t.Error(err)
	}
}

// A successor may have another host name, because host names change.
func TestSuccessorAfterRename(t *testing.T) {
	st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	one := ipamtest.MustPool(t, s, swarmRequest())
	gateway := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID, Gateway: true})
	s, err := service.Open(ctx, service.Config{Store: st, Host: "renamed"})
	must(t, err)
	two := ipamtest.MustPool(t, s, swarmRequest())
	ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: two.ID, Gateway: true, Preferred: gateway})
	must(t, s.ReleasePool(ctx, two.ID))
	if left, err := s.Subnets(ctx, ""); err != nil || len(left) != 0 {
		t.Errorf("%d subnets are left, %v", len(left), err)
	}
}

// A transaction function that a store runs again, as one with optimistic transactions does, has the same result.
func TestReleaseRunAgain(t *testing.T) {
	for _, n := range []int{10, 1000} {
		st := storetest.NewFaulty(ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db")))
		t.Cleanup(func() { st.Close() })
		s := ipamtest.OpenService(t, st, time.Now)
		req := ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/16")}
		pool := ipamtest.MustPool(t, s, req)
		ipamtest.MustPool(t, s, req)
		for i := range n {
			ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(i + 1)})
		}
		st.Each(func(int) storetest.Fault { return storetest.Fault{Reruns: 1} })
		if err := s.ReleasePool(ctx, pool.ID); err != nil {
			t.Errorf("%d leases: %v", n, err)
		}
		if left := ipamtest.HeldAddrs(t, s); len(left) > 0 {
			t.Errorf("%d leases: %d are still held", n, len(left))
		}
		if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
			t.Errorf("%q, %v", problems, err)
		}
	}
}

// A release that a full disk interrupted continues when it is repeated.
func TestReleaseRepeated(t *testing.T) { // LN-2, LN-10
	st := storetest.NewFaulty(ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db")))
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	req := ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.9.0/29")}
	one, two := ipamtest.MustPool(t, s, req), ipamtest.MustPool(t, s, req)
	for i := range 6 {
		ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: one.ID, MAC: ipamtest.MAC(i + 1)})
	}
	st.Next(storetest.Fault{}, storetest.Fault{Before: store.ErrNoSpace})
	if err := s.ReleasePool(ctx, one.ID); err == nil {
		t.Fatal("the release was not cut off")
	}
	must(t, s.ReleasePool(ctx, one.ID))
	if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: two.ID, MAC: ipamtest.MAC(9)}); err != nil {
		t.Error(err)
	}
}
