package admin

import (
	"context"
	"testing"

	"berth/internal/ipam"
)

// kindsOf asks for a report and counts its findings.
func (h *harness) kindsOf(t *testing.T, path string) map[ipam.FindingKind]int {
	t.Helper()
	report := into[ipam.CheckReport](t, h.plays(t, "GET "+path+" -> 200"))
	if report.Findings == nil {
		t.Fatalf("%s: the findings are no array", path)
	}
	kinds := map[ipam.FindingKind]int{}
	for _, f := range report.Findings {
		kinds[f.Kind]++
	}
	for kind, n := range report.Counts {
		if kinds[kind] != n {
			t.Errorf("%s: %d findings of %s are counted as %d", path, kinds[kind], kind, n)
		}
	}
	return kinds
}

// TestElasticCheck: the elastic report has all findings about elastic addresses, from the records, the edge, the
// devices and the engine. The full report has these too. Only the full report has the other findings of a
// comparison and of the host.
func TestElasticCheck(t *testing.T) {
	engine := watcher{report: ipam.CheckReport{Host: "alpha", Engine: ipam.EngineReachable}}
	h := start(t, func(s *Server) {
		engine.join(s)
		s.cfg.Device = func(name string) bool { return name == "eth0" }
		s.cfg.Found = func(context.Context) []ipam.Finding {
			return []ipam.Finding{{Kind: ipam.ShadowedSubnet, Detail: "z"}}
		}
	})
	h.planned(t)
	if got := h.kindsOf(t, "/v1/elastic/check"); len(got) != 0 {
		t.Errorf("without any address: %v", got)
	}
	engine.report = ipam.CheckReport{Host: "alpha", Engine: ipam.EngineReachable, Findings: []ipam.Finding{
		{Kind: ipam.UnusedLease, Detail: "x"}, {Kind: ipam.FirewallInWay, Detail: "y"}},
		Counts: map[ipam.FindingKind]int{ipam.UnusedLease: 1, ipam.FirewallInWay: 1}}
	h.plays(t, `
		edit {"op": "network.create", "name": "net3", "space": "lab",
			"subnets": [{"cidr": "192.0.2.0/24", "pool": true}]}, {"op": "network.modify",
			"network": "net3", "elastic": "on"}, {"op": "reservation.add", "network": "net3",
			"owner": "web", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
			{"op": "elastic.range.add", "range": "203.0.113.10", "announce": "eth0"},
			{"op": "elastic.range.add", "range": "203.0.113.20", "announce": "eth7"},
			{"op": "elastic.allocate"}, {"op": "elastic.associate", "address": "203.0.113.10",
			"instance": "web"} -> 200
	`)
	got := h.kindsOf(t, "/v1/elastic/check")
	if got[ipam.EdgeAway] != 1 || got[ipam.MissingDevice] != 1 || got[ipam.FirewallInWay] != 1 || len(got) != 3 {
		t.Errorf("without an edge: %v", got)
	}
	h.plays(t, `GET /v1/elastic/check
		-> 200 1 elastic address is needed there, and it is not mapped; mappings stay`)
	all := h.kindsOf(t, "/v1/check")
	if all[ipam.EdgeAway] != 1 || all[ipam.MissingDevice] != 1 || all[ipam.FirewallInWay] != 1 ||
		all[ipam.UnusedLease] != 1 || all[ipam.ShadowedSubnet] != 1 {
		t.Errorf("the report of everything: %v", all)
	}
	if overTwo {
		return // no edge gets any news there
	}
	line(t, h.stream(t, "GET /v1/edge"))
	if got := h.kindsOf(t, "/v1/elastic/check"); got[ipam.EdgeAway] != 0 {
		t.Errorf("with an edge: %v", got)
	}
}
