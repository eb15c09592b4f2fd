//go:build engine

package engine

import (
	"net/netip"
	"strings"
	"sync"

	"berth/test/lab"
)

// choosing is held while Berth chooses a subnet on the machine's engine: two Berths do not know of each other, and the
// engine refuses the second network if both choose the same subnet.
var choosing sync.Mutex

// chosen creates a network whose subnet Berth chooses.
func (h *Harness) chosen(options ...string) string {
	h.Helper()
	choosing.Lock()
	defer choosing.Unlock()
	return h.network(options...)
}

// LN-7, LN-14: Berth chooses the subnet and its gateway.
func networkWithoutSubnet(h *Harness) {
	n := h.chosen()
	got := h.subnets(n)
	if len(got) != 1 {
		h.Fatalf("the network has %d subnets: %+v", len(got), got)
	}
	subnet, err := netip.ParsePrefix(got[0].Subnet)
	if err != nil || subnet != subnet.Masked() {
		h.Fatalf("the subnet is %q", got[0].Subnet)
	}
	gateway := strings.SplitN(got[0].Gateway, "/", 2)[0]
	if l := h.lease(gateway); l.Kind != "gateway" {
		h.Errorf("the gateway %s is on record as %+v", gateway, l)
	}
	c := h.container(n)
	if a := h.address(c, n); !subnet.Contains(netip.MustParseAddr(a)) || a == gateway {
		h.Errorf("%s got %s of %s with the gateway %s", c, a, subnet, gateway)
	}
	h.docker("rm", "-f", c)
	h.removes(n)
	if left := h.leases(subnet.String()); len(left) != 0 { // LN-10
		h.Errorf("after the network is gone, Berth has %+v", left)
	}
}

// LN-1, LN-3, LN-6, LN-14: automatic addresses come from the range only. The gateway and the auxiliary address may be
// outside it.
func networkWithEverything(h *Harness) {
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("128/29"), "--gateway", h.v4("254"),
		"--aux-address", "router="+h.v4("7"), "--aux-address", "printer="+h.v4("129"))
	if l := h.lease(h.v4("254")); l.Kind != "gateway" {
		h.Errorf("the gateway is on record as %+v", l)
	}
	for _, last := range []string{"7", "129"} {
		// If Berth asks for MACs, an address that a container requested has a MAC. Otherwise the two look alike.
		if l := h.lease(h.v4(last)); l.Kind != "auxiliary" && (asksMAC(h.Berth) || l.Kind != "static") {
			h.Errorf("the auxiliary address %s is on record as %+v", h.v4(last), l)
		}
	}
	wanted := netip.MustParsePrefix(h.v4("128/29"))
	seen := map[string]bool{h.v4("129"): true}
	for range 3 {
		a := h.address(h.container(n), n)
		if !wanted.Contains(netip.MustParseAddr(a)) || seen[a] {
			h.Errorf("a container got %s; taken: %v", a, seen)
		}
		seen[a] = true
	}
	// An explicit address may be anywhere in the subnet.
	h.hasAddress(h.container(n, "--ip", h.v4("33")), n, h.v4("33"))
}

// LN-8: IPv4 and IPv6 together.
func networkOfBothFamilies(h *Harness) {
	n := h.network("--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64"))
	c := h.container(n)
	h.address(c, n)
	ep := h.endpoint(c, n)
	lab.Check(h, h.Engine.ShowsAddress(c, ep.GlobalIPv6Address+"/64"))
	h.recorded(ep.GlobalIPv6Address, ep.MacAddress)
	h.docker("rm", "-f", c)
	for _, within := range []string{h.v4("0/24"), h.v6("::/64")} {
		for _, l := range h.leases(within) {
			if l.Kind != "gateway" {
				h.Errorf("after the container is gone, Berth has %+v", l)
			}
		}
	}
}

