//go:build engine

package engine

import (
	"testing"
	"time"

	"berth/test/lab"
)

// Neighbours reach a container at once after it has started again, also where it has another MAC: on engines from 28
// on, which draw one at each start, and with the driver that asks for MACs on older ones. Without Berth's announcement the
// host and other containers use the old MAC for up to 45 s.
func TestNeighboursLearn(t *testing.T) {
	t.Parallel()
	for i, way := range []struct {
		name  string
		start func(t *testing.T, number int) *Harness
	}{
		{"read by the daemon", func(t *testing.T, number int) *Harness {
			return enter(t, machineEngine, witness(t, machineEngine, pluginDir, number), number)
		}},
		{"with MACs", func(t *testing.T, number int) *Harness {
			h, _ := witnessed(t, number)
			return h
		}},
		{"read by berth witness", func(t *testing.T, number int) *Harness {
			d := daemon(t, "neighbours", pluginDir)
			witnessBeside(t, d, "--docker-host", machineEngine.URL())
			return enter(t, machineEngine, byMAC{d}, number)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			h := way.start(t, 193+i)
			n := h.network("--subnet", h.v4("0/24"))
			peer, c := h.container(n, "--ip", h.v4("20")), h.container(n, "--ip", h.v4("21"))
			h.seen(h.v4("21"), c) // a container that the first view shows has not just started
			h.reached(peer, h.v4("21"))
			var longest time.Duration
			for range 4 {
				h.docker("restart", "--time", "1", c)
				longest = max(longest, h.reached(peer, h.v4("21")))
			}
			h.docker("rm", "-f", c)
			h.docker(containerCommand(c, n, "--ip", h.v4("21"))...)
			longest = max(longest, h.reached(peer, h.v4("21")))
			t.Logf("reached after at most %s", longest.Round(time.Millisecond))
		})
	}
}

// soon is how soon a busy machine reaches a container that has started. The kernel does not suspect what it knows for
// 23 s: it trusts it for 15 s, then waits 5 s and asks for 3 s.
const soon = 15 * time.Second

// reached waits until the host and a container reach an address, and returns how long that took. Both then know its
// MAC.
func (h *Harness) reached(peer, addr string) time.Duration {
	h.Helper()
	busybox, err := lab.Tool("busybox")
	lab.Must(h, err)
	begun := time.Now()
	for _, from := range []struct {
		name string
		ping func() error
	}{
		{"the host", func() error {
			_, err := lab.Run(time.Minute, nil, busybox, "ping", "-c", "1", "-W", "1", addr)
			return err
		}},
		{peer, func() error {
			_, err := h.Engine.Docker("exec", peer, "ping", "-c", "1", "-W", "1", addr)
			return err
		}},
	} {
		for err := from.ping(); err != nil; err = from.ping() {
			if time.Since(begun) > soon {
				h.Fatalf("%s does not reach %s within %s: %v", from.name, addr, soon, err)
			}
		}
	}
	return time.Since(begun)
}
