//go:build engine

package engine

import (
	"fmt"
	"strings"
	"sync"
)

// GA-10: an exclusion over a running container's address leaves it there; new containers do not get it. When the
// container stops or is restarted, the address goes to nobody any more, not even back to it, until the exclusion ends.
func exclusionOverRunning(h *House) {
	h.onMAC()
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 13))
	n := h.on(front, "--subnet", h.v4("0/24"))
	const mac = "02:62:74:00:00:04"
	c := h.name()
	if err := h.Engine.CreateWithMAC(c, n, mac); err != nil {
		h.Fatal(err)
	}
	h.docker("start", c)
	if a := h.address(c, n); a != h.v4("10") {
		h.Fatalf("the container has %s", a)
	}
	h.berth("exclusion", "add", front, h.v4("10"), "--note", "new printer")
	h.gets(n, "11")
	if a := h.address(c, n); a != h.v4("10") {
		h.Errorf("after the exclusion the container has %s", a)
	}
	h.calls(c, h.gateway(c, n))

	h.docker("restart", c)
	if a := h.address(c, n); a != h.v4("12") {
		h.Errorf("restarted, the container has %s", a)
	}
	if l := h.lease(h.v4("10")); l.Kind != "" {
		h.Errorf("%s, which nobody has, is on record as %+v", h.v4("10"), l)
	}
	h.gets(n, "13")
	h.full(n, h.v4("0/24"))
	name := h.name()
	h.refused([]string{h.v4("10"), "new printer"}, containerCommand(name, n, "--ip", h.v4("10"))...) // GA-9
	h.docker("rm", "-f", name)
	h.berth("exclusion", "rm", front, h.v4("10"))
	h.gets(n, "10")
}

// GA-19: what is left of a pool that was split serves new containers; those that run keep their addresses, also when
// there is no pool any more, and one with an explicit address still comes up (GA-15).
func poolSplit(h *House) {
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
			if got := h.address(c, n); got != a {
				h.Errorf("%s had %s and has %s", c, a, got)
			}
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
	h.docker("rm", "-f", running[1]) // of what is no pool any more
	delete(at, running[1])
	running[1] = running[2]
	h.full(n, "web")
	h.berth("pool", "rm", front, "web")
	stay()
	h.full(n, "web")
	if a := h.address(h.container(n, "--ip", h.v4("77")), n); a != h.v4("77") {
		h.Errorf("--ip %s gave %s", h.v4("77"), a)
	}
	h.berth("pool", "add", front, h.span(30, 31), "--name", "web")
	h.gets(n, "30", "31")
	stay()
}

// A reserved address goes to nobody automatically; who asks for it by address gets it. It stays reserved afterwards.
func reservation(h *House) {
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 12))
	if out := h.berth("reservation", "add", front, "--owner", "db", "--ip", h.v4("11")); out != h.v4("11") {
		h.Errorf("berth reservation add prints %q", out)
	}
	n := h.on(front, "--subnet", h.v4("0/24"))
	h.gets(n, "10", "12")
	h.full(n, h.v4("0/24"))
	for range 2 {
		c := h.container(n, "--ip", h.v4("11"))
		if a := h.address(c, n); a != h.v4("11") {
			h.Errorf("--ip %s gave %s", h.v4("11"), a)
		}
		h.docker("rm", "-f", c)
		h.full(n, h.v4("0/24"))
	}
	if out := h.berth("reservation", "ls", "--format", "json"); !strings.Contains(out, h.v4("11")) {
		h.Errorf("the reservations: %s", out)
	}
	h.berth("reservation", "rm", front, "--owner", "db")
	h.gets(n, "11")
}

// One for a MAC is its container's without a word, where the engine is asked for MACs.
func reservationByMAC(h *House) {
	h.onMAC()
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 12))
	n := h.on(front, "--subnet", h.v4("0/24"))
	const mac = "02:62:74:00:00:05"
	h.berth("reservation", "add", front, "--owner", mac, "--ip", h.v4("40"))
	c := h.name()
	if err := h.Engine.CreateWithMAC(c, n, mac); err != nil {
		h.Fatal(err)
	}
	h.docker("start", c)
	if a := h.address(c, n); a != h.v4("40") {
		h.Errorf("the container with MAC %s has %s", mac, a)
	}
}

