//go:build engine

package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// pings is how many pings a neighbour sends while a container goes and comes back, twenty in a second.
const pings = 120

// A machine that has other work makes more of them lost. So what is asked of the figures is asked of the least of
// several rounds, with an allowance; a MAC that changes costs a hundred in each.
const (
	rounds    = 5
	allowance = 2
)

// What a neighbour loses of pings while a container with an address of its own (--ip) is restarted, or made anew: at
// most half as much again as with the engine's own IPAM, because the engine works the MAC out of the address, so that
// it stays. Where the engine is asked for MACs it draws another one, which neighbours take up late: that is measured,
// and nothing asked of it. It runs alone, and not under -short: TestMACStays shows why the figures are as they are.
func TestPings(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	d := daemon(t, "pinged", pluginDir)
	for i, way := range []struct {
		name string
		gone func(h *House, network, container, address string) // and there again
	}{
		{"restart", func(h *House, _, container, _ string) { h.docker("restart", "--time", "1", container) }},
		{"rm and run", func(h *House, network, container, address string) {
			h.docker("rm", "-f", container)
			h.docker(containerCommand(container, network, "--ip", address)...)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel() // with the other way, and nothing else
			h := enter(t, machineEngine, d, 76+i)
			lost := func(third int, driver string) int {
				subnet := h.v4(fmt.Sprintf("%d/26", 64*third))
				network := h.name()
				bridge := bridgeOf(network)
				h.docker("network", "create", "--ipam-driver", driver, "--subnet", subnet, "--opt",
					"com.docker.network.bridge.name="+bridge, network)
				n := h.lostPings(network, h.v4(strconv.Itoa(64*third+20)), way.gone)
				if err := removeContainers(h.Engine, h.prefix()); err != nil {
					h.Fatal(err)
				}
				h.removes(network)
				return n
			}
			t.Logf("%s: of %d pings %d are lost where Berth asks for MACs", way.name, pings, lost(2, byMAC{d}.Driver()))
			builtIn, plain := pings, pings
			for round := 1; ; round++ {
				a, b := lost(0, "default"), lost(1, d.Driver())
				t.Logf("%s: of %d pings %d are lost with the engine's own IPAM, %d with Berth", way.name, pings, a, b)
				builtIn, plain = min(builtIn, a), min(plain, b)
				if float64(plain) <= 1.5*float64(builtIn)+allowance {
					break
				}
				if round == rounds {
					t.Errorf("%d of %d pings are lost, and %d with the engine's own IPAM", plain, pings, builtIn)
					break
				}
			}
		})
	}
}

// A container with an address of its own (--ip) has the same MAC after a restart, and when it is made anew, so that its
// neighbours find it at once.
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

// received is what ping says in its end.
var received = regexp.MustCompile(`(\d+) packets transmitted, (\d+) packets received`)

// lostPings counts the pings of a neighbour that are lost while a container with an address goes and comes back.
func (h *House) lostPings(network, address string, gone func(h *House, network, container, address string)) int {
	h.Helper()
	neighbour, c := h.container(network), h.container(network, "--ip", address)
	h.calls(neighbour, address)
	answer := make(chan string, 1)
	go func() {
		// its status tells of losses
		out, _ := h.Engine.Docker("exec", neighbour, "ping", "-q", "-c", strconv.Itoa(pings), "-i", "0.05", "-W", "1",
			address)
		answer <- out
	}()
	time.Sleep(time.Second) // in which it is seen to answer: nothing tells of it before the end
	gone(h, network, c, address)
	if ep, err := h.Engine.Endpoint(c, network); err != nil || ep.IPAddress != address {
		h.Fatalf("%s has %+v (%v)", c, ep, err)
	}
	out := <-answer
	m := received.FindStringSubmatch(out)
	if m == nil || m[1] != strconv.Itoa(pings) {
		h.Fatalf("ping says %q", out)
	}
	came, _ := strconv.Atoi(m[2])
	return pings - came
}
