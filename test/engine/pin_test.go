//go:build engine

package engine

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// pinned runs berth pin or unpin against the house's engine, which must succeed.
func (h *House) pinned(args ...string) string {
	h.Helper()
	return h.berth(append([]string{args[0], "--docker-host", h.Engine.URL()}, args[1:]...)...)
}

// asks are the addresses that containers ask for on a network, as the engine has them, and their aliases.
func (h *House) asks(container, network string) (ipv4, ipv6 string, aliases []string) {
	h.Helper()
	var all map[string]struct {
		IPAMConfig struct{ IPv4Address, IPv6Address string }
		Aliases    []string
	}
	if err := json.Unmarshal([]byte(h.docker("inspect", "-f", "{{json .NetworkSettings.Networks}}", container)),
		&all); err != nil {
		h.Fatal(err)
	}
	on := all[network]
	return on.IPAMConfig.IPv4Address, on.IPAMConfig.IPv6Address, on.Aliases
}

// A running container keeps its address, its aliases and its published port when it is pinned, and keeps the address
// over each restart; one that does not run is written to. Unpinned, they ask for nothing.
func TestPin(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 95)
	n := h.network("--subnet", h.v4("0/24"))
	web := h.container(n, "--network-alias", "www", "--publish", "127.0.0.1:18095:80")
	own, other := h.container(n, "--ip", h.v4("99")), h.container(n)
	stopped := h.container(n)
	had := h.address(stopped, n)
	h.seen(had, stopped) // or its name would not be remembered
	h.docker("stop", "--time", "1", stopped)
	at := h.address(web, n)
	h.berthRefuses([]string{"4 endpoints are not pinned"}, "pin", "--check", "--network", n, "--docker-host",
		h.Engine.URL(), "-q")
	h.berthRefuses([]string{"nobody can answer", "--yes"}, "pin", "--docker-host", h.Engine.URL(), web)

	out := h.pinned("pin", web, own, stopped, "--yes")
	t.Log(out)
	for _, text := range []string{web + ": " + at + " on " + n + " is pinned (cut off for", own + ": " + h.v4("99") +
		" on " + n + " is pinned: it was asked for",
		stopped + ": " + had + " on " + n + " is pinned (the container does not run)"} {
		if !strings.Contains(out, text) {
			t.Errorf("berth pin does not say %q:\n%s", text, out)
		}
	}
	if a := h.address(web, n); a != at {
		t.Errorf("pinned, %s has %s and had %s", web, a, at)
	}
	asked, _, aliases := h.asks(web, n)
	if asked != at || !slices.Contains(aliases, "www") {
		t.Errorf("%s asks for %s, and is called %v", web, asked, aliases)
	}
	h.calls(other, "www")
	h.published(web, "127.0.0.1:18095")
	if again := h.pinned("pin", web, stopped); strings.Count(again, "is pinned already") != 2 {
		t.Errorf("pinned again: %s", again)
	}

	h.container(n) // takes what is free
	h.docker("start", stopped)
	for range sample(0, 2, 5) {
		h.docker("restart", "--time", "1", web, stopped)
		if a, b := h.address(web, n), h.address(stopped, n); a != at || b != had {
			t.Errorf("restarted, they have %s and %s, and had %s and %s", a, b, at, had)
		}
	}
	h.published(web, "127.0.0.1:18095")
	h.pinned("pin", "--check", web, own, stopped)

	h.pinned("unpin", web, stopped, "--yes")
	for _, c := range []string{web, stopped} {
		if asked, _, _ := h.asks(c, n); asked != "" {
			t.Errorf("unpinned, %s asks for %s", c, asked)
		}
		h.address(c, n)
	}
	if _, _, aliases := h.asks(web, n); !slices.Contains(aliases, "www") {
		t.Errorf("unpinned, %s is called %v", web, aliases)
	}
	if out := h.berth("reservation", "ls", "-q"); out != h.v4("99") {
		t.Errorf("unpinned, these are reserved: %s", out)
	}
	h.finds()
}

