//go:build engine

package engine

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// absence is a way to run Berth, and how it goes away there.
type absence struct {
	way      string
	berth    Berth
	crash    func() error // SIGKILL, after which it is started again by whoever does so in this way
	gone     func() error // it ends for good
	back     func() error // it runs again after that
	restarts string       // who starts it after a crash
}

// What a Berth that is away costs in each way to run it: containers that run go on and reach one another, a start in
// the midst of a crash waits, and one while it is gone for good is refused in the end; nothing is given twice.
// docs/hangs.md has the seconds of a run. (systemd is in test/machine.)
func TestAbsence(t *testing.T) {
	t.Parallel()
	for i, way := range []struct {
		name string
		make func(*testing.T) absence
	}{{"daemon", absentDaemon}, {"container", absentContainer}, {"managed plugin", absentPlugin}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			a := way.make(t)
			a.way = way.name
			a.measure(enter(t, machineEngine, a.berth, 160+i))
		})
	}
}

func absentDaemon(t *testing.T) absence {
	d := daemon(t, "absent", pluginDir)
	var revived sync.WaitGroup
	t.Cleanup(revived.Wait)
	crash := func() error { // a supervisor is as fast as a person who looks: after the engine's first try
		if err := d.Kill(); err != nil {
			return err
		}
		revived.Go(func() {
			time.Sleep(2 * time.Second) // which is what is measured, not waited for
			if err := d.Revive(); err != nil {
				t.Error(err)
			}
		})
		return nil
	}
	return absence{berth: d, restarts: "a supervisor after two seconds", crash: crash, gone: d.Stop,
		back: d.Revive}
}

func absentContainer(t *testing.T) absence {
	c := startContained(t, prefix+"absent-c", "--restart", "always")
	crash := func() error {
		out, err := machineEngine.Docker("inspect", "-f", "{{.State.Pid}}", c.name)
		if err != nil {
			return err
		}
		var pid int
		if _, err := fmt.Sscan(out, &pid); err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	gone := func() error {
		_, err := machineEngine.Docker("stop", "--time", "5", c.name)
		return err
	}
	return absence{berth: c, restarts: "the engine (--restart always)", crash: crash, gone: gone,
		back: c.Revive}
}

func absentPlugin(t *testing.T) absence {
	name := prefix + "absent:latest"
	if err := makePlugin(machineEngine, name, binary); err != nil {
		t.Fatal(err)
	}
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}
	return absence{berth: p, restarts: "the engine", crash: p.Kill, gone: p.Disable,
		back: p.Enable}
}

// again runs a container. If the connection broke within a call, the engine repeats that call with an empty body. Berth
// refuses it and says to do it again, as is done here, once.
func again(h *House, network string) string {
	h.Helper()
	name := h.name()
	_, err := h.Engine.Docker(containerCommand(name, network)...)
	if err != nil && !strings.Contains(err.Error(), "do again what you did") {
		h.Fatal(err)
	}
	if err != nil {
		h.Log(err)
		return h.container(network)
	}
	return name
}

// measure goes through one absence after the other, and logs how long each command took.
func (a absence) measure(h *House) {
	h.Helper()
	runs, stops := h.network("--subnet", h.v4("0/26")), h.network("--subnet", h.v4("64/26"))
	x, y := h.container(runs), h.container(runs)
	stopped := h.container(stops)
	at := map[string]string{x: h.address(x, runs), y: h.address(y, runs)}
	reached := func(when string) {
		h.Helper()
		if err := h.called(x, at[y]); err != nil {
			h.Errorf("%s: %s does not reach %s: %v", when, x, y, err)
		}
	}

	if err := a.crash(); err != nil {
		h.Fatal(err)
	}
	var meanwhile string
	h.Logf("%s: killed, started again by %s; a container that is started then runs after %s", a.way, a.restarts,
		took(func() { meanwhile = again(h, runs) }))
	at[meanwhile] = h.address(meanwhile, runs)
	if at[meanwhile] == at[x] || at[meanwhile] == at[y] {
		h.Errorf("it was given what another one has: %v", at)
	}

	if err := a.gone(); err != nil {
		h.Fatal(err)
	}
	reached("Berth is gone")
	late := h.name()
	var wg sync.WaitGroup
	for _, command := range []struct {
		what   string
		args   []string
		failed bool
	}{
		{"docker run", containerCommand(late, runs), true},
		{"docker stop", []string{"stop", "--time", "1", stopped}, false},
	} {
		wg.Go(func() {
			var err error
			after := took(func() { _, err = h.Engine.Docker(command.args...) })
			h.Logf("%s: gone; %s ends after %s: %v", a.way, command.what, after, err)
			if (err != nil) != command.failed {
				h.Errorf("%s while Berth is gone: %v", command.what, err)
			}
		})
	}
	wg.Wait()
	reached("Berth is gone, and commands have failed")
	if err := a.back(); err != nil {
		h.Fatal(err)
	}
	for c, address := range at {
		if got := h.address(c, runs); got != address {
			h.Errorf("%s had %s and has %s", c, address, got)
		}
	}
	h.Logf("%s: back; the container that could not start runs after %s", a.way,
		took(func() { h.docker("start", late) }))
	h.docker("start", stopped)
	at[late] = h.address(late, runs)
	for c, address := range at {
		if c != late && address == at[late] {
			h.Errorf("%s and %s both have %s", c, late, address)
		}
	}
}

// took is how long something takes.
func took(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun).Round(10 * time.Millisecond)
}

// An engine that starts while Berth is away waits for it, for each network, and does without: it starts none of the
// containers there, which have nothing of anybody's when Berth is back and they are started.
func TestAbsentAtBoot(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 59)
	d := daemon(t, "boot", e.Sockets, "--docker-host", "none")
	h := enter(t, e.Engine, d, 163)
	n := h.network("--subnet", h.v4("0/24"))
	all := []string{h.container(n, "--restart", "always"), h.container(n, "--restart", "always")}
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	var err error
	after := took(func() { err = e.Start() })
	if err != nil {
		t.Fatal(err)
	}
	h.Logf("without Berth, and with one network and two containers on it, the engine starts after %s", after)
	if running := h.docker("ps", "-q", "--filter", "network="+n); running != "" {
		t.Errorf("without Berth, these run: %s", running)
	}
	if err := d.Revive(); err != nil {
		t.Fatal(err)
	}
	had := map[string]string{}
	for _, c := range all {
		h.docker("start", c)
		a := h.address(c, n)
		if other, twice := had[a]; twice {
			t.Errorf("%s and %s both have %s", other, c, a)
		}
		had[a] = c
	}
}
