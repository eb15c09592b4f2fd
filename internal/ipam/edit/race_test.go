package edit_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// GA-22: whoever asks at the same time, by hand, by Docker, for reservations, or while the plan changes under them: no
// address is in two hands, and nothing contradicts anything afterwards.
func TestGA22Races(t *testing.T) {
	t.Run("bolt", func(t *testing.T) { race(t, filepath.Join(t.TempDir(), "berth.db")) })
	t.Run("mem", func(t *testing.T) { race(t, "") }) // BO-4
}

func race(t *testing.T, path string) {
	st := ipamtest.OpenStore(t, path)
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1", Subnets: []ipam.SubnetSpec{
		{CIDR: netip.MustParsePrefix("192.0.2.0/25"), Gateway: netip.MustParseAddr("192.0.2.1"), Name: "lan"},
		{CIDR: netip.MustParsePrefix("192.0.2.128/26"), Pool: true}}},
		&ipam.AddPool{Network: "net1", Range: ipamtest.MustRange("192.0.2.2-192.0.2.60"), Name: "a"},
		&ipam.AddPool{Network: "net1", Range: ipamtest.MustRange("192.0.2.61-192.0.2.126")})
	fine(t, err)
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix("192.0.2.0/25")})
	fine(t, err)
	h := &hands{held: map[netip.Addr]string{}}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() { h.byHand(t, s, worker) })
		wg.Go(func() { h.byDocker(t, s, grant.ID, worker) })
		wg.Go(func() { h.reserve(t, s, worker) })
	}
	for worker := range 3 {
		wg.Go(func() { replan(t, s, worker) })
	}
	wg.Wait()

	if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range ipamtest.ListLeases(t, s, ipam.LeaseFilter{}) {
		if l.Kind == ipam.Gateway {
			continue
		}
		if h.held[l.Address] != l.Name {
			t.Errorf("%s is held by %s, and was given to %q", l.Address, l.Name, h.held[l.Address])
		}
		delete(h.held, l.Address)
	}
	if len(h.held) > 0 {
		t.Errorf("given and not held: %v", h.held)
	}
	// The index has kept up with the records.
	shown := func(s *service.Service) (ipam.NetworkInfo, []ipam.LeaseInfo) {
		n, err := s.Network(ctx, "net1")
		fine(t, err)
		return n, ipamtest.ListLeases(t, s, ipam.LeaseFilter{Remembered: true})
	}
	n, leases := shown(s)
	n2, leases2 := shown(ipamtest.OpenService(t, st, time.Now))
	if diff := cmp.Diff(n, n2, ipamtest.ShowOptions) + cmp.Diff(leases, leases2, ipamtest.ShowOptions); diff != "" {
		t.Errorf("after a restart other things are shown:\n%s", diff)
	}
}

// hands is who believes to have which address.
type hands struct {
	mu   sync.Mutex
	held map[netip.Addr]string
}

// take writes down what was given, and finds the second holder.
func (h *hands) take(t *testing.T, a netip.Addr, who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, taken := h.held[a]; taken && other != who {
		t.Errorf("%s is in the hands of %s and %s", a, other, who)
	}
	h.held[a] = who
}

// give is called before an address is given back, since it may be somebody else's at once.
func (h *hands) give(a netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, a)
}

// byHand takes addresses for what is no container, and gives most of them back.
func (h *hands) byHand(t *testing.T, s *service.Service, worker int) {
	rng := rand.New(rand.NewSource(int64(worker)))
	for i := range 40 {
		owner := fmt.Sprintf("vm%d-%d", worker, i)
		wish := ipam.Wish{}
		if rng.Intn(3) == 0 { // everybody wants the same few
			wish.Address = netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + rng.Intn(4))})
		}
		out, err := s.Edit(ctx, ipam.EditOptions{},
			&ipam.TakeAddress{Network: "net1", Owner: owner,
				Interface: ipam.Interface{Wishes: []ipam.Wish{wish, {Slot: 1}}}})
		if err != nil {
			tolerated(t, "take", err)
			continue
		}
		for _, a := range out.Results[0].Addresses {
			h.take(t, a, owner)
		}
		if rng.Intn(4) == 0 {
			continue
		}
		for _, a := range out.Results[0].Addresses {
			h.give(a)
		}
		if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.ReleaseAddress{Network: "net1", Owner: owner}); err != nil {
			t.Error(err)
		}
	}
}

