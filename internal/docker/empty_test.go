package docker

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// TestEmptyStateIsTold: a daemon that lost its state logs this once, at its first look. Each check reports it
// until it is over.
func TestEmptyStateIsTold(t *testing.T) {
	tn := newScenario(t)
	tn.plays("run web front\nwait 1s")
	tn.settle(0)
	lost := newHarness(t, t.TempDir())
	t.Cleanup(func() { must(t, lost.close()) })
	var said bytes.Buffer
	log := logrus.New()
	log.SetOutput(&said)
	tn.w = tn.witness(tn.w.cfg.Engine, func(cfg *Config) { cfg.Service, cfg.Log = lost.service, logrus.NewEntry(log) })

	must(t, tn.w.look(t.Context()))
	if text := said.String(); !strings.Contains(text, "level=error") ||
		!strings.Contains(text, "its IPAM driver: front.") || !strings.Contains(text, "berth state restore") {
		t.Errorf("at the first look the log says %q", text)
	}
	for range 2 {
		r := tn.check(ipam.CheckRequest{})
		if r.Counts[ipam.EmptyState] != 1 || r.Findings[0].Kind != ipam.EmptyState {
			t.Errorf("a check finds %q", told(&r))
		}
	}
	if n := strings.Count(said.String(), "level=error"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, said.String())
	}
	if n := tn.w.State().Counts[ipam.EmptyState]; n != 1 {
		t.Errorf("the status counts %d", n)
	}

	lost.network("another", "10.9.0.0/24")
	tn.clock.wait(time.Second)
	if r := tn.check(ipam.CheckRequest{}); slices.ContainsFunc(r.Findings,
		func(f ipam.Finding) bool { return f.Kind == ipam.EmptyState }) {
		t.Errorf("a state that knows a Docker network: %q", told(&r))
	}
}
