//go:build engine

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/ground"
)

// createPinned creates, and does not start, a container with a MAC and addresses of its own.
func (h *House) createPinned(network, mac string, addresses ...string) string {
	h.Helper()
	name := h.name()
	own := map[string]any{}
	for _, a := range addresses {
		family := "IPv4Address"
		if strings.Contains(a, ":") {
			family = "IPv6Address"
		}
		own[family] = a
	}
	if err := h.Engine.post("/containers/create?name="+name, map[string]any{
		"Image":      imageName,
		"Cmd":        sleepForever,
		"MacAddress": mac,
		"HostConfig": map[string]any{"NetworkMode": network},
		"NetworkingConfig": map[string]any{
			"EndpointsConfig": map[string]any{network: map[string]any{"IPAMConfig": own, "MacAddress": mac}},
		},
	}); err != nil {
		h.Fatal(err)
	}
	return name
}

// twice checks that a second container with the MAC and the address of one is refused, and leaves nothing.
func (h *House) twice(network, mac, address string) {
	h.Helper()
	second := h.createPinned(network, mac, address)
	h.refused([]string{address, "is held by", mac}, "start", second)
	h.docker("rm", second)
	h.recorded(address, mac)
}

// A service with an address and a MAC of its own is scaled to two: the second replica is refused as Docker's own IPAM
// refuses it, and the first one keeps what it has (invariant 3).
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
		ctx, cancel := context.WithTimeout(t.Context(), ground.Patient(2*time.Minute))
		defer cancel()
		_, err := run(ctx, nil, "env", "DOCKER_HOST=unix://"+h.Engine.Socket, "docker-compose", "--file", file,
			"--project-name", project,
			"up", "--detach", "--scale", "web=2")
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

// A start that was refused its IPv6 address keeps the IPv4 one for nobody: the next start has it at once (engine.md,
// leak 1).
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
	if got := h.address(pinned, n); got != h.v4("9") {
		t.Errorf("it has %s", got)
	}
	h.twice(n, mac, h.v4("9"))
	h.finds()
}

// The engine is killed when Berth's answer was written, and before the engine knows it. Containers with an address and
// a MAC of their own have theirs at once when it is back: one that the engine itself starts, and one that a person
// does.
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
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		if state := h.docker("inspect", "-f", "{{.State.Status}}", pinned); policy == "no" || state != "running" {
			t.Logf("with the policy %s it is %s", policy, state)
			h.docker("start", pinned)
		}
		if got := h.address(pinned, n); got != address {
			t.Errorf("with the policy %s it has %s", policy, got)
		}
		h.seen(address, pinned)
		h.twice(n, mac, address)
	}
	h.finds()
}

// A release that Berth does not hear leaves the address with nobody: because Berth was down, and the next start has it
// at once; or because it went astray, and the next start has it when the witness has looked twice.
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
	if err := ground.Eventually(20*time.Second, func() error {
		tries++
		_, err := h.Engine.Docker("start", pinned)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("after a release that went astray it was started %.1f s after its end, at attempt %d",
		time.Since(stopped).Seconds(), tries)
	h.address(pinned, n)
	h.seen(address, pinned)
	h.twice(n, mac, address)

	d := h.Berth.(*Daemon)
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	h.docker("stop", "--time", "1", pinned)
	if err := d.Revive(); err != nil {
		t.Fatal(err)
	}
	if l := h.lease(address); l.MAC != mac {
		t.Fatalf("the release was heard: %+v", l)
	}
	h.docker("start", pinned)
	if got := h.address(pinned, n); got != address {
		t.Errorf("it has %s", got)
	}
	h.seen(address, pinned)
	h.twice(n, mac, address)
	h.finds()
}

// The address of a container that exists is lent last: to none of thirty that come and go in a /28, or of eight in a /29
// under -short.
func TestPassingTrade(t *testing.T) {
	t.Parallel()
	for _, on := range []struct {
		what   string
		number int
		mac    bool
	}{{"by MAC", 68, true}, {"by nothing", 69, false}} {
		t.Run(on.what, func(t *testing.T) {
			t.Parallel()
			h, d := witnessed(t, on.number)
			if !on.mac {
				h.Berth = d
			}
			h.passingTrade()
		})
	}
}

func (h *House) passingTrade() {
	h.Helper()
	n := h.network("--subnet", h.v4(fmt.Sprintf("0/%d", sample(0, 29, 28))))
	c := h.container(n)
	a := h.address(c, n)
	h.seen(a, c)
	h.docker("stop", "--time", "1", c)
	var used []string
	for range sample(0, 8, 30) {
		passing := h.container(n)
		used = append(used, h.address(passing, n))
		h.docker("rm", "-f", passing)
	}
	if slices.Contains(used, a) {
		h.Errorf("%s of %s, which is stopped, was lent: %v", a, c, used)
	}
	h.docker("start", c)
	if got := h.address(c, n); got != a {
		h.Errorf("%s had %s and has %s", c, a, got)
	}
	h.finds()
}

// A container that was renamed is named by what it is called now, in refusals and in `berth reservation ls`.
func TestRenamedHolder(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 70)
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1")+",pool")
	n := h.on(front, "--subnet", h.v4("0/24"))
	web, old := h.name(), h.name()
	h.berth("reservation", "add", front, "--owner", web, "--ip", h.v4("9"))
	h.docker(containerCommand(web, n, "--ip", h.v4("9"))...)
	h.seen(h.v4("9"), web)
	h.docker("rename", web, old)
	h.seen(h.v4("9"), old)
	h.refused([]string{h.v4("9"), "is held by " + old}, containerCommand(web, n, "--ip", h.v4("9"))...)
	if out := h.berth("reservation", "ls", front); !strings.Contains(out, old) {
		t.Errorf("berth reservation ls:\n%s", out)
	}
	h.docker("rm", "-f", web)
}
