//go:build machine

package machine

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	cuts       = flag.Int("cuts", 1, "how often TestKept cuts the power")
	containers = flag.Int("containers", 8, "how many containers TestKept has on each network")
)

// kinds are the networks of TestKept.
var kinds = []struct{ name, driver, subnet string }{
	{"pinned", "berth", "10.9.1.0/24"},
	{"unpinned", "berth", "10.9.2.0/24"},
	{"built-in", "default", "10.9.3.0/24"},
}

// How many containers have the same address after a power cut as before it: all that are pinned; of the others, and
// with the engine's own IPAM, as many as the engine's order of starting them has it, which is told and not asserted.
// Nowhere has one an address that another one has.
func TestKept(t *testing.T) {
	h := own(t, "kept", 0)
	begin := time.Now()
	before := h.furnish()
	h.must(h.pin("pinned"))
	t.Logf("%d containers made in %s", len(kinds)*(*containers), time.Since(begin).Round(time.Second))
	kept := make(map[string][]string)
	for cut := range *cuts {
		h.must(h.PowerCut())
		begin := time.Now()
		h.must(h.Boot())
		t.Logf("booted, all containers included, in %s", time.Since(begin).Round(time.Second))
		for _, kind := range kinds {
			after, err := h.back(kind.name, *containers)
			h.must(err)
			n := 0
			for name, c := range after {
				if before[kind.name][name].Address == c.Address {
					n++
				}
			}
			kept[kind.name] = append(kept[kind.name], fmt.Sprintf("%3d", n))
			if kind.name == "pinned" && n != *containers {
				t.Errorf("cut %d: of %d pinned ones %d kept their addresses: %v; before: %v", cut+1, *containers, n,
					after, before[kind.name])
			}
			if kind.driver == "berth" {
				h.must(h.agreed(kind.subnet, after))
			}
			h.must(h.reach(after))
			before[kind.name] = after
		}
		h.must(h.sound())
	}
	t.Logf("of %d containers with --restart always, as many had the same address after each of %d power cuts:",
		*containers, *cuts)
	for _, kind := range kinds {
		t.Logf("%-9s %s", kind.name, strings.Join(kept[kind.name], " "))
	}
}

// furnish makes the networks and their containers, of all networks at once, and returns what they have.
func (h *House) furnish() map[string]map[string]Container {
	h.Helper()
	var wait sync.WaitGroup
	for _, kind := range kinds {
		h.must(h.createNetwork(kind.name, kind.driver, kind.subnet))
		wait.Go(func() {
			if err := h.startContainers(*containers, kind.name, kind.name); err != nil {
				h.Error(err)
			}
		})
	}
	wait.Wait()
	all := map[string]map[string]Container{}
	for _, kind := range kinds {
		running, err := h.back(kind.name, *containers)
		h.must(err)
		all[kind.name] = running
	}
	return all
}
