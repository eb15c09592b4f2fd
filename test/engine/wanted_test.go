//go:build engine

package engine

import (
	"fmt"
	"slices"
	"testing"
)

// An address that a container requests itself (`--ip`) is given to no other container while that one exists, also if
// it was stopped or never started, and if no other address is free. The refusal names the container. After its removal
// the address is free.
func TestWantedIsKept(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 154)
	n := k.name()
	bits := sample(0, 29, 28)
	k.docker(k.networkCommand(n, "--subnet", k.v4(fmt.Sprintf("128/%d", bits)))...)
	stopped, created := k.container(n, "--ip", k.v4("133")), k.name()
	k.docker("stop", "--time", "1", stopped)
	command := containerCommand(created, n, "--ip", k.v4("134"))
	k.docker(slices.Concat([]string{"create"}, command[2:])...)
	var others []string
	for range 1<<(32-bits) - 2 - 1 - 2 { // without the first and the last address, the gateway and those two
		others = append(others, k.container(n))
	}
	for _, c := range others {
		if a := k.at(c, n); a == k.v4("133") || a == k.v4("134") {
			t.Errorf("%s has %s, which another asks for by its own configuration", c, a)
		}
	}
	k.full(n, k.v4("133")+" by "+stopped, k.v4("134")+" by "+created)
	k.docker("start", stopped, created)
	if a, b := k.at(stopped, n), k.at(created, n); a != k.v4("133") || b != k.v4("134") {
		t.Errorf("started, they have %s and %s", a, b)
	}
	k.sound()
	for _, c := range []string{stopped, created} {
		k.docker("stop", "--time", "1", c)
		a := k.at4(c, n)
		k.full(n, a+" by "+c)
		k.docker("rm", c)
		k.isAt(k.container(n), n, a)
	}
	k.sound()
}

// at4 returns the IPv4 address that a container requests itself.
func (k *kept) at4(container, network string) string {
	k.Helper()
	format := `{{(index .NetworkSettings.Networks "` + network + `").IPAMConfig.IPv4Address}}`
	return k.docker("inspect", "-f", format, container)
}
