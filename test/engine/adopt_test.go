//go:build engine

package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// reserved is what the tests read of one line of `berth reservation ls --format json`.
type reserved struct {
	Owner, Address, Kind string
	InUse                bool `json:"in_use"`
}

func (h *House) reservations(network string) (all []reserved) {
	h.Helper()
	out := h.berth("reservation", "ls", network, "--format", "json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		h.Fatalf("berth reservation ls: %v: %s", err, out)
	}
	return all
}

// A Docker network of the default driver becomes a plan, without a change in Docker; and moves to Berth, with the same
// addresses for the same containers, by the commands that `berth adopt` names.
func TestAdopt(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 66)
	h.Berth = d // which is the one that `berth adopt` names
	n := h.name()
	h.docker("network", "create", "--ipv6", "--subnet", h.v4("0/24"), "--gateway", h.v4("254"), "--ip-range",
		h.v4("64/26"),
		"--subnet", h.v6("::/64"), "--gateway", h.v6("::1"), n)
	given, chosen, stopped := h.container(n, "--ip", h.v4("9"), "--ip6", h.v6("::9")), h.container(n),
		h.container(n, "--ip", h.v4("33"))
	h.docker("stop", stopped)
	shown := func() string {
		h.Helper()
		return h.docker("network", "inspect", n) + h.docker("inspect", given, chosen, stopped)
	}
	before := shown()
	at := map[string]Endpoint{}
	for _, c := range []string{given, chosen} {
		ep, err := h.Engine.Endpoint(c, n)
		if err != nil {
			t.Fatal(err)
		}
		at[c] = ep
	}

	front := h.name()
	dry := h.berth("adopt", n, "--name", front, "--dry-run")
	if !strings.Contains(dry, "would add 1 network, 2 subnets, 2 pools, 5 reservations") {
		t.Errorf("berth adopt --dry-run: %s", dry)
	}
	h.berthRefuses([]string{front}, "network", "show", front)
	said := h.berth("adopt", n, "--name", front)
	if now := shown(); now != before {
		t.Errorf("berth adopt has changed Docker: it was\n%s\nand is\n%s", before, now)
	}
	plan := h.show(front)
	pools := map[string]string{}
	for _, s := range plan.Subnets {
		pools[s.CIDR+" "+s.Gateway] = s.pools()
	}
	if len(pools) != 2 || pools[h.v4("0/24")+" "+h.v4("254")] != " "+h.span(64, 127) ||
		pools[h.v6("::/64")+" "+h.v6("::1")] == "" {
		t.Errorf("the plan is %+v", plan)
	}
	want := []reserved{
		{given, h.v4("9"), "static", false}, {given, h.v6("::9"), "static", false},
		{chosen, at[chosen].IPAddress, "automatic", false}, {chosen, at[chosen].GlobalIPv6Address, "automatic", false},
		{stopped, h.v4("33"), "static", false},
	}
	order := func(a, b reserved) int { return strings.Compare(a.Owner+a.Address, b.Owner+b.Address) }
	got := h.reservations(front)
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Errorf("the reservations are %+v, not %+v", got, want)
	}

	// The move, as it is said.
	for line := range strings.Lines(said) {
		if command, is := strings.CutPrefix(line, "  docker "); is {
			h.docker(strings.Fields(command)...)
		}
	}
	h.docker("start", stopped)
	if a := h.address(stopped, n); a != h.v4("33") {
		t.Errorf("%s was given %s, and has %s", stopped, h.v4("33"), a)
	}
	for _, when := range []string{"moved", "started anew"} {
		for c, was := range at {
			ep, err := h.Engine.Endpoint(c, n)
			if err != nil {
				t.Fatal(err)
			}
			if h.address(c, n) != was.IPAddress || ep.GlobalIPv6Address != was.GlobalIPv6Address ||
				ep.Gateway != was.Gateway {
				t.Errorf("%s, %s was %+v and is %+v", when, c, was, ep)
			}
			h.recorded(ep.GlobalIPv6Address, ep.MacAddress)
		}
		h.calls(chosen, h.v4("9"))
		h.docker("restart", given, chosen)
	}
	for _, r := range h.reservations(front) {
		if !r.InUse {
			t.Errorf("%s runs with it, and it is not in use: %+v", r.Owner, r)
		}
	}
	other := h.container(n)
	for _, r := range want {
		if a := h.address(other, n); a == r.Address {
			t.Errorf("%s has %s, which is that of %s", other, a, r.Owner)
		}
	}
	h.finds()
	h.berthRefuses([]string{n, "from this Berth already"}, "adopt", n, "--name", h.name())
}