// GA-22: what is taken for routers and printers while containers start is never the same.
func takenBeside(h *House) {
	const each = 5
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 9+2*each))
	n := h.on(front)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		taken = map[string]string{} // address to holder
	)
	add := func(address, holder string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if other, twice := taken[address]; err != nil || twice {
			h.Errorf("%s has %q, and so has %q (%v)", holder, address, other, err)
		}
		taken[address] = holder
	}
	for i := range each {
		owner, name := fmt.Sprintf("router-%d", i), h.name()
		wg.Go(func() {
			out, err := berth(h.Berth, "address", "take", front, "--owner", owner, "--ip", "pool")
			add(out, owner, err)
		})
		wg.Go(func() {
			_, err := h.Engine.Docker(containerCommand(name, n)...)
			ep, epErr := h.Engine.Endpoint(name, n)
			add(ep.IPAddress, name, err)
			if epErr != nil {
				h.Error(epErr)
			}
		})
	}
	wg.Wait()
	if len(taken) != 2*each {
		h.Errorf("%d were given: %v", len(taken), taken)
	}
	h.full(n, h.v4("0/24"))
	h.berthRefuses([]string{front}, "address", "take", front, "--owner", "late", "--ip", "pool")
	for address, holder := range taken {
		if strings.HasPrefix(holder, "router-") {
			h.berth("address", "release", front, "--owner", holder)
			h.gets(n, address[strings.LastIndex(address, ".")+1:])
			break
		}
	}
	h.berthRefuses([]string{h.v4("1")}, "address", "take", front, "--owner", "rogue", "--ip", h.v4("1"))
}

// What the engine cannot change in a living network is refused with the reason; the rest takes effect at once.
func changesWhileAttached(h *House) {
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
	if err := removeContainers(h.Engine, h.prefix()); err != nil {
		h.Fatal(err)
	}
	h.removes(n)
	h.berth("subnet", "modify", front, "lan", "--cidr", h.v4("0/25"), "--gateway", h.v4("2"))
	n = h.on(front)
	h.planShows(front, n)
}

// planOf is the network that Berth made for a Docker network of its own.
func (h *House) planOf(cidr string) Network {
	h.Helper()
	all, err := networks(h.Berth)
	if err != nil {
		h.Fatal(err)
	}
	for _, n := range all {
		if n.CIDR == cidr {
			return n
		}
	}
	h.Fatalf("no network has %s: %+v", cidr, all)
	return Network{}
}

// A Docker network that nobody planned has a network of its own, which is shown like any other, ends with it, and stays
// once someone has changed it.
func networkWithoutPlan(h *House) {
	n := h.network("--subnet", h.v4("0/24"))
	own := h.planOf(h.v4("0/24"))
	if own.Name != n && !strings.HasPrefix(own.Name, "net-") || own.Docker != 1 || own.Planned {
		h.Errorf("made for a Docker network: %+v", own)
	}
	h.removes(n)
	h.berthRefuses([]string{own.Name}, "network", "show", own.Name)

	n = h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	at := h.address(c, n)
	office := h.name()
	h.berth("network", "modify", h.planOf(h.v4("0/24")).ID, "--name", office)
	h.berth("pool", "rm", office, h.span(0, 127))
	if a := h.address(c, n); a != at {
		h.Errorf("the container had %s and has %s", at, a)
	}
	h.gets(n, "128")
	if err := removeContainers(h.Engine, h.prefix()); err != nil {
		h.Fatal(err)
	}
	h.removes(n)
	if left := h.show(office); left.Docker != 0 || left.CIDR != h.v4("0/24") || !left.Planned {
		h.Errorf("after an edit and docker network rm: %+v", left)
	}
	h.gets(h.on(office), "129") // what was never used comes first
}

// A network is renamed while containers run, and nothing of theirs moves.
func renamed(h *House) {
	front := h.plan("--subnet", h.v4("0/24")+",pool,gateway="+h.v4("1"))
	n := h.on(front)
	c := h.container(n)
	at := h.address(c, n)
	street := h.name()
	h.berth("network", "modify", front, "--name", street)
	h.berthRefuses([]string{front}, "network", "show", front)
	if a := h.address(c, n); a != at {
		h.Errorf("the container had %s and has %s", at, a)
	}
	h.address(h.container(n), n)
	h.refused([]string{front}, h.networkCommand(h.name(), "--ipam-opt", "network="+front)...)
	if err := removeContainers(h.Engine, h.prefix()); err != nil {
		h.Fatal(err)
	}
	h.removes(n)
	id := h.show(street).ID
	h.planShows(street, h.on(id)) // by its id, which never changes
}
