//go:build engine

package engine

import (
	"slices"
	"testing"
)

// A renamed container keeps its address. Two containers that swap their names keep theirs. If the old container was
// renamed first, a new one gets the address of its name: Compose and Portainer replace containers this way.
func TestRenamed(t *testing.T) {
	t.Parallel()
	k := startKept(t, machineEngine, pluginDir, ways(machineEngine)[0], 175)
	n := k.network
	k.idlers()
	a, b := k.container(n), k.container(n)
	at, bt := k.at(a, n), k.at(b, n)
	has := func(what, container, addr string) {
		t.Helper()
		k.isAt(container, n, addr)
	}
	c := k.name()
	k.docker("rename", a, c)
	k.docker("restart", "--time", "0", c)
	has("renamed and restarted", c, at)
	k.docker("stop", "--time", "0", c)
	k.docker("rename", c, a)
	k.docker("start", a)
	has("renamed while it was stopped", a, at)
	k.docker("rename", a, c)
	k.docker("rename", b, a)
	k.docker("rename", c, b)
	k.docker("restart", "--time", "0", a)
	k.docker("restart", "--time", "0", b)
	has("swapped", a, bt)
	has("swapped", b, at)

	create := func(name string) {
		t.Helper()
		k.docker(slices.Concat([]string{"create"}, containerCommand(name, n)[2:])...)
	}
	old := k.name()
	k.docker("stop", "--time", "0", a) // Portainer
	k.docker("rename", a, old)
	create(a)
	k.docker("start", a)
	has("Portainer's recreate", a, bt)
	k.docker("rm", old)
	temporary := "0123456789ab_" + a
	k.docker("stop", "--time", "0", a) // Compose v1
	k.docker("rename", a, temporary)
	create(a)
	k.docker("start", a)
	has("Compose v1's recreate", a, bt)
	k.docker("rm", temporary)
	create(temporary) // Compose v2
	k.docker("stop", "--time", "0", a)
	k.docker("rm", a)
	k.docker("rename", temporary, a)
	k.docker("start", a)
	has("Compose v2's recreate", a, bt)
	k.docker("restart", "--time", "0", a)
	has("and a restart", a, bt)
	k.sound()
}
