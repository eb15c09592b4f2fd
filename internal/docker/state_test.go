package docker

import (
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// TestNames: leases of an engine without names get them from views. SeenBy names the container of exactly the lease.
func TestNames(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	c := &tn.view.Containers[0]
	c.Project, c.Service, c.Number = "shop", "web", 1
	tn.settle(time.Second)
	must(t, tn.w.look(t.Context()))
	l := tn.leaseOf(a)
	if l.Name != "web" {
		t.Errorf("the lease is called %q", l.Name)
	}
	want := &ipam.SeenBy{Container: "web", ID: "id-web", Project: "shop", Service: "web", State: "running",
		MAC: ipam.MAC{2, 0, 0, 0, 0, 1}, Network: "front"}
	if diff := cmp.Diff(want, tn.w.SeenBy("local", a, l.ID)); diff != "" {
		t.Errorf("seen by (-want +got):\n%s", diff)
	}
	for what, got := range map[string]*ipam.SeenBy{
		"another lease": tn.w.SeenBy("local", a, l.ID+1), "another space": tn.w.SeenBy("lab", a, l.ID),
		"another address": tn.w.SeenBy("local", a.Next(), l.ID),
	} {
		if got != nil {
			t.Errorf("%s is seen by %v", what, got)
		}
	}
	c = &tn.view.Containers[0]
	c.Name = "renamed"
	tn.settle(time.Second)
	must(t, tn.w.look(t.Context()))
	if got := tn.w.SeenBy("local", a, l.ID); got == nil || got.Container != "renamed" {
		t.Errorf("after it was renamed it is seen by %v", got)
	}
	if got := tn.leaseOf(a).Name; got != "web" {
		t.Errorf("the lease is called %q", got)
	}
	tn.engine.stop()
	if err := tn.w.look(t.Context()); err == nil {
		t.Error("a look of nothing succeeded")
	}
	if got := tn.w.SeenBy("local", a, l.ID); got == nil {
		t.Error("it is forgotten because the engine is away")
	}
}

// TestNameByAddress: an endpoint without a MAC names the lease of its address only if the lease is older than the view.
// A younger lease may be another container's.
func TestNameByAddress(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	tn.view.Containers[0].Endpoints[0].MAC = ipam.MAC{}
	tn.settle(0) // the view has the same time as the lease
	wantTold(t, tn.check(ipam.CheckRequest{}))
	l := tn.leaseOf(a)
	if l.Name != "" {
		t.Errorf("a lease that is not older than the view is called %q", l.Name)
	}
	if by := tn.w.SeenBy("local", a, l.ID); by == nil || by.Container != "web" {
		t.Errorf("it is seen by %v", by)
	}
	tn.settle(time.Second)
	wantTold(t, tn.check(ipam.CheckRequest{}))
	if l := tn.leaseOf(a); l.Name != "web" {
		t.Errorf("the lease is called %q", l.Name)
	}
}

// TestState: the state as a person sees it.
func TestState(t *testing.T) {
	tn, _ := leaked(t)
	if s := tn.w.State(); s.Engine != ipam.EngineUnreachable || s.Runs != 0 || s.Detail == "" {
		t.Errorf("at first: %+v", s)
	}
	tn.check(ipam.CheckRequest{})
	s := tn.w.State()
	if s.Engine != ipam.EngineReachable || s.Runs != 1 || s.Counts[ipam.UnusedLease] != 1 ||
		!s.Last.Equal(tn.clock.Now()) || !s.Seen.Equal(tn.clock.Now()) || s.Detail != "" {
		t.Errorf("after a check: %+v", s)
	}
	seen := tn.clock.Now()
	tn.clock.wait(time.Minute)
	tn.engine.stop()
	tn.check(ipam.CheckRequest{})
	s = tn.w.State()
	if s.Engine != ipam.EngineUnreachable || s.Runs != 2 || s.Counts[ipam.UnusedLease] != 1 ||
		!s.Last.Equal(tn.clock.Now()) || !s.Seen.Equal(seen) || s.Detail == "" {
		t.Errorf("after one without an engine: %+v", s)
	}
	none := tn.witness(nil, nil)
	r, err := none.Check(t.Context(), ipam.CheckRequest{Repair: true})
	must(t, err)
	if r.Engine != ipam.NoEngine || r.Trouble != "" || r.Findings == nil || len(r.Findings) != 0 ||
		none.State().Engine != ipam.NoEngine {
		t.Errorf("where there is none: %+v", r)
	}
}
