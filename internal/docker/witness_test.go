package docker

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

var errTest = errors.New("the stream broke")

// TestRepairs: each kind of certain finding is repaired by the actor check, and is gone afterwards.
func TestRepairs(t *testing.T) {
	for name, row := range map[string]struct {
		make func(tn *town)
		want string
		verb ipam.Verb
		then func(tn *town)
	}{
		"a lease": {
			func(tn *town) { tn.run("gone", "front"); tn.vanish("gone") }, "unused_lease 10.8.0.2", ipam.LeaseReleased,
			func(tn *town) {
				if got := tn.lease("front", macN(1), netip.Addr{}); got != addr("10.8.0.2") {
					tn.t.Errorf("its holder came again and got %s", got)
				}
			}},
		"an attachment": {
			func(tn *town) {
				tn.run("web", "front")
				tn.network("twin", "10.8.0.0/24")
				tn.vanishNetwork("twin")
			}, "unused_attachment 10.8.0.0/24", ipam.PoolReleased,
			func(tn *town) {
				at, err := tn.service.Attachments(tn.t.Context())
				must(tn.t, err)
				if len(at) != 1 || at[0].ID != tn.pools["front"] {
					tn.t.Errorf("attachments are left: %v", at)
				}
			}},
		"a subnet": {
			func(tn *town) {
				tn.network("back", "10.9.0.0/24")
				tn.run("db", "back")
				tn.network("twin", "10.9.0.0/24")
				tn.vanish("db")
				tn.vanishNetwork("back")
				tn.vanishNetwork("twin")
			}, "unused_subnet 10.9.0.0/24", ipam.SubnetRemoved,
			func(tn *town) {
				if subnets, err := tn.service.Subnets(tn.t.Context(), ""); err != nil || len(subnets) != 1 {
					tn.t.Errorf("subnets are left: %v, %v", subnets, err)
				}
			}},
		"a memory": {
			func(tn *town) {
				got := tn.run("gone", "front")
				must(tn.t, tn.service.NameLeases(tn.t.Context(),
					[]ipam.LeaseName{{LeaseRef: ipam.LeaseRef{Space: "local", Address: got, ID: tn.leaseOf(got).ID},
						Name: "gone"}}))
				tn.release("front", got)
				tn.vanish("gone")
				tn.settle(31 * 24 * time.Hour)
			}, "stale_memory 10.8.0.2", 0,
			func(tn *town) {
				if l := tn.leaseOf(addr("10.8.0.2")); l.ID != 0 {
					tn.t.Errorf("left: %+v", l)
				}
			}},
		"an address": {
			func(tn *town) { tn.number++; tn.appear("web", "front", addr("10.8.0.9")) }, "uncovered_address " +
				"10.8.0.9", ipam.LeaseTaken,
			func(tn *town) {
				l := tn.leaseOf(addr("10.8.0.9"))
				if l.MAC != macN(1) || l.Name != "web" || l.Pool != tn.pools["front"] {
					tn.t.Errorf("the lease is %+v", l)
				}
				tn.release("front", addr("10.8.0.9"))
				if l := tn.leaseOf(addr("10.8.0.9")); l.State != "remembered" {
					tn.t.Errorf("after the container's stop it is %+v", l)
				}
			}},
		"the lease of one who is gone, of an address that another runs with": {
			func(tn *town) {
				got := tn.run("gone", "front")
				tn.edit(&ipam.AddReservation{Network: tn.leaseOf(got).Network, Owner: "web",
					Wishes: []ipam.Wish{{Address: got}}, Force: true})
				tn.vanish("gone")
				tn.number++
				tn.appear("web", "front", got)
			}, "outdated_lease 10.8.0.2", ipam.LeaseTaken,
			func(tn *town) {
				l := tn.leaseOf(addr("10.8.0.2"))
				if l.MAC != macN(2) || l.Name != "web" || l.Pool != tn.pools["front"] || l.State != "held" {
					tn.t.Errorf("the lease is %+v", l)
				}
				taken, released := tn.lastEvent(ipam.LeaseTaken), tn.lastEvent(ipam.LeaseReleased)
				if released.MAC != macN(1) || released.ID >= taken.ID || taken.ID != l.ID {
					tn.t.Errorf("told are %+v and %+v", released, taken)
				}
				tn.release("front", addr("10.8.0.2"))
				if l := tn.leaseOf(addr("10.8.0.2")); l.State == "held" {
					tn.t.Errorf("after the container's stop it is %+v", l)
				}
				var owners []string
				for r, err := range tn.service.Reservations(tn.t.Context(), ipam.AddressFilter{}) {
					must(tn.t, err)
					owners = append(owners, r.Owner+" "+r.Address.String())
				}
				if !slices.Equal(owners, []string{"web 10.8.0.2"}) {
					tn.t.Errorf("reserved is %q", owners)
				}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			tn := newTown(t)
			row.make(tn)
			tn.settle(networkCreation + time.Second)
			tn.check(ipam.CheckRequest{})
			tn.clock.wait(5 * time.Minute)
			found := tn.check(ipam.CheckRequest{})
			if got := told(&found); !slices.Contains(got, row.want+" repairable") {
				t.Fatalf("found %q", got)
			}
			r := tn.check(ipam.CheckRequest{Repair: true})
			if got := told(&r); !slices.Contains(got, row.want+" repaired") || r.Repaired != len(r.Findings) {
				t.Errorf("repaired %d of %q", r.Repaired, got)
			}
			if row.verb != 0 {
				if e := tn.lastEvent(row.verb); e.Actor != "check" {
					t.Errorf("its event is by %q", e.Actor)
				}
			}
			wantTold(t, tn.check(ipam.CheckRequest{Repair: true}))
			row.then(tn)
		})
	}
}

