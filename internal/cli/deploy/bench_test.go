package deploy_test

import (
	"strings"
	"testing"

	"berth/test/still"
)

// BenchmarkPlan plans a hundred services with three replicas each, including the answers of a fake engine.
func BenchmarkPlan(b *testing.B) {
	h := enter(b)
	h.plan("front", "10.8.0.0/16", "10.8.0.10+30000")
	p := still.Project{Services: 100, Replicas: 3}
	h.file(p.File())
	h.must(h.compose.Hashes(p.Hashes()))
	p.Run(h.engine, "shop")
	for b.Loop() {
		if code, out, said := h.berth("plan"); code != 2 || !strings.Contains(out, "300 to recreate") {
			b.Fatalf("the exit code is %d: %s%s", code, out, said)
		}
	}
}

// TestPlanOfMany: a plan with more replicas than one request to the daemon can hold gives each its own address.
func TestPlanOfMany(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/16", "10.8.0.10+30000")
	p := still.Project{Services: 100, Replicas: 10}
	h.file(p.File())
	h.must(h.compose.Hashes(p.Hashes()))
	code, out, said := h.berth("plan")
	if code != 2 || !strings.Contains(out, "1000 to create") {
		t.Fatalf("the exit code is %d: %s%s", code, out, said)
	}
	given := map[string]bool{}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); words[0] == "create" {
			if given[words[2]] {
				t.Errorf("%s is given twice", words[2])
			}
			given[words[2]] = true
		}
	}
	if len(given) != 1000 {
		t.Errorf("%d addresses are given", len(given))
	}
	p.Replicas = 11
	h.file(p.File())
	if code, _, said := h.berth("plan"); code != 1 || !strings.Contains(said, "needs 1100 reservations") {
		t.Errorf("of more than can be told it ends with %d: %s", code, said)
	}
}
