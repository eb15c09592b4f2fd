//go:build engine

package engine

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"berth/test/ground"
)

var elasticStarts = flag.Int("elastic-starts", 0, "how often TestElasticStarts starts its container")

// A container with a reserved address and an elastic one for what goes out, whose first act is a connection, is seen by
// the elastic address alone, however often it is started: the mapping is in the kernel before the container is.
func TestElasticStarts(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 77)
	d := witness(t, e.Engine, e.Sockets, 77)
	h := enterPlanned(t, e.Engine, d, 77)
	from := callers(t, outside(t, e, 77), elasticPeer)
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	n := h.on(planned, "--subnet", h.v4("0/24"))
	h.berth("network", "modify", planned, "--elastic", "on")
	name, guest := h.name(), h.v4("30")
	h.berth("reservation", "add", planned, "--owner", name, "--ip", guest)
	h.berth("elastic", "range", "add", elasticAddress)
	h.berth("elastic", "allocate")
	edgeOf(t, e, d, 77)
	h.berth("elastic", "associate", elasticAddress, name, "--egress-only")
	if err := ground.Eventually(10*time.Second, func() error {
		out, err := berth(h.Berth, "elastic", "show", elasticAddress, "--format", "{{.Applied}}")
		if err == nil && out == "<nil>\n" {
			err = fmt.Errorf("no edge has mapped it")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	h.docker("create", "--name", name, "--network", n, "--ip", guest, imageName, "busybox", "nc", "-w", "2", elasticPeer,
		"7000")
	seen := map[string]int{}
	starts := sample(*elasticStarts, 8, 50)
	for range starts {
		if _, err := h.Engine.Docker("start", "--attach", name); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-from:
			seen[got]++
		case <-time.After(ground.Patient(10 * time.Second)):
			t.Fatalf("after %v it was not seen", seen)
		}
	}
	for len(from) > 0 {
		seen[<-from]++
	}
	t.Logf("%d starts: seen as %v", starts, seen)
	if len(seen) != 1 || seen[elasticAddress] != starts {
		t.Errorf("%d starts, and it was seen as %v", starts, seen)
	}
}
