//go:build engine

package engine

import (
	"slices"
	"testing"
)

// BO-2: on an engine that sends no names, an owner has its address by its MAC, or by asking for the one that Berth has
// kept for it; it is the same over rm and run, and nobody else is lent it, however full the pool is.
func TestOwnersByMACAndAddress(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 67)
	const mac = "02:62:74:00:67:01"
	front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("1"))
	h.berth("pool", "add", front, h.span(10, 13))
	n := h.on(front, "--subnet", h.v4("0/24"))
	web := h.berth("reservation", "add", front, "--owner", "web")
	byMAC := h.berth("reservation", "add", front, "--owner", mac)
	if again := h.berth("reservation", "add", front, "--owner", "web"); again != web || web == byMAC {
		t.Errorf("web has %s, asked again it has %s; the MAC has %s", web, again, byMAC)
	}
	others := slices.DeleteFunc([]string{"10", "11", "12", "13"},
		func(s string) bool { return h.v4(s) == web || h.v4(s) == byMAC })
	lent := h.gets(n, others...)
	for range 2 {
		h.full(n, h.v4("0/24"))
		name := h.name()
		h.docker(containerCommand(name, n, "--ip", h.berth("ip", "web", "--network", front))...)
		if a := h.address(name, n); a != web {
			t.Errorf("web has %s; kept for it is %s", a, web)
		}
		h.seen(web, name)
		m := h.withMAC(n, mac)
		if a := h.address(m, n); a != byMAC {
			t.Errorf("MAC %s has %s; kept for it is %s", mac, a, byMAC)
		}
		for _, r := range h.reservations(front) {
			if !r.InUse || r.Kind != "automatic" || r.Address != map[string]string{"web": web, mac: byMAC}[r.Owner] {
				t.Errorf("both run: %+v", r)
			}
		}
		h.full(n, h.v4("0/24"))
		h.docker("restart", name, m)
		if a, b := h.address(name, n), h.address(m, n); a != web || b != byMAC {
			t.Errorf("started anew, web has %s and MAC %s has %s", a, mac, b)
		}
		h.docker("rm", "-f", name, m)
		for _, r := range h.reservations(front) {
			if r.InUse {
				t.Errorf("neither runs: %+v", r)
			}
		}
	}
	h.full(n, h.v4("0/24"))
	h.docker("rm", "-f", lent[0]) // what was lent is lent again, and nothing else
	h.address(h.container(n), n)
	h.full(n, h.v4("0/24"))
	h.finds()
}
