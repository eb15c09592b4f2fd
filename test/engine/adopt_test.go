//go:build engine

package engine

import (
	"slices"
	"strings"
	"testing"
)

// A Docker network on the engine's own IPAM becomes a plan, without a change in Docker. The commands that `berth
// adopt` prints move it to Berth, and each container keeps its addresses.
func TestAdopt(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 66)
	h.Berth = d // `berth adopt` names this one
	n, front := h.name(), h.name()
	h.docker("network", "create", "--ipv6", "--subnet", h.v4("0/24"), "--gateway", h.v4("254"), "--ip-range",
		h.v4("64/26"), "--subnet", h.v6("::/64"), "--gateway", h.v6("::1"), n)
	given, chosen, stopped := h.container(n, "--ip", h.v4("9"), "--ip6", h.v6("::9")), h.container(n),
		h.container(n, "--ip", h.v4("33"))
	h.docker("stop", stopped)
	shown := func() string {
		h.Helper()
		return h.docker("network", "inspect", n) + h.docker("inspect", given, chosen, stopped)
	}
	before := shown()
	at := map[string]Endpoint{given: h.endpoint(given, n), chosen: h.endpoint(chosen, n)}
	if dry := h.berth("adopt", n, "--name", front, "--dry-run"); !strings.Contains(dry,
		"would add 1 network, 2 subnets, 2 pools, 5 reservations") {
		t.Errorf("berth adopt --dry-run: %s", dry)
	}
	said := h.berth("adopt", n, "--name", front)
	if now := shown(); now != before {
		t.Errorf("berth adopt has changed Docker: it was\n%s\nand is\n%s", before, now)
	}
	for line := range strings.Lines(said) {
		if command, is := strings.CutPrefix(line, "  docker "); is {
			h.docker(strings.Fields(command)...)
		}
	}
	h.docker("start", stopped)
	h.hasAddress(stopped, n, h.v4("33"))
	for _, when := range []string{"moved", "restarted"} {
		for c, was := range at {
			h.hasAddress(c, n, was.IPAddress)
			ep := h.endpoint(c, n)
			if ep.GlobalIPv6Address != was.GlobalIPv6Address || ep.Gateway != was.Gateway {
				t.Errorf("%s, %s was %+v and is %+v", when, c, was, ep)
			}
			h.recorded(ep.GlobalIPv6Address, ep.MacAddress)
		}
		h.calls(chosen, h.v4("9"))
		h.docker("restart", given, chosen)
	}
	want := map[string][]string{given: {h.v4("9"), h.v6("::9")}, stopped: {h.v4("33")},
		chosen: {at[chosen].IPAddress, at[chosen].GlobalIPv6Address}}
	other := h.address(h.container(n), n)
	for owner, addresses := range want {
		if got := h.reserved(front, owner); !slices.Equal(got, addresses) || slices.Contains(addresses, other) {
			t.Errorf("%s has %v reserved, not %v; another container has %s", owner, got, addresses, other)
		}
	}
	h.finds()
	h.berthRefuses([]string{n, "already has its addresses"}, "adopt", n, "--name", h.name())
}
