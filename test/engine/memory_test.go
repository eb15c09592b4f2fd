//go:build engine

package engine

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// BO-4: after a crash, a Berth without a store recreates its state from the running containers.
func TestMemory(t *testing.T) {
	t.Parallel()
	for i, s := range []scenario{
		{"a network of its own", func(h *Harness) {
			h.forgotten(h.network("--subnet", h.v4("0/24"), "--aux-address", "router="+h.v4("7")))
		}},
		{"planned, by name and with a pool", func(h *Harness) {
			front := h.plan("--subnet", h.v4("0/24")+",gateway="+h.v4("254"))
			h.berth("pool", "add", front, h.span(64, 79), "--name", "web")
			h.forgotten(h.on(front, "--subnet", h.v4("0/24"), "--ipam-opt", "pool=web"))
		}},
		{"planned, of both families", func(h *Harness) {
			front := h.plan("--subnet", h.v4("0/24")+",pool", "--subnet", h.v6("::/64")+",pool")
			h.forgotten(h.on(front, "--ipv6"))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h, _ := witnessed(t, 187+i, "--store", "mem")
			h.rebuilt(1)
			s.run(h)
		})
	}
}

// forgotten kills and starts the scenario's Berth while containers run on a network. Everything is as before, new
// containers get addresses of their own, and the old containers release theirs.
func (h *Harness) forgotten(network string) {
	h.Helper()
	const mac = "02:62:74:00:58:01"
	containers := []string{h.withMAC(network, mac), h.container(network), h.container(network)}
	seen := func() map[string]Lease {
		h.Helper()
		all := map[string]Lease{}
		for _, cidr := range []string{h.v4("0/24"), h.v6("/48")} {
			for _, l := range h.leases(cidr) {
				if l.Kind == "gateway" { // a planned network's gateway is in its plan after a recreation
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
		lab.Must(h, h.Berth.Kill(), h.Berth.Revive())
		h.rebuilt(life)
		// Berth cannot tell whether an address was requested or automatic: only the kinds may differ.
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
		h.docker("rm", "-f", other)
		if left := seen(); len(left) != len(before) {
			h.Errorf("%s is gone; Berth had %+v and has %+v", other, before, left)
		}
	}
	at := h.address(containers[0], network)
	h.docker("rm", "-f", containers[1])
	h.docker("stop", containers[0])
	h.docker("start", containers[0])
	h.hasAddress(containers[0], network, at)
	h.docker("rm", "-f", containers[0], containers[2])
	for address, l := range seen() {
		if l.Kind != "gateway" && before[address].MAC != "" {
			h.Errorf("the containers are gone, and Berth has %+v", l)
		}
	}
	h.finds()
}

// rebuilt waits until the daemon has rebuilt its state from the running containers after the given start.
func (h *Harness) rebuilt(life int) {
	h.Helper()
	lab.Await(h, 20*time.Second, func() error {
		if strings.Count(h.Berth.Log(), "Berth rebuilt the state from the running containers") < life {
			return errors.New("the daemon has not told that it did")
		}
		return nil
	})
}