// byDocker runs containers.
func (h *hands) byDocker(t *testing.T, s *service.Service, pool ipam.ID, worker int) {
	rng := rand.New(rand.NewSource(int64(100 + worker)))
	for i := range 40 {
		name := fmt.Sprintf("c%d-%d", worker, i)
		req := ipam.AddressRequest{Pool: pool, MAC: ipamtest.MAC(worker*1000 + i + 1), Name: name}
		if rng.Intn(3) == 0 {
			req.Preferred = netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + rng.Intn(4))})
		}
		got, err := s.RequestAddress(ctx, req)
		if err != nil {
			tolerated(t, "ask", err)
			continue
		}
		h.take(t, got.Addr(), name)
		if rng.Intn(4) == 0 {
			continue
		}
		h.give(got.Addr())
		if err := s.ReleaseAddress(ctx, pool, got.Addr()); err != nil {
			t.Error(err)
		}
	}
}

// reserve reserves, takes what it has reserved, and ends that: nobody else may have had it meanwhile.
func (h *hands) reserve(t *testing.T, s *service.Service, worker int) {
	for i := range 25 {
		owner := fmt.Sprintf("r%d-%d", worker, i)
		out, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.AddReservation{Network: "net1", Owner: owner})
		if err != nil {
			tolerated(t, "reserve", err)
			continue
		}
		reserved := out.Results[0].Addresses[0]
		out, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.TakeAddress{Network: "net1", Owner: owner})
		if err != nil || out.Results[0].Addresses[0] != reserved {
			t.Errorf("%s reserved %s and got %+v, %v", owner, reserved, out.Results, err)
			continue
		}
		h.take(t, reserved, owner)
		if i%3 == 0 {
			continue
		}
		h.give(reserved)
		if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.ReleaseAddress{Network: "net1", Owner: owner},
			&ipam.RemoveReservation{Network: "net1", Owner: owner}); err != nil {
			t.Error(err)
		}
	}
}

// replan cuts pools and exclusions in and out.
func replan(t *testing.T, s *service.Service, worker int) {
	rng := rand.New(rand.NewSource(int64(200 + worker)))
	for i := range 60 {
		from := 10 + rng.Intn(100)
		r := ipamtest.MustRange(fmt.Sprintf("192.0.2.%d-192.0.2.%d", from, from+rng.Intn(10)))
		edits := []ipam.Edit{
			&ipam.RemovePool{Network: "net1", Pool: r.String()},
			&ipam.AddPool{Network: "net1", Range: r, Name: fmt.Sprintf("p%d", i)},
			&ipam.AddExclusion{Network: "net1", Range: r}, &ipam.RemoveExclusion{Network: "net1", Range: r},
			&ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"n": new(fmt.Sprint(i))}},
			&ipam.ModifySubnet{Network: "net1", Subnet: "192.0.2.128/26", Name: new(fmt.Sprintf("s%d-%d", worker, i))},
		}
		if _, err := s.Edit(ctx, ipam.EditOptions{DryRun: rng.Intn(5) == 0}, edits[rng.Intn(len(edits))]); err != nil {
			tolerated(t, "edit", err)
		}
		if _, err := s.Network(ctx, "net1"); err != nil {
			t.Error(err)
		}
	}
}

// tolerated lets the refusals pass that a race may lead to.
func tolerated(t *testing.T, what string, err error) {
	switch ipamtest.KindOf(err) {
	case "inuse", "exhausted", "overlap", "notfound":
	default:
		t.Errorf("%s: %v", what, err)
	}
}

// One of those who change a network under the same revision is the first, and the others are told.
func TestIfMatchRace(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1"}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		n, err := s.Network(ctx, "net1")
		fine(t, err)
		var wg sync.WaitGroup
		var mu sync.Mutex
		kinds := map[string]int{}
		for i := range 8 {
			wg.Go(func() {
				_, err := s.Edit(ctx, ipam.EditOptions{IfMatch: n.Revision},
					&ipam.ModifyNetwork{Network: "net1",
						Tags: map[string]*string{"by": new(fmt.Sprint(i, n.Revision))}})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					kinds["done"]++
				} else {
					kinds[ipamtest.KindOf(err)]++
				}
			})
		}
		wg.Wait()
		if kinds["done"] != 1 || kinds["changed"] != 7 {
			t.Fatalf("%v", kinds)
		}
	}
}

// The same key used by many at the same time makes its edit once.
func TestKeyRace(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	if _, err := s.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "net1",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/24"), Pool: true}}}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[string]int{}
	fresh := 0
	for range 12 {
		wg.Go(func() {
			out, err := s.Edit(ctx, ipam.EditOptions{Key: "k"},
				&ipam.TakeAddress{Network: "net1", Owner: "vm",
					Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			given[ipamtest.Joined(out.Results[0].Addresses)]++
			if !out.Replayed {
				fresh++
			}
		})
	}
	wg.Wait()
	if fresh != 1 || given["192.0.2.1"] != 12 {
		t.Errorf("%d were made: %v", fresh, given)
	}
}
