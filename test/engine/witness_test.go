//go:build engine

package engine

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The witness supplies the names that an engine of the 20.10 line does not send: names of containers, also of renamed
// ones, and Compose's projects and services.
func TestWitnessNames(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 41)
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	if l := h.seen(a, c); l.SeenBy.Network != n {
		t.Errorf("%s is shown as %+v", a, l)
	}
	if out := h.berth("lease", "ls"); !strings.Contains(out, c) {
		t.Errorf("berth lease ls does not show %s:\n%s", c, out)
	}
	renamed := h.name()
	h.docker("rename", c, renamed)
	h.seen(a, renamed)
	if out := h.berth("lease", "ls"); !strings.Contains(out, renamed) || strings.Contains(out, c+" ") {
		t.Errorf("berth lease ls after docker rename %s %s:\n%s", c, renamed, out)
	}

	project := h.name()
	file := h.composeFile(fmt.Sprintf(`
services:
  web:
    image: %s
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done"]
networks:
  default: {external: true, name: %s}
`, imageName, n))
	h.compose(file, project, "up", "--detach")
	web := project + "_web_1"
	at := h.address(web, n)
	if l := h.seen(at, web); l.SeenBy.Project != project || l.SeenBy.Service != "web" {
		t.Errorf("%s is shown as %+v", at, l)
	}
	if out := h.berth("lease", "ls", "--format", "wide"); !strings.Contains(out, project) || !strings.Contains(out, "web") {
		t.Errorf("berth lease ls --format wide:\n%s", out)
	}
	h.compose(file, project, "down", "--timeout", "1")
	h.finds()
}

// On a healthy host a check finds nothing: with both families, planned or not, with auxiliary addresses, and with
// containers that do not run.
func TestCheckHealthy(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 43)
	n := h.network("--ipv6", "--subnet", h.v4("0/25"), "--subnet", h.v6("::/64"), "--aux-address", "router="+h.v4("7"),
		"--ip-range", h.v4("64/26"))
	front := h.plan("--subnet", h.v4("128/25")+",pool")
	p := h.on(front)
	for _, network := range []string{n, p} {
		h.container(network)
		h.docker("stop", h.container(network))
		h.docker("create", "--network", network, "--name", h.name(), imageName, "sh")
	}
	both := h.container(n)
	h.docker("network", "connect", p, both)
	h.docker("pause", both)
	h.finds()
	if r := h.check("--repair"); r.Repaired != 0 || len(r.Findings) != 0 {
		t.Errorf("berth check --repair: %+v", r)
	}
	if out := h.berth("check"); !strings.Contains(out, "nothing is wrong") {
		t.Errorf("berth check: %s", out)
	}
}

// The daemon reads no engine. `berth witness` reports what runs: the names and the data for a check. Without a witness
// a check reads the engine itself.
func TestWitnessBeside(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 44, "--docker-host", "none")
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	// The daemon does not read the engine, and the check may not, either.
	if r, out, err := check(d, "--docker-host", "none"); err == nil || r.Engine != "none" || len(r.Findings) != 0 {
		t.Errorf("berth check without an engine: %s (%v)", out, err)
	}
	if l := h.lease(a); l.SeenBy.Container != "" {
		t.Errorf("nobody has looked, and %s is shown as %+v", a, l)
	}
	here := []string{"--docker-host", machineEngine.URL()} // the daemon reports its own name in the engine
	if r := h.check(here...); len(r.Findings) != 0 {
		t.Errorf("berth check --docker-host: %+v", r)
	}

	witnessBeside(t, d, append([]string{"--every", "1s"}, here...)...)
	h.seen(a, c)
	renamed := h.name()
	h.docker("rename", c, renamed)
	h.seen(a, renamed)
	other := h.container(n)
	h.seen(h.address(other, n), other)
	h.finds() // with the witness's reports

	// A restarted daemon learns the name again.
	lab.Must(t, d.Kill(), d.Revive())
	h.seen(a, renamed)

	// A leak is found and repaired with the witness's reports.
	leaked, err := takeByHand(d.PluginSocket(), h.lease(a).Pool, "", "02:62:74:00:44:01")
	lab.Must(t, err)
	h.healsSoon("unused_lease "+leaked, "--docker-host", "none")
	h.seen(a, renamed)
}

// healsSoon waits until `berth check --repair` has repaired one finding, and checks that there is no other.
func (h *Harness) healsSoon(want string, args ...string) {
	h.Helper()
	healed := false
	lab.Await(h, time.Minute, func() error {
		r := h.check(append([]string{"--repair"}, args...)...)
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Kind+" "+f.at() != want {
				h.Fatalf("besides %s there is %+v", want, f)
			}
			healed = healed || f.Repaired
		}
		if !healed || len(r.left()) > 0 {
			return fmt.Errorf("%s is not put right: %+v", want, r)
		}
		return nil
	})
	if left := h.check(args...).left(); len(left) != 0 {
		h.Errorf("after %s was put right: %v", want, left)
	}
}

// A managed plugin may not read the engine. A check on its host finds out its name there.
func TestCheckManaged(t *testing.T) {
	t.Parallel()
	name := prefix + "checked:latest"
	lab.Must(t, makePlugin(machineEngine, name, binary))
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	p.AsksMAC = true
	if _, err := machineEngine.Docker("plugin", "set", name, askMAC); err != nil {
		t.Fatal(err)
	}
	lab.Must(t, p.Enable())
	h := enter(t, machineEngine, p, 45)
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	h.finds()
	// Without the engine's knowledge the container loses its lease. A repair gives it back.
	before := h.lease(a)
	lab.Must(t, giveByHand(filepath.Join(pluginDir, p.ID, "berth.sock"), before.Pool, a))
	// An engine shows an endpoint a moment longer than it has the address, so a view counts some seconds after a release.
	// The first view from outside the daemon may be outdated. It counts when a second view shows the same.
	h.finds()
	lab.Await(t, 20*time.Second, func() error {
		all := h.check().Findings
		if len(all) == 0 {
			return errors.New("the address is not missed")
		}
		if f := all[0]; len(all) > 1 || f.Kind != "uncovered_address" || f.at() != a || f.Owner != c || f.MAC != before.MAC {
			t.Fatalf("found: %+v", all)
		}
		return nil
	})
	h.healsSoon("uncovered_address " + a)
	if l := h.lease(a); l.MAC != before.MAC || l.Pool != before.Pool {
		t.Errorf("it was %+v and is %+v", before, l)
	}
	h.finds()

	witnessBeside(t, p)
	h.seen(a, c)
}
