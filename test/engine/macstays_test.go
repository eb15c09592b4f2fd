//go:build engine

package engine

import "testing"

// A container with a fixed address (--ip) keeps its MAC over a restart and a recreation, so that neighbours find it at
// once.
func TestMACStays(t *testing.T) {
	t.Parallel()
	h := enter(t, machineEngine, daemon(t, "macstays", pluginDir), 78)
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n, "--ip", h.v4("20"))
	mac := func() string {
		t.Helper()
		ep, err := h.Engine.Endpoint(c, n)
		if err != nil || ep.IPAddress != h.v4("20") {
			t.Fatalf("%s has %+v (%v)", c, ep, err)
		}
		return ep.MacAddress
	}
	before := mac()
	h.docker("restart", "--time", "1", c)
	if now := mac(); now != before {
		t.Errorf("before the restart it had the MAC %s, now %s", before, now)
	}
	h.docker("rm", "-f", c)
	h.docker(containerCommand(c, n, "--ip", h.v4("20"))...)
	if now := mac(); now != before {
		t.Errorf("before it was recreated it had the MAC %s, now %s", before, now)
	}
}
