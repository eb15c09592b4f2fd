//go:build engine

package engine

import (
	"slices"
	"strings"
	"testing"
)

// A start that asks for the address of another container is refused, and leaves a container that never ran. What that
// one asks for takes the address from nobody who has it or had it last; it is given it when it is free.
func TestRefusedStart(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 174)
	n := k.network
	k.idlers()
	c := k.container(n)
	a := k.at(c, n)
	thief := k.name()
	out, err := k.Engine.Docker(containerCommand(thief, n, "--ip", a)...)
	if err == nil || !strings.Contains(out+err.Error(), c) {
		t.Fatalf("%s is started with the address of %s: %v\n%s", thief, c, err, out)
	}
	same := func(after string) {
		t.Helper()
		if got := k.at(c, n); got != a {
			t.Errorf("%s had %s, and has %s after %s", c, a, got, after)
		}
	}
	for range 3 {
		k.docker("restart", "--time", "1", c)
		same("a restart")
	}
	k.docker("kill", c)
	k.docker("start", c)
	same("a kill and a start")
	k.docker("stop", "--time", "1", c)
	if got := k.at(k.container(n), n); got == a {
		t.Errorf("a stranger has %s, for which %s asks", a, thief)
	}
	k.docker("start", c)
	same("a stop and a start")
	k.docker("stop", "--time", "1", c)
	k.docker("start", thief)
	if got := k.at(thief, n); got != a {
		t.Errorf("%s is free, and %s that asks for it has %s", a, thief, got)
	}
	k.docker("start", c)
	if got := k.at(c, n); got == a || slices.Contains([]string{"", a}, got) {
		t.Errorf("%s has %q beside %s", c, got, thief)
	}
	k.sound()
}