// TestRepairRefused: a refusal of the service is reported and changes nothing.
func TestRepairRefused(t *testing.T) {
	tn := newTown(t)
	net := tn.leaseOf(addr("10.8.0.1")).Network
	tn.edit(&ipam.AddReservation{Network: net, Owner: "db", Wishes: []ipam.Wish{{Address: addr("10.8.0.9")}}})
	tn.number++
	tn.appear("web", "front", addr("10.8.0.9"))
	tn.settle(time.Second)
	r := tn.check(ipam.CheckRequest{Repair: true})
	wantTold(t, r, "uncovered_address 10.8.0.9 repairable")
	if d := r.Findings[0].Detail; !strings.Contains(d, "could not be repaired") || !strings.Contains(d, "db") {
		t.Errorf("it says %q", d)
	}
	if r.Repaired != 0 || tn.leaseOf(addr("10.8.0.9")).State == "held" {
		t.Error("it is leased")
	}
}

// TestNetworkBeingCreated: an engine requests the subnet of a new network before it lists the network. That is no
// finding for a while, also if the subnet has another network.
func TestNetworkBeingCreated(t *testing.T) {
	tn := newTown(t)
	tn.settle(time.Hour)
	tn.network("back", "10.9.0.0/24")
	tn.network("twin", "10.8.0.0/24")
	tn.vanishNetwork("back")
	tn.settle(networkCreation - time.Second)
	wantTold(t, tn.check(ipam.CheckRequest{}))
	tn.vanishNetwork("twin")
	tn.settle(0)
	wantTold(t, tn.check(ipam.CheckRequest{}))
	tn.settle(time.Second)
	wantTold(t, tn.check(ipam.CheckRequest{}), "unused_subnet 10.9.0.0/24", "unused_attachment 10.8.0.0/24")
}

