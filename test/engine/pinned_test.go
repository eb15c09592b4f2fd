//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

// createPinned creates a container, not started, with its own MAC and addresses.
func (h *Harness) createPinned(network, mac string, addresses ...string) string {
	h.Helper()
	name := h.name()
	lab.Must(h, h.Engine.create(name, network, mac, addresses...))
	return name
}

// twice checks that a second container with the same MAC and address is refused and leaves nothing.
func (h *Harness) twice(network, mac, address string) {
	h.Helper()
	second := h.createPinned(network, mac, address)
	h.refused([]string{address, "is held by", mac}, "start", second)
	h.docker("rm", second)
	h.recorded(address, mac)
}

// A service with a fixed address and MAC is scaled to two. Berth refuses the second replica as Docker's own IPAM does,
// and the first one keeps its address (invariant 3).
func TestPinnedTwice(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 61)
	const mac = "02:62:74:00:61:04"
	scale := func(ipam, subnet, address string) (errs string) {
		h.Helper()
		network, project := h.name(), h.name()
		h.docker("network", "create", "--ipam-driver", ipam, "--subnet", subnet, network)
		file := h.composeFile(fmt.Sprintf(`
version: "2.4"
services:
  web:
    image: %s
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
    mac_address: "%s"
    networks: {default: {ipv4_address: %s}}
networks:
  default: {external: true, name: %s}
`, imageName, mac, address, network))
		_, err := lab.Run(2*time.Minute, nil, "env", slices.Concat([]string{"DOCKER_HOST=unix://" + h.Engine.Socket},
			oldest(t), []string{"--file", file, "--project-name", project, "up", "--detach", "--scale", "web=2"})...)
		if err == nil {
			t.Fatalf("with %s two containers were started with %s", ipam, address)
		}
		running := strings.Fields(h.docker("ps", "--format", "{{.Names}}", "--filter",
			"label=com.docker.compose.project="+project))
		if len(running) != 1 {
			t.Fatalf("with %s these run: %v", ipam, running)
		}
		if ep, err := h.Engine.Endpoint(running[0], network); err != nil || ep.IPAddress != address ||
			ep.MacAddress != mac {
			t.Errorf("with %s it has %+v (%v)", ipam, ep, err)
		}
		if ipam != "default" {
			h.address(running[0], network)
			h.seen(address, running[0])
			h.twice(network, mac, address)
		}
		h.compose(file, project, "down", "--timeout", "1")
		return err.Error()
	}
	theirs := scale("default", h.v4("128/25"), h.v4("132"))
	if !strings.Contains(theirs, "Address already in use") {
		t.Errorf("Docker's own IPAM says: %s", theirs)
	}
	if ours := scale(h.Berth.Driver(), h.v4("0/25"), h.v4("104")); !strings.Contains(ours, "is held by") {
		t.Errorf("Berth says: %s", ours)
	}
	h.finds()
}

// After the IPv6 address of a start was refused, the next start gets the IPv4 one at once (engine.md, leak 1).
func TestPinnedAfterRefusedIPv6(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 62)
	n := h.network("--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"))
	const mac = "02:62:74:00:62:09"
	blocks := h.container(n, "--ip6", h.v6("::9"))
	pinned := h.createPinned(n, mac, h.v4("9"), h.v6("::9"))
	for range 2 {
		h.refused([]string{h.v6("::9"), "is held by"}, "start", pinned)
	}
	if l := h.lease(h.v4("9")); l.Kind != "static" {
		t.Fatalf("the IPv4 address did not leak: %+v", l)
	}
	h.docker("rm", "-f", blocks)
	h.docker("start", pinned)
	h.hasAddress(pinned, n, h.v4("9"))
	h.twice(n, mac, h.v4("9"))
	h.finds()
}

// The engine is killed after Berth has answered, before the answer arrives. When the engine is back, containers with a
// fixed address and MAC get theirs at once, whether the engine or a person starts them.
func TestPinnedAfterKill(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 63)
	h, r := relayed(t, e.Engine, e.Sockets, 63)
	n := h.network("--subnet", h.v4("0/24"))
	for number, policy := range []string{"no", "always"} {
		address, mac := h.v4(fmt.Sprint(9+number)), fmt.Sprintf("02:62:74:00:63:0%d", number)
		pinned := h.createPinned(n, mac, address)
		h.docker("update", "--restart", policy, pinned)
		asked, dead := make(chan struct{}), make(chan struct{})
		var once sync.Once
		r.Stop(func(answered bool) {
			if answered {
				once.Do(func() { close(asked) })
				<-dead
			}
		})
		ended := make(chan error, 1)
		go func() {
			_, err := h.Engine.Docker("start", pinned)
			ended <- err
		}()
		select {
		case <-asked:
		case err := <-ended:
			t.Fatalf("the engine has asked for no address: %v", err)
		}
		err := e.Kill()
		r.Stop(nil)
		close(dead)
		if err != nil || <-ended == nil {
			t.Fatal("the engine was not killed in the midst of it:", err)
		}
		if l := h.lease(address); l.MAC != mac {
			t.Fatalf("%s did not leak: %+v", address, l)
		}
		lab.Must(t, e.Start())
		// Engine 28.5 ends the next start, too: it hears only then that the killed one has ended.
		lab.Await(t, 30*time.Second, func() error {
			if state := h.docker("inspect", "-f", "{{.State.Status}}", pinned); state != "running" {
				t.Logf("with the policy %s it is %s", policy, state)
				h.docker("start", pinned)
			}
			ep, err := h.Engine.Endpoint(pinned, n)
			if err == nil && ep.IPAddress != address {
				err = fmt.Errorf("%s has %q and not %s", pinned, ep.IPAddress, address)
			}
			return err
		})
		h.hasAddress(pinned, n, address)
		h.seen(address, pinned)
		h.twice(n, mac, address)
	}
	h.finds()
}

// A release was lost. If Berth was down, the next start gets the address at once. Otherwise it gets it after the
// witness has looked twice.
func TestPinnedAfterDroppedRelease(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 64)
	h, r := relayed(t, e.Engine, e.Sockets, 64)
	n := h.network("--subnet", h.v4("0/24"))
	const mac = "02:62:74:00:64:09"
	address := h.v4("9")
	pinned := h.createPinned(n, mac, address)
	h.docker("start", pinned)
	h.seen(address, pinned)

	r.Drop(true)
	h.docker("stop", "--time", "1", pinned)
	r.Drop(false)
	if l := h.lease(address); l.MAC != mac {
		t.Fatalf("the release was heard: %+v", l)
	}
	stopped, tries := time.Now(), 0
	lab.Await(t, 20*time.Second, func() error {
		tries++
		_, err := h.Engine.Docker("start", pinned)
		return err
	})
	t.Logf("after a release that went astray it was started %.1f s after its end, at attempt %d",
		time.Since(stopped).Seconds(), tries)
	h.address(pinned, n)
	h.seen(address, pinned)
	h.twice(n, mac, address)

	d := h.Berth.(*Daemon)
	lab.Must(t, d.Stop())
	h.docker("stop", "--time", "1", pinned)
	lab.Must(t, d.Revive())
	if l := h.lease(address); l.MAC != mac {
		t.Fatalf("the release was heard: %+v", l)
	}
	h.docker("start", pinned)
	h.hasAddress(pinned, n, address)
	h.seen(address, pinned)
	h.twice(n, mac, address)
	h.finds()
}
