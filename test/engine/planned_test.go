//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

func plannedScenarios() []scenario {
	return []scenario{
		{"pools by name and without", plannedPools},
		{"Compose", compose},
		{"pool removed and split under running containers", poolSplit},
		{"docker network rm, and again", networkAgain},
		{"errors of a planned network", plannedErrors},
		{"route of the host in the way", routeInTheWay},
		{"both families", plannedFamilies},
		{"what changes while Docker is attached", changesWhileAttached},
		{"renamed while containers run", renamed},
		{"Compose with the option alone", composeOption},
	}
}

// TestPlanned runs what a network engineer plans and changes. Each scenario has its own daemon and runs twice: the
// second run must find nothing of the first. Under -short only one scenario runs twice.
func TestPlanned(t *testing.T) {
	t.Parallel()
	for i, s := range plannedScenarios() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d := daemon(t, fmt.Sprintf("planner%d", i), pluginDir)
			for n, round := range []string{"once", "again"} {
				if n > 0 && i > 0 && testing.Short() {
					break
				}
				t.Run(round, func(t *testing.T) { s.run(enter(t, machineEngine, d, 21+i)) })
			}
		})
	}
}

// GA-16, LN-6, BO-7: containers get addresses of the pool that their network names, until it is full. If it names
// none, the next pool of the subnet follows a full one. Excluded addresses and the gateway are never given (GA-8).
func plannedPools(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254")+",name=lan")
	h.berth("pool", "add", front, h.span(10, 12), "--name", "web")
	h.berth("pool", "add", front, h.v4("20+2"), "--name", "rest")
	h.berth("exclusion", "add", front, h.v4("11"), "--note", "printer")

	n := h.on(front, "--ipam-opt", "pool=web")
	h.planShows(front, n)
	all := h.gets(n, "10", "12")
	if g := h.gateway(all[0], n); g != h.v4("254") {
		h.Errorf("a container has the gateway %s", g)
	}
	h.full(n, "web", front)
	h.calls(all[0], h.address(all[1], n))
	h.calls(all[0], h.v4("254"))
	h.docker("rm", "-f", all[0])
	all[0] = h.container(n)
	h.docker(append([]string{"rm", "-f"}, all...)...)
	h.removes(n)

	n = h.on(front)
	h.gets(n, "10", "12")
	h.gets(n, "20")
	h.gets(n, "21")
	h.full(n, h.v4("0/24"))
	if lan := h.show(front).Subnets[0]; lan.Pools[0].Map != "XXX" || lan.Pools[1].Map != "XX" {
		h.Errorf("the maps of the full pools: %+v", lan.Pools)
	}
}

// planShows checks that a Docker network has the subnet and the gateway of its plan, which has one subnet. Berth must
// show the plan under the Docker network's name, too.
func (h *Harness) planShows(planned, network string) {
	h.Helper()
	plan, got := h.show(planned), h.subnets(network)
	if len(got) != 1 {
		h.Fatalf("subnets of %s: %+v", network, got)
	}
	gateway, _, _ := strings.Cut(got[0].Gateway, "/")
	// If a network was created with --subnet, Docker shows only the values of that command.
	if s := plan.Subnets[0]; got[0].Subnet != s.CIDR || gateway != s.Gateway && gateway != "" || plan.Docker != 1 {
		h.Errorf("Docker has %+v, the plan is %+v", got[0], plan)
	}
	if err := lab.Eventually(5*time.Second, func() error { // Berth hears of the network only after its creation
		shown, err := berth(h.Berth, "network", "inspect", network, "--format", "{{.ID}}")
		if err == nil && strings.TrimSpace(shown) != plan.ID {
			err = lab.Final(fmt.Errorf("it is shown as %s, which is %s", shown, plan.ID))
		}
		return err
	}); err != nil {
		h.Errorf("the Docker network %s: %v", network, err)
	}
}

// `docker network rm` does not change the planned network. The next Docker network is like the first, also after a
// kill of Berth in between.
func networkAgain(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"), "--tag", "site=a")
	h.berth("pool", "add", front, h.span(10, 12), "--name", "web")
	h.berth("exclusion", "add", front, h.v4("12"))
	h.berth("reservation", "add", front, "--owner", "db", "--ip", h.v4("11"))
	before := h.show(front)
	for range 3 {
		n := h.on(front, "--ipam-opt", "pool=web")
		h.planShows(front, n)
		c := h.gets(n, "10")
		h.full(n, "web")
		h.docker("rm", "-f", c[0])
		h.removes(n)
		after := h.show(front)
		if after.Subnets[0].pools() != before.Subnets[0].pools() || after.Gateway != h.v4("1") || after.Docker != 0 ||
			!slices.Equal(after.Subnets[0].Exclusions, before.Subnets[0].Exclusions) || after.Use.Reserved != 1 ||
			after.ID != before.ID {
			h.Errorf("planned: %+v\nafter docker network rm: %+v", before, after)
		}
		lab.Must(h, h.Berth.Kill(), h.Berth.Revive())
	}
}

