package docker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestCompareMatches: the engine's view gives the holder of a lease.
func TestCompareMatches(t *testing.T) {
	// the lease of db has another MAC, and new has no lease
	c := newScene().steps(t, "run db 1 10.8.0.3 3\nlease 10.8.0.3 9 1\nrun new 1 10.8.0.4 4").compare()
	if len(c.matches) != 1 || c.matches[0].lease.Address != addr("10.8.0.2") ||
		c.matches[0].sight.container.Name != "web" {
		t.Errorf("matches: %v", c.matches)
	}
}

// TestBoth: only findings that both comparisons have count. A restarted endpoint is a different endpoint.
func TestBoth(t *testing.T) {
	const one = "lease 10.8.0.6 6 1\nrun db 1 10.8.0.3 3\n"
	first := newScene().steps(t, one+"run gone 1 10.8.0.4 4\nrun again 1 10.8.0.5 5")
	second := newScene().steps(t, one+"run again 1 10.8.0.5 50\nrun started 1 10.8.0.6 6")
	got := brief(both(first.compare().found, second.compare().found))
	if want := []string{"uncovered_address 10.8.0.3 pool1 sure"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestReport: findings are sorted by kind, space and address, and all kinds are counted.
func TestReport(t *testing.T) {
	s := newScene().steps(t, `
		lease 10.8.0.30 9 1
		lease 10.8.0.4 9 1
		lease 10.8.0.200 9 1
		run db 1 10.8.0.3 3
		memory 10.8.0.7 7 31`)
	r := report("h1", ipam.EngineReachable, took, s.compare().found)
	var got []string
	for _, f := range r.Findings {
		got = append(got, string(f.Kind)+" "+f.Address.String())
	}
	want := []string{"unused_lease 10.8.0.4", "unused_lease 10.8.0.30", "unused_lease 10.8.0.200",
		"uncovered_address 10.8.0.3", "stale_memory 10.8.0.7"}
	if !slices.Equal(got, want) {
		t.Errorf("the report has %q, want %q", got, want)
	}
	if len(r.Counts) != len(ipam.FindingKinds) || r.Counts[ipam.UnusedLease] != 3 || r.Counts[ipam.StaleMemory] != 1 {
		t.Errorf("it counts %v", r.Counts)
	}
	if n, known := r.Counts[ipam.WrongGateway]; n != 0 || !known {
		t.Errorf("it counts %v", r.Counts)
	}
}

// large is a scene of n leases, a tenth unused, and n containers, a tenth without a lease.
func large(n int) *scene {
	s := newScene()
	s.attachments[0].CIDR, s.view.Networks[0].Subnets[0].CIDR = prefix("10.8.0.0/16"), prefix("10.8.0.0/16")
	a := addr("10.8.1.0")
	for i := range n {
		l := s.lease(a.String(), i+100, 1)
		l.Subnet = prefix("10.8.0.0/16")
		if i%10 != 0 {
			s.run(fmt.Sprintf("c%d", i), 1, a.String(), i+100)
		} else {
			s.run(fmt.Sprintf("c%d", i), 1, a.Next().String(), i+100_000)
		}
		a = a.Next().Next()
	}
	return s
}

// TestCompareMany: ten thousand leases take 0.03 s, because each is read once. A quadratic comparison would take
// minutes.
func TestCompareMany(t *testing.T) {
	s := large(10_000)
	begin := time.Now()
	c := s.compare()
	if spent := time.Since(begin); spent > 5*time.Second {
		t.Errorf("it took %s", spent)
	}
	r := report("h1", ipam.EngineReachable, took, c.found)
	if r.Counts[ipam.UnusedLease] != 1000 || r.Counts[ipam.UncoveredAddress] != 1000 || len(r.Findings) != 2000 {
		t.Errorf("found %v", r.Counts)
	}
}

// BenchmarkCheck compares 10,000 leases, all in use, with the view of an engine.
func BenchmarkCheck(b *testing.B) {
	h := newHarness(b, b.TempDir())
	h.network("front", "10.2.0.0/16")
	for i := range 10_000 {
		h.run(fmt.Sprint("c", i), "front")
	}
	view, w := h.taken(), h.witness(nil, nil)
	for b.Loop() {
		r, err := w.Check(b.Context(), ipam.CheckRequest{View: &view})
		h.must(err)
		if len(r.Findings) > 0 {
			b.Fatal(r.Findings[0])
		}
	}
}
