//go:build engine

package engine

import (
	"slices"
	"strings"
	"time"

	"berth/test/lab"
)

// LN-3: the container, Docker and Berth's records show the same address.
func runShowsAddress(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"))
	var all []string
	for range 4 {
		all = append(all, h.address(h.container(n), n))
	}
	slices.Sort(all)
	if len(slices.Compact(all)) != 4 {
		h.Errorf("four containers have the addresses %v", all)
	}
	if shown := h.docker("run", "--rm", "--network", n, imageName, "ip", "-o", "-4", "addr", "show", "dev",
		"eth0"); shown == "" {
		h.Error("a container that ends by itself shows no address")
	}
	if left := h.leases(h.v4("0/24")); len(left) != 5 { // four containers and the gateway
		h.Errorf("Berth has %+v", left)
	}
}

// LN-9: an explicit address is given. A second container is refused it, with the name of the holder.
func explicitAddress(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("128/25"))
	first := h.container(n, "--ip", h.v4("50"))
	if a := h.address(first, n); a != h.v4("50") {
		h.Fatalf("--ip %s gave %s", h.v4("50"), a)
	}
	ep := h.endpoint(first, n)
	// An engine of the 20.10 line sends Berth no names: the holder is known by its MAC, if Berth asks for MACs.
	holder := []string{h.v4("50")}
	if asksMAC(h.Berth) {
		holder = append(holder, ep.MacAddress)
	}
	h.refused(holder, containerCommand(h.name(), n, "--ip", h.v4("50"))...)
	gateway := h.gateway(first, n)
	h.refused([]string{gateway, "gateway"}, containerCommand(h.name(), n, "--ip", gateway)...)
	h.docker("rm", "-f", first)
	h.hasAddress(h.container(n, "--ip", h.v4("50")), n, h.v4("50"))
}

// gateway returns the gateway of a container on a network.
func (h *Harness) gateway(container, network string) string {
	h.Helper()
	return h.endpoint(container, network).Gateway
}

// LN-3, BO-2: a container with its own MAC gets its address back, even if other containers started in between.
func macKeepsAddress(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("64/29"))
	bystander := h.container(n)
	const mac = "02:62:74:00:00:01"
	c := h.name()
	lab.Must(h, h.Engine.create(c, n, mac))
	h.docker("start", c)
	before := h.address(c, n)
	h.recorded(before, mac)
	h.docker("stop", c)
	// The witness attributes a request to the only container that ended or was created in the last moments. So that
	// this is not c, three others are created after c ends. The last does not start. The witness must know them.
	var others []string
	for range 3 {
		other := h.name()
		h.docker(append([]string{"create", "--name", other, "--network", n, imageName}, sleepForever...)...)
		others = append(others, other)
	}
	others = others[:2]
	if _, unwitnessed := h.Berth.(*Plugin); !unwitnessed {
		renamed := h.name()
		h.docker("rename", bystander, renamed)
		h.seen(h.address(renamed, n), renamed) // the engine's latest event
	}
	if l := h.lease(before); l.Kind != "" {
		h.Errorf("while the container is stopped, %s is on record as %+v", before, l)
	}
	for _, other := range others {
		h.docker("start", other)
		if a := h.address(other, n); a == before {
			h.Errorf("another container got %s, which belongs to MAC %s", before, mac)
		}
	}
	h.docker("start", c)
	h.hasAddress(c, n, before)
	// A container recreated with the MAC is the same owner.
	h.docker("rm", "-f", c)
	lab.Must(h, h.Engine.create(c, n, mac))
	h.docker("start", c)
	h.hasAddress(c, n, before)
}

// LN-10: disconnecting or removing a container releases its address.
func disconnectAndConnect(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	h.docker("network", "disconnect", n, c)
	if l := h.lease(a); l.Kind != "" {
		h.Errorf("after disconnect %s is on record as %+v", a, l)
	}
	h.docker("network", "connect", "--ip", h.v4("77"), n, c)
	h.hasAddress(c, n, h.v4("77"))
	h.docker("rm", "-f", c)
	if left := h.leases(h.v4("0/24")); len(left) != 1 || left[0].Kind != "gateway" {
		h.Errorf("after the container is gone, Berth has %+v", left)
	}
}

// BO-7: a full range is refused with its name, and serves again as soon as an address is released.
func fullRange(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("8/31"), "--gateway", h.v4("1"))
	first, second := h.container(n), h.container(n)
	h.refused([]string{h.v4("8")}, containerCommand(h.name(), n)...)
	h.docker("rm", "-f", first)
	third := h.container(n)
	if a, b := h.address(second, n), h.address(third, n); a == b {
		h.Errorf("two containers have %s", a)
	}
}

// calls checks that a container reaches an address or a name. It tries for a while: all namespaces of a machine share
// the kernel's neighbour table, which may be full for a moment.
func (h *Harness) calls(from, to string) {
	h.Helper()
	lab.Check(h, h.called(from, to))
}

func (h *Harness) called(from, to string) error {
	command := []string{"exec", from, "ping", "-c", "1", "-W", "5", to}
	if strings.Contains(to, ":") {
		command = slices.Insert(command, 3, "-6")
	}
	return lab.Eventually(5*time.Second, func() error {
		_, err := h.Engine.Docker(command...)
		return err
	})
}

// Containers reach one another at the addresses from Berth.
func ping(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"))
	a, b := h.container(n), h.container(n)
	h.calls(a, h.address(b, n))
	h.calls(b, h.address(a, n))
	h.calls(a, h.gateway(a, n))
}

// Invariants 1 and 2: killed while containers run, Berth comes back with its records and gives no address twice.
func killed(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"))
	holders := map[string]string{}
	add := func() {
		h.Helper()
		c := h.container(n)
		a := h.address(c, n)
		if other, ok := holders[a]; ok {
			h.Fatalf("%s and %s both have %s", other, c, a)
		}
		holders[a] = c
	}
	for range 3 {
		add()
	}
	for range 2 {
		lab.Must(h, h.Berth.Kill(), h.Berth.Revive())
		add()
		add()
	}
	for a, c := range holders { // all still run and have their addresses
		h.hasAddress(c, n, a)
	}
	if got := h.leases(h.v4("0/24")); len(got) != len(holders)+1 {
		h.Errorf("%d containers and a gateway; Berth has %+v", len(holders), got)
	}
	// Berth is killed while a container stops: the engine tries the release again until Berth is back.
	for _, c := range holders {
		lab.Must(h, h.Berth.Kill())
		released := make(chan error, 1)
		go func() {
			_, err := h.Engine.Docker("rm", "-f", c)
			released <- err
		}()
		lab.Must(h, h.Berth.Revive())
		lab.Check(h, <-released)
		break
	}
	if got := h.leases(h.v4("0/24")); len(got) != len(holders) {
		h.Errorf("after one of %d containers is gone, Berth has %+v", len(holders), got)
	}
}
