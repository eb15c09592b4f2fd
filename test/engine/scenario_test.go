//go:build engine

package engine

import (
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

// scenario is one thing that a person does with Docker and Berth.
type scenario struct {
	name string
	run  func(*Harness)
}

func scenarios() []scenario {
	return []scenario{
		{"network without a subnet", networkWithoutSubnet},
		{"network with subnet, range, gateway and auxiliary addresses", networkWithEverything},
		{"network of both families", networkOfBothFamilies},
		{"size of the subnet chosen by option", networkBySize},
		{"errors of network create", networkErrors},
		{"subnet with host bits", hostBits},
		{"same subnet again", sameSubnetAgain},
		{"built-in driver beside it", builtInBeside},
		{"run", runShowsAddress},
		{"explicit address", explicitAddress},
		{"disconnect and connect", disconnectAndConnect},
		{"full range", fullRange},
		{"ping", ping},
		{"killed", killed},
	}
}

// byMACs returns the scenarios in which Berth asks for MACs.
func byMACs() []scenario {
	return []scenario{
		{"network with everything, by MAC", networkWithEverything},
		{"explicit address, by MAC", explicitAddress},
		{"MAC keeps its address", macKeepsAddress},
		{"killed, by MAC", killed},
	}
}

// TestLegacy runs every scenario over a daemon on a legacy plugin socket.
func TestLegacy(t *testing.T) {
	t.Parallel()
	d := daemon(t, "legacy", pluginDir)
	runScenarios(t, d, 1, scenarios())
	runScenarios(t, byMAC{d}, 15, byMACs())
}

// waysIn are the scenarios that depend on how the engine reaches Berth. TestManaged runs only these under -short.
var waysIn = []string{"network with subnet, range, gateway and auxiliary addresses", "network of both families",
	"errors of network create", "explicit address", "killed", "explicit address, by MAC"}

// TestManaged runs every scenario over the managed plugin, installed from a registry by one command.
func TestManaged(t *testing.T) {
	r := registry(t)
	remote := r.Addr + "/" + prefix + "plugin:v1"
	lab.Must(t, publishPlugin(machineEngine, remote, binary))
	t.Parallel()
	p, err := installPlugin(machineEngine, remote, "", binary, "BERTH_LOG_LEVEL=debug")
	lab.Must(t, err)
	p.removedAfter(t)
	runScenarios(t, p, 101, scenarios())
	asking, err := installPlugin(machineEngine, remote, prefix+"asking:v1", binary, "BERTH_LOG_LEVEL=debug", askMAC)
	lab.Must(t, err)
	asking.removedAfter(t)
	runScenarios(t, asking, 115, byMACs())
}

func runScenarios(t *testing.T, b Berth, first int, all []scenario) {
	for i, s := range all {
		if _, managed := b.(*Plugin); managed && testing.Short() && !slices.Contains(waysIn, s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			if !strings.HasPrefix(s.name, "killed") { // these end the Berth of all, before the others begin
				t.Parallel()
			}
			h := enter(t, machineEngine, b, first+i)
			h.shares = true
			s.run(h)
		})
	}
}

// registry starts a registry for one test.
func registry(t *testing.T) *Registry {
	t.Helper()
	r, err := startRegistry("registry-" + t.Name())
	lab.Must(t, err)
	t.Cleanup(func() {
		lab.Check(t, r.Stop())
	})
	return r
}