// TestNotRepaired: an uncertain finding is never repaired, however long it lasts.
func TestNotRepaired(t *testing.T) {
	tn := newTown(t)
	tn.run("web", "front")
	tn.number++
	tn.appear("other", "front", addr("10.8.0.2")) // two have it
	tn.network("back", "10.9.0.0/24")
	tn.network("twin", "10.9.0.0/24") // either may be the removed one
	tn.vanishNetwork("twin")
	tn.view.Networks[1].Subnets[0].Gateway = addr("10.9.0.77")
	tn.view.Networks = append(tn.view.Networks,
		ipam.EngineNetwork{ID: "id-alien", Name: "alien", Driver: "berth",
			Subnets: []ipam.EngineSubnet{{CIDR: prefix("10.7.0.0/24")}}})
	tn.settle(networkCreation + time.Second)
	for range 3 {
		r := tn.check(ipam.CheckRequest{Repair: true})
		wantTold(t, r, "doubled_address 10.8.0.2", "unused_attachment 10.9.0.0/24", "unknown_pool 10.7.0.0/24",
			"wrong_gateway 10.9.0.77")
		tn.clock.wait(time.Hour)
	}
	if at, err := tn.service.Attachments(t.Context()); err != nil || len(at) != 3 {
		t.Errorf("attachments: %v, %v", at, err)
	}
}

// TestRepairOnly: with an earlier report, only findings that are in both are repaired.
func TestRepairOnly(t *testing.T) {
	tn := newTown(t)
	tn.run("one", "front")
	tn.run("two", "front")
	tn.vanish("one")
	tn.settle(time.Second)
	before := tn.check(ipam.CheckRequest{})
	tn.vanish("two")
	tn.settle(time.Second)
	tn.check(ipam.CheckRequest{})
	tn.clock.wait(time.Hour)
	wantTold(t, tn.check(ipam.CheckRequest{Only: &before}), "unused_lease 10.8.0.2 repairable",
		"unused_lease 10.8.0.3 repairable")
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true, Only: &before}), "unused_lease 10.8.0.2 repaired",
		"unused_lease 10.8.0.3 repairable")

	// A second leak of the same address is another lease.
	tn.lease("front", macN(1), addr("10.8.0.2"))
	tn.clock.wait(time.Second)
	tn.check(ipam.CheckRequest{})
	tn.clock.wait(time.Hour)
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true, Only: &before}), "unused_lease 10.8.0.2 repairable",
		"unused_lease 10.8.0.3 repairable")

	_, err := tn.w.Check(t.Context(), ipam.CheckRequest{Repair: true, Only: &ipam.CheckReport{Host: "h2"}})
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "h2") {
		t.Errorf("with a report of another host: %v", err)
	}
}

// during calls do once, after the last request of the n-th view from now.
func (tn *town) during(n int, do func()) {
	tn.engine.mu.Lock()
	defer tn.engine.mu.Unlock()
	tn.engine.ask = func(_, path string) {
		if !strings.HasSuffix(path, "/networks/id-front") {
			return
		}
		if n--; n == 0 {
			tn.engine.mu.Lock()
			networks, containers := tn.engine.networks, tn.engine.containers
			tn.engine.mu.Unlock()
			do()
			tn.engine.mu.Lock()
			later, laterContainers := tn.engine.networks, tn.engine.containers
			tn.engine.networks, tn.engine.containers = networks, containers // for the answer to this request
			tn.engine.ask = func(_, _ string) {
				tn.engine.mu.Lock()
				defer tn.engine.mu.Unlock()
				tn.engine.networks, tn.engine.containers, tn.engine.ask = later, laterContainers, nil
			}
			tn.engine.mu.Unlock()
		}
	}
}

// TestStoppedMeanwhile: a container stops, and another gets its address, between the view and the records. That is no
// finding, because only the first view has it.
func TestStoppedMeanwhile(t *testing.T) {
	tn := newTown(t)
	stopped, other := tn.run("stopped", "front"), tn.run("other", "front")
	tn.settle(time.Second)
	tn.during(1, func() {
		tn.release("front", stopped)
		tn.release("front", other)
		tn.vanish("stopped")
		tn.vanish("other")
		tn.number++
		tn.appear("next", "front", tn.lease("front", macN(tn.number), other))
		tn.engine.set(tn.view)
	})
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}))
	if l := tn.leaseOf(stopped); l.State != "remembered" {
		t.Errorf("its address is %s", l.State)
	}
	if l := tn.leaseOf(other); l.State != "held" || l.MAC != macN(3) {
		t.Errorf("the other's is %s of %s", l.State, l.MAC)
	}
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}))
}

