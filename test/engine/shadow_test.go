//go:build engine

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// removeLinks removes the links that stand in for a VPN's, or for a LAN's card, in these tests.
func removeLinks() (err error) {
	ctx := context.Background()
	for _, kind := range []string{"tun", "veth"} {
		out, shown := run(ctx, nil, "ip", "-oneline", "link", "show", "type", kind)
		err = errors.Join(err, shown)
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			name, _, _ := strings.Cut(strings.TrimSuffix(fields[1], ":"), "@")
			if strings.HasPrefix(name, vpnLink) && !strings.HasSuffix(name, "p") { // a pair goes with one of the two
				_, gone := run(ctx, nil, "ip", "link", "delete", name)
				err = errors.Join(err, gone)
			}
		}
	}
	return err
}

// vpnLink begins the names of links of these tests.
const vpnLink = "btvpn"

// A VPN that is started over a network that is there is found within ten seconds, with both, and over when it ends.
// What was there when the network was made is not, nor the network's own bridge.
func TestVPN(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 194)
	link := fmt.Sprintf("%s%d", vpnLink, 194)
	h.links("tuntap", "add", link, "mode", "tun")
	t.Cleanup(func() { h.links("link", "delete", link) })
	h.links("link", "set", link, "up")
	h.links("route", "add", h.v4("128/25"), "dev", link)
	n := h.network("--subnet", h.v4("0/24"))
	h.container(n)
	h.finds()

	h.links("route", "add", h.v4("64/26"), "dev", link)
	h.findsSoon("shadowed_subnet " + h.v4("0/24"))
	found := h.check().find("shadowed_subnet", h.v4("0/24"))
	for _, want := range []string{h.v4("64/26") + " over " + link, h.v4("0/24"), "ip route"} {
		if !strings.Contains(found.Detail, want) {
			t.Errorf("it does not say %q: %s", want, found.Detail)
		}
	}
	h.links("link", "set", link, "down")
	h.findsSoon()
}

// A bridge over a LAN of the host is reported, in the log's words and as an event, and over when it is removed.
func TestBridgeOnLAN(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 188)
	link := fmt.Sprintf("%s%d", vpnLink, 188)
	h.links("link", "add", link, "type", "veth", "peer", "name", link+"p")
	t.Cleanup(func() { h.links("link", "delete", link) })
	h.links("addr", "add", h.v4("200/24"), "dev", link)
	h.links("link", "set", link, "up")
	n := h.network("--subnet", h.v4("0/25"))
	begun := time.Now()
	h.findsSoon("bridge_on_lan " + h.v4("0/25"))
	t.Logf("found after %s", time.Since(begun))
	found := h.check().find("bridge_on_lan", h.v4("0/25"))
	for _, want := range []string{h.v4("0/24") + " of " + link, "macvlan -o parent=" + link} {
		if !strings.Contains(found.Detail, want) {
			t.Errorf("it does not say %q: %s", want, found.Detail)
		}
	}
	if out := h.berth("events", "--verb", "subnet.bridge_on_lan"); !strings.Contains(out, h.v4("0/25")) {
		t.Errorf("the events are:\n%s", out)
	}
	h.docker("network", "rm", n)
	h.findsSoon()
}

// links runs ip, which must succeed.
func (h *House) links(args ...string) {
	h.Helper()
	if out, err := run(context.Background(), nil, "ip", args...); err != nil {
		h.Fatalf("ip %v: %s (%v)", args, out, err)
	}
}

// findsSoon waits until `berth check` finds exactly this.
func (h *House) findsSoon(want ...string) {
	h.Helper()
	if err := ground.Eventually(10*time.Second, func() error {
		r := h.check()
		if got := r.left(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("berth check finds %v, not %v: %+v", got, want, r.Findings)
		}
		return nil
	}); err != nil {
		h.Fatal(err)
	}
}
