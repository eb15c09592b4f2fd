//go:build engine

package engine

import (
	"fmt"

	"berth/test/lab"
)

// GA-19: after a split, the rest of a pool serves new containers. Running containers keep their addresses, also after
// the pool is removed. A container with an explicit address still starts (GA-15).
func poolSplit(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 15), "--name", "web")
	n := h.on(front, "--subnet", h.v4("0/24"), "--ipam-opt", "pool=web")
	running := h.gets(n, "10", "11", "12")
	at := map[string]string{}
	for _, c := range running {
		at[c] = h.address(c, n)
	}
	stay := func() {
		h.Helper()
		for c, a := range at {
			h.hasAddress(c, n, a)
		}
		h.calls(running[0], at[running[1]])
	}
	h.berth("pool", "rm", front, h.span(11, 13))
	if got, want := h.show(front).Subnets[0].pools(),
		fmt.Sprintf("web %s, web %s", h.span(10, 10), h.span(14, 15)); got != want {
		h.Errorf("the pools are %s, not %s", got, want)
	}
	stay()
	h.gets(n, "14", "15")
	h.full(n, "web")
	h.docker("rm", "-f", running[1]) // its address is in no pool now
	delete(at, running[1])
	running[1] = running[2]
	h.full(n, "web")
	h.berth("pool", "rm", front, "web")
	stay()
	h.full(n, "web")
	h.hasAddress(h.container(n, "--ip", h.v4("77")), n, h.v4("77"))
	h.berth("pool", "add", front, h.span(30, 31), "--name", "web")
	h.gets(n, "30", "31")
	stay()
}

// A change that the engine cannot make to an existing network is refused with the reason; others take effect at once.
func changesWhileAttached(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1")+",name=lan")
	h.berth("pool", "add", front, h.span(10, 11), "--name", "web")
	n := h.on(front, "--ipam-opt", "pool=web")
	c := h.gets(n, "10", "11")
	h.full(n, "web")
	h.berth("pool", "add", front, h.v4("20"), "--name", "web")
	h.gets(n, "20")
	h.berth("pool", "modify", front, "web", "--name", "shop")
	h.full(n, "shop")
	h.berth("network", "modify", front, "--quarantine", "1h")
	h.docker("rm", "-f", c[0])
	h.full(n, "shop", "quarantine")
	h.berth("network", "modify", front, "--quarantine", "0s")

	h.berthRefuses([]string{h.v4("0/24"), "Docker"}, "subnet", "modify", front, "lan", "--cidr", h.v4("0/25"))
	h.berthRefuses([]string{h.v4("0/24"), "Docker"}, "subnet", "rm", front, "lan")
	h.berthRefuses([]string{front, "Docker"}, "network", "rm", front)
	lab.Must(h, removeContainers(h.Engine, h.prefix()))
	h.removes(n)
	h.berth("subnet", "modify", front, "lan", "--cidr", h.v4("0/25"), "--gateway", h.v4("2"))
	n = h.on(front)
	h.planShows(front, n)
}

// A network is renamed while containers run. These keep their addresses.
func renamed(h *Harness) {
	front := h.plan("--subnet", h.v4("0/24")+",pool,gateway="+h.v4("1"))
	n := h.on(front)
	c := h.container(n)
	at := h.address(c, n)
	street := h.name()
	h.berth("network", "modify", front, "--name", street)
	h.berthRefuses([]string{front}, "network", "show", front)
	h.hasAddress(c, n, at)
	h.address(h.container(n), n)
	h.refused([]string{front}, h.networkCommand(h.name(), "--ipam-opt", "network="+front)...)
	lab.Must(h, removeContainers(h.Engine, h.prefix()))
	h.removes(n)
	id := h.show(street).ID
	h.planShows(street, h.on(id)) // its id never changes
}
