//go:build engine

package engine

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// BO-4: a Berth that keeps nothing makes its state, when it comes back from a crash, out of what runs.
func TestMemory(t *testing.T) {
	t.Parallel()
	for i, s := range []scenario{
		{"a network of its own", func(h *House) {
			h.forgotten(h.network("--subnet", h.v4("0/24"), "--aux-address", "router="+h.v4("7")), "")
		}},
		{"with a range", func(h *House) {
			h.forgotten(h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("64/28"), "--gateway", h.v4("254")),
				h.v4("64/28"))
		}},
		{"both families", func(h *House) {
			h.forgotten(h.network("--ipv6", "--subnet", h.v4("0/24"), "--subnet", h.v6("::/64")), "")
		}},
		{"planned", func(h *House) {
			front := h.plan("--subnet", h.v4("0/24")+",pool")
			h.forgotten(h.on(front), "")
		}},
		{"planned, by name and with a pool", func(h *House) {
			front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
			h.berth("pool", "add", front, h.span(64, 79), "--name", "web")
			h.forgotten(h.on(front, "--subnet", h.v4("0/24"), "--ipam-opt", "pool=web"), "")
		}},
		{"planned, of both families", func(h *House) {
			front := h.plan("--subnet", h.v4("0/24")+",pool", "--subnet", h.v6("::/64")+",pool")
			h.forgotten(h.on(front, "--ipv6"), "")
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && (i == 1 || i == 2 || i == 3) {
				t.Skip("the others have its parts")
			}
			h, _ := witnessed(t, 187+i, "--store", "mem")
			h.rebuilt(1)
			s.run(h)
		})
	}
}

// forgotten kills and starts the scenario's Berth while containers run on a network: all is as before, new containers
// get addresses of their own, in the network's range if that is given, and what ran before gives its own back.
func (h *House) forgotten(network, within string) {
	h.Helper()
	const mac = "02:62:74:00:58:01"
	containers := []string{h.withMAC(network, mac), h.container(network), h.container(network)}
	seen := func() map[string]Lease {
		h.Helper()
		all := map[string]Lease{}
		for _, cidr := range []string{h.v4("0/24"), h.v6("/48")} {
			for _, l := range h.leases(cidr) {
				if l.Kind == "gateway" { // that of a planned network is in its plan when it was recreated
					l.Pool = ""
				}
				all[l.Address] = Lease{Address: l.Address, Kind: l.Kind, MAC: l.MAC, Space: l.Space, Host: l.Host,
					Pool: l.Pool}
			}
		}
		return all
	}
	before := seen()
	for life := 2; life <= sample(0, 2, 3); life++ {
		if err := h.Berth.Kill(); err != nil {
			h.Fatal(err)
		}
		if err := h.Berth.Revive(); err != nil {
			h.Fatal(err)
		}
		h.rebuilt(life)
		// What is asked for without an address may have been asked for with it: the kinds may differ, and nothing else.
		if now := seen(); !maps.EqualFunc(now, before, func(a, b Lease) bool { b.Kind = a.Kind; return a == b }) {
			h.Errorf("before it was killed, Berth had %+v, and now %+v", before, now)
		}
		for _, c := range containers {
			h.seen(h.address(c, network), c)
		}
		h.finds()
		other := h.container(network)
		a := h.address(other, network)
		if _, twice := before[a]; twice {
			h.Errorf("%s has %s, which another one has", other, a)
		}
		if within != "" && !netip.MustParsePrefix(within).Contains(netip.MustParseAddr(a)) {
			h.Errorf("%s has %s, which is outside of %s", other, a, within)
		}
		h.docker("rm", "-f", other)
		if left := seen(); len(left) != len(before) {
			h.Errorf("%s is gone; Berth had %+v and has %+v", other, before, left)
		}
	}
	at := h.address(containers[0], network)
	h.docker("rm", "-f", containers[1])
	h.docker("stop", containers[0])
	h.docker("start", containers[0])
	if a := h.address(containers[0], network); a != at {
		h.Errorf("the container with a MAC of its own had %s and has %s", at, a)
	}
	h.docker("rm", "-f", containers[0], containers[2])
	for address, l := range seen() {
		if l.Kind != "gateway" && before[address].MAC != "" {
			h.Errorf("the containers are gone, and Berth has %+v", l)
		}
	}
	h.finds()
}

// rebuilt waits until the daemon has made its state out of what runs, in that one of its lives.
func (h *House) rebuilt(life int) {
	h.Helper()
	if err := ground.Eventually(20*time.Second, func() error {
		if strings.Count(h.Berth.Log(), "the state was made out of what runs\"") < life {
			return errors.New("the daemon has not told that it did")
		}
		return nil
	}); err != nil {
		h.Fatal(err)
	}
}

// As long as such a Berth does not know what runs, it gives nothing, and says why; it asks until the engine tells.
func TestMemoryWaits(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(base, prefix+"later.sock")
	t.Cleanup(func() {
		if err := os.RemoveAll(socket); err != nil {
			t.Error(err)
		}
	})
	h, d := witnessed(t, 65, "--store", "mem", "--docker-host", "unix://"+socket)
	show := func(life int) {
		t.Helper()
		if err := os.Symlink(machineEngine.Socket, socket); err != nil {
			t.Fatal(err)
		}
		h.rebuilt(life)
	}
	hide := func() {
		t.Helper()
		if err := os.Remove(socket); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"not known yet", "--store mem"}
	h.refused(words, h.networkCommand(h.name(), "--subnet", h.v4("0/24"))...)
	show(1)
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	pool := h.lease(a).Pool

	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	hide()
	if err := d.Revive(); err != nil {
		t.Fatal(err)
	}
	late := h.name()
	h.refused(words, containerCommand(late, n)...)
	if got, err := takeByHand(d.PluginSocket(), pool, a, "02:62:74:00:65:01"); err == nil ||
		!strings.Contains(err.Error(), words[0]) {
		t.Errorf("%s, which %s has, was given: %s (%v)", a, c, got, err)
	}
	if r, out, err := check(d); err == nil || r.Engine != "unreachable" || len(r.Findings) != 0 {
		t.Errorf("berth check: %s (%v)", out, err)
	}
	show(2)
	h.docker("start", late)
	if b := h.address(late, n); b == a {
		t.Errorf("%s and %s both have %s", late, c, a)
	}
	h.address(c, n)
	h.finds()
}
