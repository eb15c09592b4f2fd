//go:build engine

package engine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// pinned runs berth pin or unpin with the harness's engine, which must succeed.
func (h *Harness) pinned(args ...string) string {
	h.Helper()
	return h.berth(append([]string{args[0], "--docker-host", h.Engine.URL()}, args[1:]...)...)
}

// asks returns the addresses that a container requests on a network, as the engine has them, and its aliases.
func (h *Harness) asks(container, network string) (ipv4, ipv6 string, aliases []string) {
	h.Helper()
	var all map[string]struct {
		IPAMConfig struct{ IPv4Address, IPv6Address string }
		Aliases    []string
	}
	lab.Must(h, json.Unmarshal([]byte(h.docker("inspect", "-f", "{{json .NetworkSettings.Networks}}", container)),
		&all))
	on := all[network]
	return on.IPAMConfig.IPv4Address, on.IPAMConfig.IPv6Address, on.Aliases
}

// A running container is pinned. It keeps its address, aliases and published port, and the address over each restart.
// A stopped container is changed in place. After an unpin they request no address.
func TestPin(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 95)
	n := h.network("--subnet", h.v4("0/24"))
	web := h.container(n, "--network-alias", "www", "--publish", "127.0.0.1:18095:80")
	own, other := h.container(n, "--ip", h.v4("99")), h.container(n)
	stopped := h.container(n)
	had := h.address(stopped, n)
	h.seen(had, stopped) // otherwise Berth would not remember its name
	h.docker("stop", "--time", "1", stopped)
	at := h.address(web, n)
	h.berthRefuses([]string{"4 endpoints are not pinned"}, "pin", "--check", "--network", n, "--docker-host",
		h.Engine.URL(), "-q")
	h.berthRefuses([]string{"This command needs confirmation", "--yes"}, "pin", "--docker-host", h.Engine.URL(), web)

	out := h.pinned("pin", web, own, stopped, "--yes")
	t.Log(out)
	for _, text := range []string{web + ": " + at + " on " + n + " is pinned (cut off for", own + ": " + h.v4("99") +
		" on " + n + " is pinned: the container already requested it",
		stopped + ": " + had + " on " + n + " is pinned (the container is not running)"} {
		if !strings.Contains(out, text) {
			t.Errorf("berth pin does not say %q:\n%s", text, out)
		}
	}
	h.hasAddress(web, n, at)
	asked, _, aliases := h.asks(web, n)
	if asked != at || !slices.Contains(aliases, "www") {
		t.Errorf("%s asks for %s, and is called %v", web, asked, aliases)
	}
	h.calls(other, "www")
	h.published(web, "127.0.0.1:18095")
	if again := h.pinned("pin", web, stopped); strings.Count(again, "is pinned already") != 2 {
		t.Errorf("pinned again: %s", again)
	}

	h.container(n) // takes a free address
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

// The daemon puts a container that leaves its reserved address back. So an unpin ends the reservation first.
func TestUnpinBeforeMove(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 97)
	n := h.network("--subnet", h.v4("0/24"))
	web := h.container(n)
	h.pinned("pin", web, "--yes")
	engine := Engine{Socket: filepath.Join(t.TempDir(), "docker.sock")}
	var reserved []string // at each move
	lab.Between(t, engine.Socket, h.Engine.Socket, func(r *http.Request, pass func()) {
		if strings.HasSuffix(r.URL.Path, "/disconnect") {
			reserved = append(reserved, h.berth("reservation", "ls", "-q"))
		}
		pass()
	})
	h.berth("unpin", "--docker-host", engine.URL(), web, "--yes")
	if len(reserved) != 1 || reserved[0] != "" {
		t.Errorf("when it is moved, these are reserved: %q", reserved)
	}
	h.finds()
}

// published checks that a container answers through its published port.
func (h *Harness) published(container, address string) {
	h.Helper()
	h.docker("exec", "--detach", container, "sh", "-c", "while :; do echo hello | busybox nc -l -p 80; done")
	err := lab.Eventually(30*time.Second, func() error { // neighbours may still know the old MAC
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

// Both addresses of a container on a network of both families are pinned, also if one of them is reserved already.
func TestPinBothFamilies(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 96)
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"), "--subnet", h.v6("::/64")+",gateway="+h.v6("::1"))
	for _, cidr := range []string{h.v4("0/24"), h.v6("::/64")} {
		h.berth("pool", "add", front, cidr)
	}
	n := h.on(front, "--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"))
	web := h.container(n)
	before := h.endpoint(web, n)
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
