//go:build engine

package engine

import (
	"fmt"
	"testing"
	"time"

	"berth/test/ground"
)

// The engine is killed, or stopped in order, and started again: what it releases and asks for afresh leaves every
// container with one address, none with another's, and nothing on record that nobody has (invariants 1 and 3).
func TestEngineRestart(t *testing.T) {
	t.Parallel()
	e, err := startPrivateEngine(prefix+"restart", "10.213.251.1/24")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the engine's log:\n%s", tail(e.dockerd.Log(), 60))
		}
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	// The daemon is there before the engine asks, as the systemd units have it.
	d := daemon(t, "survivor", e.Sockets, "--docker-host", e.URL())
	if err := importImage(e.Engine); err != nil {
		t.Fatal(err)
	}
	h := &House{T: t, Engine: e.Engine, Berth: byMAC{d}, number: 94}
	n := h.network("--subnet", h.v4("0/24"))
	var containers []string
	for range 3 {
		containers = append(containers, h.container(n, "--restart", "always"))
	}
	const mac = "02:62:74:00:00:03"
	kept := h.name()
	if err := h.Engine.CreateWithMAC(kept, n, mac); err != nil {
		t.Fatal(err)
	}
	h.docker("update", "--restart", "always", kept)
	h.docker("start", kept)
	containers = append(containers, kept)
	before := h.address(kept, n)

	for _, stop := range []func() error{e.Kill, e.StopEngine, e.Kill} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		h.allRun(containers)
		seen := map[string]string{}
		for _, c := range containers {
			a := h.address(c, n)
			if other, ok := seen[a]; ok {
				t.Fatalf("%s and %s both have %s", other, c, a)
			}
			seen[a] = c
		}
		if seen[before] != kept {
			t.Errorf("the container with MAC %s had %s; now %v", mac, before, seen)
		}
		if got := h.leases(h.v4("0/24")); len(got) != len(containers)+1 {
			t.Errorf("%d containers and a gateway; Berth has %+v", len(containers), got)
		}
	}
	h.docker(append([]string{"rm", "-f"}, containers...)...)
	h.removes(n)
	if left := h.leases(h.v4("0/24")); len(left) != 0 {
		t.Errorf("after the network is gone, Berth has %+v", left)
	}
}

// allRun waits until containers run, which a restart policy sees to.
func (h *House) allRun(containers []string) {
	h.Helper()
	if err := ground.Eventually(time.Minute, func() error {
		for _, c := range containers {
			if got, err := h.Engine.inspect(c); err != nil || got.State.Status != "running" {
				return fmt.Errorf("%s is %s (%v)", c, got.State.Status, err)
			}
		}
		return nil
	}); err != nil {
		h.Fatal(err)
	}
}
