package admin

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// The request for a mending and its result are as described.
func TestMendAsDescribed(t *testing.T) {
	var asked ipam.MendOptions
	answer := ipam.MendReport{Host: "alpha", Nothing: true}
	h := start(t, func(s *Server) {
		s.cfg.Mend = func(_ context.Context, opt ipam.MendOptions) (ipam.MendReport, error) {
			asked = opt
			if len(opt.Gone) > 1 {
				return ipam.MendReport{}, &store.Back{Why: "it went back", Since: time.Now()}
			}
			return answer, nil
		}
	})
	h.plays(t, `POST /v1/store/mend {"dry_run": true} -> 200 "nothing":true`)
	answer = ipam.MendReport{Host: "alpha", DryRun: true, Accepted: true, Remembers: true, Sees: true, Planner: "beta",
		Networks: 1, Reserved: 2, Removed: 3, Pools: 4,
		Leases: 5, Headroom: 6, Ended: 7, Running: 8, Problems: []string{"one"}, Missing: []string{"beta"},
		Collisions: []ipam.MendCollision{{Space: "global", Address: netip.MustParseAddr("10.77.0.9"), Here: "web",
			There: "db", Kept: "beta", Seen: true}}}
	h.plays(t, `POST /v1/store/mend {"accept": true, "gone": ["gamma"]}
		-> 200 "collisions":[{"space":"global","address":"10.77.0.9"`)
	if !asked.Accept || asked.DryRun || len(asked.Gone) != 1 {
		t.Errorf("it was asked for %+v", asked)
	}
	h.plays(t, `
		POST /v1/store/mend {"gone": ["a", "b"]} -> 503 store_away
		POST /v1/store/mend {"force": true} -> 400 invalid
	`)
	start(t, nil).plays(t, `POST /v1/store/mend {} -> 409 knows no other hosts`)
}