// published asks a container for a word through the port that is published for it.
func (h *House) published(container, address string) {
	h.Helper()
	h.docker("exec", "--detach", container, "sh", "-c", "while :; do echo hello | busybox nc -l -p 80; done")
	err := ground.Eventually(30*time.Second, func() error { // neighbours may know the MAC of before
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		said, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && said != "hello\n" {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
	if err != nil {
		h.Errorf("%s on %s: %v", container, address, err)
	}
}

// Both addresses of a container on a network of both families are pinned, also beside what is reserved already.
func TestPinBothFamilies(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 96)
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"), "--subnet", h.v6("::/64")+",gateway="+h.v6("::1"))
	for _, cidr := range []string{h.v4("0/24"), h.v6("::/64")} {
		h.berth("pool", "add", front, cidr)
	}
	n := h.on(front, "--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"))
	web := h.container(n)
	before, err := h.Engine.Endpoint(web, n)
	if err != nil {
		t.Fatal(err)
	}
	h.berth("reservation", "add", front, "--owner", web, "--ip", before.GlobalIPv6Address, "--force")
	t.Log(h.pinned("pin", "--network", front, "--yes"))
	h.container(n)
	for range 3 {
		four, six, _ := h.asks(web, n)
		now, err := h.Engine.Endpoint(web, n)
		if err != nil || now.IPAddress != before.IPAddress || now.GlobalIPv6Address != before.GlobalIPv6Address ||
			four != before.IPAddress || six != before.GlobalIPv6Address {
			t.Errorf("it had %+v, has %+v, and asks for %s and %s (%v)", before, now, four, six, err)
		}
		h.docker("restart", "--time", "1", web)
	}
	h.pinned("pin", "--check", "--network", n, web)
	h.finds()
}

// Where Docker named no subnet nothing is changed, and the refusal says what to do, which helps.
func TestPinChosenSubnet(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 97)
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.v4("0/24"))
	n := h.on(front)
	web := h.container(n)
	at := h.address(web, n)
	h.berthRefuses([]string{"created without --subnet", "docker network create --ipam-driver " + h.Berth.Driver() +
		" --subnet " + h.v4("0/24") +
		" --ipam-opt network=" + front + " " + n, "nothing was changed"}, "pin", "--docker-host", h.Engine.URL(), web,
		"--yes")
	if a := h.address(web, n); a != at || h.berth("reservation", "ls", "-q") != "" {
		t.Errorf("refused, it has %s, and had %s", a, at)
	}
	h.docker("network", "disconnect", n, web)
	h.removes(n)
	h.docker(h.networkCommand(n, "--ipam-opt", "network="+front, "--subnet", h.v4("0/24"))...)
	h.docker("network", "connect", n, web)
	at = h.address(web, n)
	h.pinned("pin", web, "--yes")
	h.docker("restart", "--time", "1", web)
	if a := h.address(web, n); a != at {
		t.Errorf("pinned, it has %s, and had %s", a, at)
	}
}

// A project of docker-compose keeps its addresses, its names and its containers over all that does not make them anew.
func TestPinCompose(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 98)
	p := h.newProject(`
services:
  web:
    image: ${image}
    command: ${run}
    networks: {front: {aliases: [www]}}
  db:
    image: ${image}
    command: ${run}
    container_name: ${project}-mydb
    networks: [front]
networks:
  front:
    name: ${project}-front
    driver_opts: {com.docker.network.bridge.name: ${bridge}}
    ipam: {driver: ${driver}, config: [{subnet: ${subnet}}]}
`, map[string]string{"subnet": h.v4("0/24")})
	n := p.name + "-front"
	p.run("up", "--detach", "--scale", "web=3")
	t.Log(h.pinned("pin", "--project", p.name, "--yes"))
	all := []string{p.name + "_web_1", p.name + "_web_2", p.name + "_web_3", p.name + "-mydb"}
	at, ids := map[string]string{}, map[string]string{}
	for _, c := range all {
		at[c], ids[c] = h.address(c, n), h.docker("inspect", "-f", "{{.Id}}", c)
	}
	for _, do := range [][]string{{"up", "--detach", "--scale", "web=3"}, {"restart", "--timeout", "1"},
		{"stop", "--timeout", "1"}, {"start"}} {
		p.run(do...)
		if do[0] == "stop" {
			continue
		}
		for _, c := range all {
			if a, id := h.address(c, n), h.docker("inspect", "-f", "{{.Id}}", c); a != at[c] || id != ids[c] {
				t.Errorf("after %v, %s has %s and had %s (%s, %s)", do, c, a, at[c], id, ids[c])
			}
		}
		h.calls(p.name+"-mydb", "www")
		h.calls(p.name+"-mydb", "web")
	}
	h.pinned("pin", "--check", "--project", p.name)
	p.run("down", "--timeout", "1")
}

// Over an engine that is killed, pinned containers keep their addresses.
func TestPinKilled(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 164)
	h := enterPlanned(t, e.Engine, witness(t, e.Engine, e.Sockets, 164), 164)
	n := h.network("--subnet", h.v4("0/24"))
	var all []string
	at := map[string]string{}
	for range sample(0, 4, 8) {
		c := h.container(n, "--restart", "always")
		all = append(all, c)
		at[c] = h.address(c, n)
	}
	h.berth("pin", "--docker-host", e.URL(), "--ipam-driver", h.Berth.Driver(), "--network", n, "--yes")
	for round := range sample(0, 1, 3) {
		if err := e.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		h.allRun(all)
		for _, c := range all {
			if a := h.address(c, n); a != at[c] {
				t.Errorf("killed %d times: %s has %s and had %s", round+1, c, a, at[c])
			}
		}
	}
}

// The command is killed at any moment, and no container is without its network for it: a signal that can be caught is
// obeyed after the cut.
func TestPinInterrupted(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 99)
	n := h.network("--subnet", h.v4("0/24"))
	var all []string
	for range 4 {
		all = append(all, h.container(n))
	}
	for round := range sample(0, 4, 8) {
		verb := []string{"pin", "unpin"}[round%2]
		ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(time.Minute))
		command := fmt.Sprintf("%s --admin-socket %s %s --docker-host %s --network %s --yes & sleep 0.%d; kill -TERM "+
			"$!; wait $!",
			filepath.Clean(binary), h.Berth.AdminSocket(), verb, h.Engine.URL(), n, 1+round)
		out, err := run(ctx, nil, "sh", "-c", command)
		cancel()
		t.Logf("%s: %s (%v)", verb, out, err)
		for _, c := range all {
			h.address(c, n)
		}
	}
}
