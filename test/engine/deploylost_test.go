//go:build engine

package engine

import (
	"fmt"
	"strings"
	"testing"
)

const lostFile = `
version: "3.9"
services:
  a: {image: ${image}, command: ${does}, networks: {front: {ipv4_address: "${a}"}}}
` + frontNetwork

// The engine's release of an address is lost, as when the daemon is killed meanwhile. The address stays leased to a
// container that does not have it. The next deploy releases it and starts or recreates that container.
func TestDeployLostRelease(t *testing.T) {
	t.Parallel()
	h, relay := relayed(t, machineEngine, pluginDir, 197)
	p := h.deployed(composeCommands(t)[newer], "", nil)
	says := func(round int) {
		p.write(lostFile, map[string]string{"a": h.v4("11"),
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
		said, want := p.deploys(), "release "+p.name+"/a/1: "+h.v4("11")+", which no endpoint has"
		if !strings.Contains(said, want) {
			p.Errorf("%s: the deploy reports no release:\n%s", what, said)
		}
		p.plans(0)
		p.runsAt(map[string]string{"a/1": "11"})
	}
}
