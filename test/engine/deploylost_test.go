//go:build engine

package engine

import (
	"fmt"
	"strings"
	"testing"
)

// The engine's release of an address goes astray, as when the daemon is killed in the midst of it: the address stays
// leased to a container that has it no more. The next deploy releases it, and starts that container or makes it anew.
func TestDeployLostRelease(t *testing.T) {
	t.Parallel()
	h, relay := relayed(t, machineEngine, pluginDir, 197)
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	p := h.newProject("", nil)
	p.command = composeCommands(t)[newer[0]]
	says := func(round int) {
		p.write(swapFile, map[string]string{"planned": planned, "subnet": h.v4("0/24"), "a": h.v4("11"), "b": h.v4("12"),
			"does": fmt.Sprintf(`["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.%d; done"]`, round)})
	}
	says(1)
	p.deploys()
	for round, what := range []string{"started", "recreated"} {
		says(1 + round)
		relay.Drop(true)
		p.docker("stop", "--time", "1", p.containerOf("a", 1))
		relay.Drop(false)
		if l := p.lease(h.v4("11")); l.Kind == "" {
			p.Fatalf("the engine has released %s after all", h.v4("11"))
		}
		said, want := p.deploys(), "release "+p.name+"/a/1: "+h.v4("11")+", which no endpoint has any more"
		if !strings.Contains(said, want) {
			p.Errorf("%s: it tells of no release:\n%s", what, said)
		}
		p.swapped("11", "12")
	}
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}
