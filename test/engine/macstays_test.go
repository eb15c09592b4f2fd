//go:build engine

package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// A container with a fixed address (--ip) keeps its MAC over a restart and a recreation, so that neighbours find it at
// once. Engines from 28 on draw a new MAC at each start, with any IPAM driver.
func TestMACStays(t *testing.T) {
	only(t, addressMACs)
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

// A configured MAC survives pin, unpin and leave where the engine can connect a container with one. From 25.0 to 29.2
// it cannot: there these commands name the container and change nothing, until --lose-mac accepts the loss.
func TestConfiguredMAC(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 232)
	notes := t.TempDir()
	const mac = "02:62:74:00:02:32"
	n := h.network("--subnet", h.v4("0/24"))
	own, plain := h.createPinned(n, mac), h.container(n)
	h.docker("start", own)
	keeps := keepsMACs()
	var back time.Duration // an engine without names may give another address first, from which Berth moves it back
	if noNames.there() {
		back = 20 * time.Second
	}
	var had string
	check := func(after string) {
		t.Helper()
		if ep, err := h.Engine.Endpoint(plain, n); err != nil || ep.IPAddress == "" {
			t.Errorf("after %s %s has %+v (%v)", after, plain, ep, err)
		}
		lab.Check(t, lab.Eventually(back, func() error {
			ep, err := h.Engine.Endpoint(own, n)
			if err != nil || had != "" && ep.IPAddress != had || ep.MacAddress != mac {
				return fmt.Errorf("after %s %s has %+v and not %s with the MAC %s (%v)", after, own, ep, had, mac, err)
			}
			had = ep.IPAddress
			return nil
		}))
	}
	restart := func(after string) {
		t.Helper()
		check(after)
		h.docker("restart", "--time", "1", own, plain)
		check(after + " and a restart")
	}
	may := func(command string, args ...string) []string {
		t.Helper()
		args = append([]string{command, "--docker-host", h.Engine.URL()}, args...)
		if !keeps {
			h.berthRefuses([]string{own, mac, "--lose-mac"}, args...)
			check("a refused " + command)
		}
		return args
	}
	pin := may("pin", own, plain, "--yes")
	if !keeps {
		leave := may("leave", "--note-dir", notes, n, "--yes")
		h.berth(append(leave, "--lose-mac")...)
		if ep, err := h.Engine.Endpoint(own, n); err != nil || ep.IPAddress != had {
			t.Errorf("after leave %s has %+v and not %s (%v)", own, ep, had, err)
		}
		return
	}
	h.berth(pin...)
	restart("pin")
	h.berth(may("unpin", own, plain, "--yes", "--keep-reservation")...)
	restart("unpin")
	if said := h.leaves(notes, n, "--yes"); !strings.Contains(said, own) {
		t.Error(said)
	}
	restart("leave")
}

// TestMACPrefix: a network's prefix gives each owner a MAC, which `reservation ls` shows. `berth pin` gives it to a
// container without one, where the engine can (from 29.3 on), and the container keeps it at a restart.
func TestMACPrefix(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 156)
	planned := d.Name + "-mac"
	h.berth("network", "create", planned, "--mac-prefix", "aa:00:17", "--subnet", h.v4("0/24")+",gateway="+h.v4("1")+",pool")
	n := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
	c := h.container(n)
	pin := []string{"pin", c, "--yes", "--docker-host", h.Engine.URL()}
	h.berth(pin...)
	var reserved []struct{ Owner, MAC string }
	h.json(&reserved, "reservation", "ls", planned)
	if len(reserved) != 1 || !strings.HasPrefix(reserved[0].MAC, "aa:00:17:") {
		t.Fatalf("reserved is %+v", reserved)
	}
	for _, args := range [][]string{nil, {"restart", "--time", "1", c}} {
		if args != nil {
			h.docker(args...)
		}
		ep, err := h.Engine.Endpoint(c, n)
		if err != nil || (ep.MacAddress == reserved[0].MAC) != (engineAPI >= 54) {
			t.Errorf("%s has %+v, and its MAC is %s (%v)", c, ep, reserved[0].MAC, err)
		}
	}
}