// TestDiesMeanwhile: if the engine is gone before the second view, nothing is reported.
func TestDiesMeanwhile(t *testing.T) {
	tn, leak := leaked(t)
	tn.check(ipam.CheckRequest{})
	tn.clock.wait(5 * time.Minute)
	tn.engine.mu.Lock()
	lists := 0
	tn.engine.ask = func(_, path string) {
		tn.engine.mu.Lock()
		defer tn.engine.mu.Unlock()
		if strings.HasSuffix(path, "/containers/json") {
			if lists++; lists == 1 {
				tn.engine.refuse = "/networks/id-front"
			}
		}
	}
	tn.engine.refuse = ""
	tn.engine.mu.Unlock()
	r := tn.check(ipam.CheckRequest{Repair: true})
	if r.Engine != ipam.EngineUnreachable || len(r.Findings) != 0 || !strings.Contains(r.Trouble, "it hurts") {
		t.Errorf("the report is %+v", r)
	}
	if l := tn.leaseOf(addr(leak)); l.State != "held" {
		t.Errorf("the lease is %s", l.State)
	}
}

// TestSuperseded: a replaced reservation ends when its owner runs with another, in checks and looks, whether or not
// repairs are wanted (BO-13).
func TestSuperseded(t *testing.T) {
	for name, see := range map[string]func(tn *town){
		"check": func(tn *town) {
			wantTold(tn.t, tn.check(ipam.CheckRequest{}), "superseded_reservation 10.8.0.20 repaired",
				"superseded_reservation 10.8.0.21 repaired")
		},
		"look": func(tn *town) { must(tn.t, tn.w.look(tn.t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			tn := newTown(t)
			net := tn.leaseOf(addr("10.8.0.1")).Network
			wish := func(a ...string) *ipam.AddReservation {
				e := &ipam.AddReservation{Network: net, Owner: "web", Replace: true}
				for i, text := range a {
					e.Wishes = append(e.Wishes, ipam.Wish{Slot: i, Address: addr(text)})
				}
				return e
			}
			tn.edit(wish("10.8.0.20", "10.8.0.21"))
			tn.edit(wish("10.8.0.30", "10.8.0.31"))
			kept := func() (all []string) {
				for r, err := range tn.service.Reservations(t.Context(), ipam.AddressFilter{Owner: "web"}) {
					must(t, err)
					all = append(all, r.Address.String())
				}
				return all
			}
			all := []string{"10.8.0.20", "10.8.0.21", "10.8.0.30", "10.8.0.31"}
			wantTold(t, tn.check(ipam.CheckRequest{Repair: true}))
			if got := kept(); !slices.Equal(got, all) {
				t.Fatalf("before it runs it has %v", got)
			}
			// two containers, because Docker gives one no second address
			for a, name := range map[string]string{"10.8.0.30": "web", "10.8.0.31": "0123456789ab_web"} {
				tn.number++
				got, err := tn.service.RequestAddress(t.Context(),
					ipam.AddressRequest{Pool: tn.pools["front"], MAC: macN(tn.number), Name: "web", Preferred: addr(a)})
				must(t, err)
				tn.appear(name, "front", got.Addr())
			}
			tn.settle(time.Second)
			see(tn)
			if got := kept(); !slices.Equal(got, all[2:]) {
				t.Errorf("afterwards it has %v", got)
			}
			if e := tn.lastEvent(ipam.ReservationRemoved); e.Actor != "check" {
				t.Errorf("its event is by %q", e.Actor)
			}
		})
	}
}

// TestCheckEnds: a context ends the wait for the turn.
func TestCheckEnds(t *testing.T) {
	tn := newTown(t)
	done, err := tn.w.take(t.Context())
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tn.w.Check(ctx, ipam.CheckRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	done()
	if _, err := tn.w.Check(ctx, ipam.CheckRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	wantTold(t, tn.check(ipam.CheckRequest{}))
}