// Berth chooses a subnet of the given size.
func networkBySize(h *Harness) {
	n := h.chosen("--ipam-opt", "size=28")
	got := h.subnets(n)
	if len(got) != 1 || netip.MustParsePrefix(got[0].Subnet).Bits() != 28 {
		h.Errorf("size=28 gave %+v", got)
	}
	h.address(h.container(n), n)
}

// refuses checks that networks are refused: the options of each, and the words of the error. "@" begins an own address.
func (h *Harness) refuses(table string, names ...string) {
	h.Helper()
	texts := strings.NewReplacer(append(names, "@", h.v4(""))...)
	for line := range strings.Lines(strings.TrimSpace(table)) {
		options, words, _ := strings.Cut(texts.Replace(strings.TrimSpace(line)), " | ")
		h.refused(strings.Split(words, ", "), h.networkCommand(h.name(), strings.Fields(options)...)...)
	}
}

// The error messages for refused networks.
func networkErrors(h *Harness) {
	first := h.network("--subnet", h.v4("0/25"))
	h.refuses(`
		--ipam-opt colour=red | colour, space, size, gateway, quarantine, sticky, tag.
		--subnet @64/26 | @64/26, @0/25
		--subnet @0/24 | @0/24, @0/25
		--ipam-opt size=lots | size, lots
		--subnet @128/25 --gateway @5 | @5
	`)
	if left := h.leases(h.v4("0/24")); len(left) != 1 {
		h.Errorf("the refused networks left something: %+v", left)
	}
	h.address(h.container(first), first)
}

// A subnet and a range with host bits do what they do with Docker's own IPAM: 20.10 masks them, later engines refuse them.
func hostBits(h *Harness) {
	options := []string{"--subnet", h.v4("130/25"), "--ip-range", h.v4("141/28")}
	own := h.name()
	_, wrong := h.Engine.Docker(append(append([]string{"network", "create"}, options...), own)...)
	if wrong == nil {
		h.removes(own)
	}
	name := h.name()
	_, err := h.Engine.Docker(h.networkCommand(name, options...)...)
	if (err == nil) != (wrong == nil) {
		h.Fatalf("with Berth: %v; with Docker's own IPAM: %v", err, wrong)
	}
	if err != nil {
		return
	}
	given := netip.MustParseAddr(h.address(h.container(name), name))
	if pool := netip.MustParsePrefix(h.v4("128/28")); !pool.Contains(given) {
		h.Errorf("%s was given, and the range is %s", given, pool)
	}
}

// LN-10: a subnet is free again when its network is gone, also after containers were on it.
func sameSubnetAgain(h *Harness) {
	for range 2 {
		n := h.network("--subnet", h.v4("0/24"), "--gateway", h.v4("1"))
		c := h.container(n, "--ip", h.v4("9"))
		h.hasAddress(c, n, h.v4("9"))
		h.docker("rm", "-f", c)
		h.removes(n)
		if left := h.leases(h.v4("0/24")); len(left) != 0 {
			h.Errorf("after the network is gone, Berth has %+v", left)
		}
	}
}

// LN-16: the built-in driver serves networks on the same host, and one container may be on both.
func builtInBeside(h *Harness) {
	ours := h.network("--subnet", h.v4("0/25"))
	theirs := h.name()
	h.docker("network", "create", "--subnet", h.v4("128/25"), theirs)
	c := h.container(ours)
	h.docker("network", "connect", theirs, c)
	h.address(c, ours)
	if ep, err := h.Engine.Endpoint(c, theirs); err != nil ||
		!netip.MustParsePrefix(h.v4("128/25")).Contains(netip.MustParseAddr(ep.IPAddress)) {
		h.Errorf("on the built-in driver's network the container has %+v (%v)", ep, err)
	}
	if got := h.leases(h.v4("128/25")); len(got) != 0 {
		h.Errorf("Berth has addresses of the built-in driver: %+v", got)
	}
	other := h.container(theirs)
	h.calls(c, h.at(other, theirs))
}
