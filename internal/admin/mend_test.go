package admin

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/store"
)

// What a mending is asked for, and what it comes to, are as described.
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
	post := func(body string, status int, has string) {
		t.Helper()
		h.play(t, step{method: "POST", target: "/v1/store/mend", body: body, status: status, has: has})
	}
	post(`{"dry_run": true}`, 200, `"nothing":true`)
	answer = ipam.MendReport{Host: "alpha", DryRun: true, Accepted: true, Remembers: true, Sees: true, Planner: "beta",
		Networks: 1, Reserved: 2, Removed: 3, Pools: 4,
		Leases: 5, Headroom: 6, Ended: 7, Running: 8, Problems: []string{"one"}, Missing: []string{"beta"},
		Collisions: []ipam.MendCollision{{Space: "global", Address: netip.MustParseAddr("10.77.0.9"), Here: "web",
			There: "db", Kept: "beta", Seen: true}}}
	post(`{"accept": true, "gone": ["gamma"]}`, 200, `"collisions":[{"space":"global","address":"10.77.0.9"`)
	if !asked.Accept || asked.DryRun || len(asked.Gone) != 1 {
		t.Errorf("it was asked for %+v", asked)
	}
	post(`{"gone": ["a", "b"]}`, 503, api.CodeAway)
	post(`{"force": true}`, 400, api.CodeInvalid)
	start(t, nil).plays(t, `POST /v1/store/mend {} -> 409 knows no other hosts`)
}

// A store that went back, and one that is being mended, make the daemon not ready, and it says which it is.
func TestBackIsNotReady(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for has, c := range map[string]api.ClusterStatus{
		"not ready: the shared store is not trusted since 2026-01-02T03:04:05Z, because it was put back": {
			Away: "secret", Since: since, Back: &api.Back{Own: 3, All: 5}},
		"not ready: the shared store is being mended since 2026-01-02T03:04:05Z, and waits for other hosts; `": {Away: "secret", Since: since, Mending: &api.Mending{By: "a", Missing: []string{"b"}}},
	} {
		h := start(t, func(s *Server) { s.cfg.Cluster = func() api.ClusterStatus { return c } })
		w := httptest.NewRecorder()
		h.server.handlers.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != 503 || !strings.HasPrefix(w.Body.String(), has) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}
