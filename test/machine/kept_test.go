//go:build machine

package machine

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

var (
	cuts       = flag.Int("cuts", 1, "how often TestKept cuts the power")
	containers = flag.Int("containers", 8, "how many containers TestKept has on each network")
)

// kind is a network of TestKept.
type kind struct {
	name, subnet string
	home         time.Duration // each has its own address this soon after the engine answers; 0: no promise
	keep         func(*Harness, map[string]Container)
}

// soon is how long after the engine answers a container may still have a wrong address that Berth then repairs.
const soon = 10 * time.Second

var kinds = []kind{
	{"pinned", "10.9.1.0/24", time.Second, func(h *Harness, _ map[string]Container) { h.must(h.pin("pinned")) }},
	{"reserved", "10.9.2.0/24", soon, func(h *Harness, all map[string]Container) {
		for name, c := range all {
			_, err := h.Berth("reservation", "add", "reserved", "--owner", name, "--ip", c.Address)
			h.must(err)
		}
	}},
	{"put-back", "10.9.3.0/24", soon, func(h *Harness, _ map[string]Container) {
		_, err := h.Berth("network", "modify", "put-back", "--put-back", "all")
		h.must(err)
	}},
	{"unpinned", "10.9.4.0/24", 0, func(*Harness, map[string]Container) {}},
}

// A container gets its old address back, on an engine that does not say which container asks, whatever happens to
// it while others are idle on its network. A witness knows the container. Without one, Berth recognises a restart
// by the release right before it.
func TestKept(t *testing.T) {
	h := own(t, "kept", 0)
	before := h.furnish()
	for range *cuts {
		h.must(h.PowerCut())
		h.must(h.Boot())
		for _, k := range kinds {
			h.kept(k, before[k.name])
		}
		h.must(h.sound())
		for _, k := range kinds {
			after, err := h.back(k.name, *containers)
			h.must(err)
			h.must(h.agreed(k.subnet, after))
			h.must(h.reach(after))
			before[k.name] = after
		}
	}
}

// furnish makes all networks and their containers at the same time, and returns the containers.
func (h *Harness) furnish() map[string]map[string]Container {
	h.Helper()
	var wait sync.WaitGroup
	for _, k := range kinds {
		h.must(h.createNetwork(k.name, "berth", k.subnet))
		wait.Go(func() {
			lab.Check(h, h.startContainers(*containers, k.name, k.name))
		})
	}
	wait.Wait()
	all := map[string]map[string]Container{}
	for _, k := range kinds {
		running, err := h.back(k.name, *containers)
		h.must(err)
		k.keep(h, running)
		all[k.name] = running
	}
	return all
}

// kept checks that no container has an address that none of the network had before, and waits until each has its
// own.
func (h *Harness) kept(k kind, before map[string]Container) {
	h.Helper()
	var had []string
	for _, c := range before {
		had = append(had, c.Address)
	}
	after, err := h.back(k.name, *containers)
	h.must(err)
	for name, c := range after {
		if k.name != "reserved" && !slices.Contains(had, c.Address) {
			h.Errorf("%s has %s, which none had", name, c.Address)
		}
	}
	if k.home == 0 {
		return
	}
	lab.Await(h, k.home, func() error {
		after, err := h.running(k.name)
		for name, c := range before {
			if err == nil && after[name].Address != c.Address {
				err = fmt.Errorf("%s had %s and has %q", name, c.Address, after[name].Address)
			}
		}
		return err
	})
}
