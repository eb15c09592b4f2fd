//go:build engine

package engine

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// absence is a way to run Berth, with what stops and starts Berth in that way.
type absence struct {
	way      string
	berth    Berth
	crash    func() error // SIGKILL; then `restarts` starts it again
	gone     func() error // it ends for good
	back     func() error // it runs again after that
	restarts string       // who starts it after a crash
}

// Berth is gone, in each way to run it. Running containers continue and reach one another. A container that starts
// after a crash waits for the restart. While Berth stays away, a start is refused in the end. No address is given
// twice. docs/hangs.md has the measured seconds; test/machine has systemd.
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
	crash := func() error { // a supervisor is as fast as a person who looks: it comes after the engine's first try
		if err := d.Kill(); err != nil {
			return err
		}
		revived.Go(func() {
			time.Sleep(2 * time.Second) // the delay to measure; it waits for no event
			lab.Check(t, d.Revive())
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
	lab.Must(t, makePlugin(machineEngine, name, binary))
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	lab.Must(t, p.Enable())
	return absence{berth: p, restarts: "the engine", crash: p.Kill, gone: p.Disable,
		back: p.Enable}
}

// again runs a container. If the connection broke within a call, the engine repeats that call with an empty body.
// Berth refuses the repetition and says to try again. again does so once.
func again(h *Harness, network string) string {
	h.Helper()
	name := h.name()
	_, err := h.Engine.Docker(containerCommand(name, network)...)
	if err != nil && !strings.Contains(err.Error(), "repeat your command") {
		h.Fatal(err)
	}
	if err != nil {
		h.Log(err)
		return h.container(network)
	}
	return name
}

// measure goes through the absences one after the other and logs how long each command took.
func (a absence) measure(h *Harness) {
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

	lab.Must(h, a.crash())
	var meanwhile string
	h.Logf("%s: killed, started again by %s; a container that is started then runs after %s", a.way, a.restarts,
		took(func() { meanwhile = again(h, runs) }))
	at[meanwhile] = h.address(meanwhile, runs)
	if at[meanwhile] == at[x] || at[meanwhile] == at[y] {
		h.Errorf("it was given what another one has: %v", at)
	}

	lab.Must(h, a.gone())
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
	lab.Must(h, a.back())
	for c, address := range at {
		h.hasAddress(c, runs, address)
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

// took returns how long a function takes.
func took(do func()) time.Duration {
	begun := time.Now()
	do()
	return time.Since(begun).Round(10 * time.Millisecond)
}

// An engine that starts without Berth waits for it once for each network, and then starts none of the containers
// there. When Berth is back, they start with different addresses.
func TestAbsentAtBoot(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 59)
	d := daemon(t, "boot", e.Sockets, "--docker-host", "none")
	h := enter(t, e.Engine, d, 163)
	n := h.network("--subnet", h.v4("0/24"))
	all := []string{h.container(n, "--restart", "always"), h.container(n, "--restart", "always")}
	lab.Must(t, d.Stop(), e.Kill())
	var err error
	after := took(func() { err = e.Start() })
	lab.Must(t, err)
	h.Logf("without Berth, and with one network and two containers on it, the engine starts after %s", after)
	if running := h.docker("ps", "-q", "--filter", "network="+n); running != "" {
		t.Errorf("without Berth, these run: %s", running)
	}
	lab.Must(t, d.Revive())
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
