package admin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestFindingTimes: a finding keeps the time when it was first found, however many checks follow.
func TestFindingTimes(t *testing.T) {
	begun := time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)
	now := begun
	h := start(t, func(s *Server) {
		s.now = func() time.Time { return now }
		s.edges.since = begun
		s.cfg.Device = func(string) bool { return false }
	})
	h.planned(t)
	h.plays(t, `
		edit {"op": "network.create", "name": "net3", "space": "lab",
			"subnets": [{"cidr": "192.0.2.0/24", "pool": true}]}, {"op": "network.modify",
			"network": "net3", "elastic": "on"}, {"op": "reservation.add", "network": "net3",
			"owner": "web", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
			{"op": "elastic.range.add", "range": "203.0.113.10", "announce": "eth7"},
			{"op": "elastic.allocate"}, {"op": "elastic.associate", "address": "203.0.113.10",
			"instance": "web"} -> 200
	`)
	look := func(want map[ipam.FindingKind]time.Time) {
		t.Helper()
		report, err := h.server.lastFindings(t.Context())
		must(t, err)
		got := map[ipam.FindingKind]time.Time{}
		for _, f := range report.Findings {
			got[f.Kind] = f.Seen
		}
		for kind, at := range want {
			if !got[kind].Equal(at) {
				t.Errorf("at %s %s was seen first at %s, not %s", now, kind, got[kind], at)
			}
		}
	}
	now = begun.Add(time.Hour)
	look(map[ipam.FindingKind]time.Time{ipam.EdgeAway: begun, ipam.MissingDevice: now})
	now = begun.Add(2 * time.Hour)
	look(map[ipam.FindingKind]time.Time{ipam.EdgeAway: begun, ipam.MissingDevice: begun.Add(time.Hour)})
	h.server.edges.add(1, now)
	now = begun.Add(3 * time.Hour)
	h.server.edges.add(-1, now)
	now = begun.Add(4 * time.Hour)
	look(map[ipam.FindingKind]time.Time{ipam.EdgeAway: begun.Add(3 * time.Hour),
		ipam.MissingDevice: begun.Add(time.Hour)})
}

// TestSameCounts: the daemon's status counts the same findings as the page and the last report.
func TestSameCounts(t *testing.T) {
	engine := watcher{report: ipam.CheckReport{Host: "alpha", Engine: ipam.EngineReachable}}
	h := start(t, func(s *Server) {
		engine.join(s)
		s.cfg.Witness = func() ipam.WitnessState { return ipam.WitnessState{Engine: ipam.EngineReachable} }
		s.cfg.Report = func() ipam.CheckReport {
			return ipam.CheckReport{Host: "alpha", Engine: ipam.EngineReachable,
				Findings: []ipam.Finding{{Kind: ipam.UnusedLease, Detail: "x"}},
				Counts:   map[ipam.FindingKind]int{ipam.UnusedLease: 1}}
		}
		s.cfg.Found = func(context.Context) []ipam.Finding {
			return []ipam.Finding{{Kind: ipam.ShadowedSubnet, Detail: "z"}}
		}
	})
	var status struct{ Witness ipam.WitnessState }
	var page struct{ Check struct{ Findings int } }
	must(t, json.Unmarshal([]byte(h.plays(t, `GET /v1/status -> 200`).body), &status))
	must(t, json.Unmarshal([]byte(h.plays(t, `GET /findings?format=json -> 200`).body), &page))
	sum := 0
	for _, n := range status.Witness.Counts {
		sum += n
	}
	if sum != 2 || page.Check.Findings != sum {
		t.Errorf("the state counts %d findings, the page %d, not 2", sum, page.Check.Findings)
	}
}
