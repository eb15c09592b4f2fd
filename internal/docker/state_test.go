package docker

import (
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// TestNames: if the engine sends no names, leases get names from views. SeenBy returns the container of exactly one
// lease.
func TestNames(t *testing.T) {
	tn := newScenario(t)
	a := tn.run("web", "front")
	c := &tn.view.Containers[0]
	c.Project, c.Service, c.Number = "shop", "web", 1
	tn.plays("wait 1s\nlook\nat 10.8.0.2 -> held web 1 front")
	l := tn.leaseOf(a)
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
	c.Name = "renamed"
	tn.plays(`
		wait 1s
		look
		seen 10.8.0.2 -> renamed
		at 10.8.0.2 -> held web 1 front
		# it is not forgotten because the engine is away
		stop
		look ! connect
		seen 10.8.0.2 -> renamed
	`)
}

// TestNameByAddress: an endpoint without a MAC names the lease of its address only if the lease is older than the view.
// A younger lease may be another container's.
func TestNameByAddress(t *testing.T) {
	tn := newScenario(t)
	tn.run("web", "front")
	tn.view.Containers[0].Endpoints[0].MAC = ipam.MAC{}
	tn.plays(`
		check -> nothing
		at 10.8.0.2 -> held - 1 front
		seen 10.8.0.2 -> web
		wait 1s
		check -> nothing
		at 10.8.0.2 -> held web 1 front
	`)
}

// TestState: State reports the engine, the number of checks, the last check, and when the engine was last seen.
func TestState(t *testing.T) {
	tn, _ := leaked(t)
	tn.plays(`
		state -> unreachable 0
		check -> unused_lease 10.8.0.3
		state -> reachable 1
		leaks -> 1
	`)
	seen := tn.clock.Now()
	if s := tn.w.State(); !s.Last.Equal(seen) || !s.Seen.Equal(seen) || s.Detail != "" {
		t.Errorf("after a check: %+v", s)
	}
	tn.plays(`
		wait 1m
		stop
		check -> unreachable, nothing
		state -> unreachable 2
		leaks -> 1
	`)
	if s := tn.w.State(); !s.Last.Equal(tn.clock.Now()) || !s.Seen.Equal(seen) || s.Detail == "" {
		t.Errorf("after one without an engine: %+v", s)
	}
	newPushed(t).plays("check repair -> none, nothing\nstate -> none 1")
}
