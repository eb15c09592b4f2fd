package allocator_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// Two networks of a swarm have the same subnet, and the second was created with the first one's gateway. This
// looks like a replay until the first network sends another request. The first network keeps its addresses, and
// no other gets them. An attachment that is kept when its successor ends no longer has a successor. It does not end
// at the next start.
func TestSuccessorOfTheLiving(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"it keeps its addresses", `
		attach A cidr=10.0.9.0/24 space=global swarm
		gateway A -> 10.0.9.1
		ask A -> 10.0.9.2
		attach B cidr=10.0.9.0/24 space=global swarm
		gateway B ip=10.0.9.1
		ask B ip=10.0.9.2
		ask A -> 10.0.9.3
		attach C cidr=10.0.9.0/24 space=global swarm
		detach B
		ask C ip=10.0.9.3 mac=3 ! inuse
		ask A
	`}, {"spared for good", `
		attach A cidr=10.0.9.0/24 space=global swarm
		gateway A -> 10.0.9.1
		ask A -> 10.0.9.2
		attach B cidr=10.0.9.0/24 space=global swarm
		gateway B ip=10.0.9.1
		detach B
		lost 10.0.9.2 -> true
		host h1
		ask A
	`}})
}

// A successor may have another host name, because host names change.
func TestSuccessorAfterRename(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		attach A cidr=10.0.9.0/24 space=global swarm
		gateway A -> 10.0.9.1
		host renamed
		attach B cidr=10.0.9.0/24 space=global swarm
		gateway B ip=10.0.9.1
		detach B
	`)
	if left, err := r.S.Subnets(ctx, ""); err != nil || len(left) != 0 {
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
	r := ipamtest.New(t)
	r.Run("attach A cidr=10.0.9.0/29\nattach B cidr=10.0.9.0/29")
	for i := range 6 {
		r.Line(fmt.Sprint("ask A mac=", i+1))
	}
	r.Store.Next(storetest.Fault{}, storetest.Fault{Before: store.ErrNoSpace})
	r.Line("detach A")
	if r.S.Waiting() != 1 {
		t.Fatal("the release was not cut off")
	}
	r.Run("detach A\nask B mac=9")
}
