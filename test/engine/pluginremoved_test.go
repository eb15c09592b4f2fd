//go:build engine

package engine

import (
	"strings"
	"testing"

	"berth/test/lab"
)

// Docker removes a managed plugin that a network uses only if forced. Then the state is gone. As docs/leave.md says,
// running containers continue, none starts, and after a new installation the network can leave.
func TestPluginRemoved(t *testing.T) {
	t.Parallel()
	name := prefix + "removed:latest"
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	installed := func() {
		t.Helper()
		lab.Must(t, makePlugin(machineEngine, name, binary), p.Enable())
	}
	refused := func(why string, args ...string) {
		t.Helper()
		if _, err := machineEngine.Docker(args...); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("docker %s: %v", strings.Join(args, " "), err)
		}
	}
	p.removedAfter(t)
	installed()
	h := enter(t, machineEngine, p, 246)
	n := h.network("--subnet", h.v4("0/24"))
	was := h.dockerNetwork(n)
	runs, stopped := h.container(n), h.container(n)
	before := h.places(n, runs)
	h.docker("stop", "--time", "1", stopped)

	refused("is in use", "plugin", "rm", name)
	h.docker("plugin", "rm", "-f", name)
	refused("connect: no such file or directory", "start", stopped)
	if now := h.places(n, runs); now[runs] != before[runs] {
		t.Errorf("%s had %s and has %s", runs, before[runs], now[runs])
	}

	installed()
	refused("there is no pool", "start", stopped)
	h.leaves(t.TempDir(), n, "--yes")
	h.isOut(n, was)
	h.docker("start", stopped)
	if now := h.places(n, runs, stopped); now[runs] != before[runs] || !strings.HasSuffix(now[stopped], "true") {
		t.Errorf("%v, and then %v", before, now)
	}
}