// The error messages if a Docker network does not fit the plan. Refused networks leave nothing behind.
func plannedErrors(h *Harness) {
	front := h.plan("--subnet", h.v4("0/25")+",name=lan,gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 12), "--name", "web")
	flat := h.plan() // GA-1: L2 only
	h.refuses(`
		--ipam-opt network=FLAT | FLAT, no subnet
		--ipam-opt network=nowhere | nowhere, berth network
		--ipam-opt network=FRONT --ipam-opt pool=db | db, FRONT
		--ipam-opt network=FRONT --subnet @128/25 | FRONT, @128/25
		--ipam-opt network=FRONT --subnet @0/26 | FRONT, @0/26
		--ipv6 --ipam-opt network=FRONT | FRONT, IPv6
		--ipam-opt network=FRONT --ipam-opt space=lab | FRONT, lab
		--ipam-opt network=FRONT --ipam-opt size=26 | FRONT, size
		--ipam-opt pool=web | web
		--ipam-opt net=FRONT | net=, network, pool
	`, "FRONT", front, "FLAT", flat)
	if n := h.show(front); n.Docker != 0 {
		h.Errorf("the refused networks left something: %+v", n)
	}
	h.gets(h.on(front, "--ipam-opt", "pool=web"), "10")
}

// A subnet that overlaps a route of the host is refused at once; otherwise the engine would ask for it endlessly. If a
// subnet overlaps a network of Docker's own, the refusal names that network.
func routeInTheWay(h *Harness) {
	theirs := h.name()
	h.docker("network", "create", "--subnet", h.v4("64/26"), theirs)
	front := h.plan("--subnet", h.v4("0/24"))
	on := h.networkCommand(h.name(), "--ipam-opt", "network="+front)
	h.refused([]string{h.v4("0/24"), h.v4("64/26"), theirs}, on...)
	h.removes(theirs)

	route := " " + h.v4("64/26") + " dev lo"
	h.Cleanup(func() { _ = ip("route del" + route) }) // it exists only if the test was interrupted
	lab.Must(h, ip("route add"+route))
	// Berth hears of the removed network a moment later.
	lab.Await(h, 20*time.Second, func() error {
		_, err := h.Engine.Docker(on...)
		if err != nil && strings.Contains(err.Error(), theirs) {
			return err
		}
		return nil
	})
	h.refused([]string{front, h.v4("64/26"), "route", "--subnet"}, on...)
	lab.Must(h, ip("route del"+route))
	h.gets(h.on(front), "2")
}

// LN-8: a planned network of both families.
func plannedFamilies(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1")+",pool", "--subnet", h.v6("::/64")+",gateway="+
		h.v6("::1"))
	h.berth("pool", "add", front, h.v6("::10+2"))
	n := h.on(front, "--ipv6")
	for range 2 {
		c := h.container(n)
		h.address(c, n)
		ep := h.endpoint(c, n)
		if a := ep.GlobalIPv6Address; a != h.v6("::10") && a != h.v6("::11") {
			h.Errorf("%s got %s, which is in no pool", c, a)
		}
		lab.Check(h, h.Engine.ShowsAddress(c, ep.GlobalIPv6Address+"/64"))
		h.recorded(ep.GlobalIPv6Address, ep.MacAddress)
		h.calls(c, h.v6("::1"))
	}
	h.full(n, h.v6("::/64"))
	lab.Must(h, removeContainers(h.Engine, h.prefix()))
	h.removes(n)
	// If a container's IPv6 address is refused, the engine never releases the IPv4 one; a network removal does.
	for _, l := range append(h.leases(h.v4("0/24")), h.leases(h.v6("::/64"))...) {
		if l.Kind != "gateway" {
			h.Errorf("after the network is gone, Berth has %+v", l)
		}
	}
	if got, err := h.Engine.Subnets(h.on(front, "--ipv6")); err != nil || len(got) != 2 ||
		got[1].Subnet != h.v6("::/64") {
		h.Errorf("created again, the network has %+v (%v)", got, err)
	}
}
