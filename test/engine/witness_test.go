//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/ground"
)

// The names that an engine of the 20.10 line does not send come from the witness: those of containers, also of renamed
// ones, and the projects and services of Compose.
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

// Tenure is what the tests read of `berth who --format json`.
type Tenure struct {
	Address, What, Name, MAC, Host string
	From, Until                    time.Time
}

func (h *House) who(args ...string) (all []Tenure) {
	h.Helper()
	out := h.berth(append([]string{"who", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		h.Fatalf("berth who %v: %v: %s", args, err, out)
	}
	return all
}

// Who has an address and who had it, since when and until when: by its name, by the address and by the MAC.
func TestWitnessWho(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 42)
	n := h.network("--subnet", h.v4("0/24"))
	begin := time.Now()
	first := h.container(n, "--ip", h.v4("50"))
	mac := h.seen(h.v4("50"), first).MAC
	running := time.Now()
	if got := h.who(first); len(got) != 1 || got[0].Address != h.v4("50") || got[0].MAC != mac ||
		got[0].From.Before(begin) || !got[0].Until.IsZero() {
		t.Errorf("berth who %s: %+v", first, got)
	}
	h.docker("rm", "-f", first)
	ended := time.Now()
	second := h.container(n, "--ip", h.v4("50"))
	h.seen(h.v4("50"), second)

	got := h.who(h.v4("50"))
	if len(got) != 2 || got[0].Name != first || got[1].Name != second || got[0].MAC != mac {
		t.Fatalf("berth who %s: %+v", h.v4("50"), got)
	}
	had, has := got[0], got[1]
	if had.From.Before(begin) || had.From.After(running) || had.Until.Before(running) || had.Until.After(ended) {
		t.Errorf("%s ran from %s to %s: %+v", first, begin, ended, had)
	}
	if has.From.Before(ended) || !has.Until.IsZero() || has.Host == "" {
		t.Errorf("%s runs since %s: %+v", second, ended, has)
	}
	for who, want := range map[string]Tenure{first: had, second: has, mac: had} {
		if got := h.who(who); !slices.Equal(got, []Tenure{want}) {
			t.Errorf("berth who %s: %+v, not %+v", who, got, want)
		}
	}
	for at, want := range map[time.Time]string{running: first, time.Now(): second} {
		if got := h.who(h.v4("50"), "--at", at.Format(time.RFC3339Nano)); len(got) != 1 || got[0].Name != want {
			t.Errorf("berth who %s --at %s: %+v, not %s", h.v4("50"), at, got, want)
		}
	}
	if got := h.who(h.v4("50"), "--at", begin.Format(time.RFC3339Nano)); len(got) != 0 {
		t.Errorf("before there was a container, %+v", got)
	}
}

// Where all is well, a check finds nothing and says so: of both families, planned and not, with auxiliary addresses,
// with containers that run and that do not.
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
	for _, args := range [][]string{{}, {"--repair"}} {
		r, out, err := check(h.Berth, args...)
		if err != nil || r.Engine != "reachable" {
			t.Errorf("berth check %v: %v: %s", args, err, out)
		}
		var shape struct {
			Findings []json.RawMessage `json:"findings"`
			Counts   map[string]int    `json:"counts"`
		}
		if err := json.Unmarshal([]byte(out), &shape); err != nil || shape.Findings == nil || len(shape.Findings) != 0 {
			t.Errorf("the findings: %v: %s", err, out)
		}
		for kind, count := range shape.Counts {
			if count != 0 {
				t.Errorf("%d %s: %s", count, kind, out)
			}
		}
		for _, kind := range []string{"unused_lease", "uncovered_address", "doubled_address", "unused_subnet"} {
			if _, counted := shape.Counts[kind]; !counted {
				t.Errorf("%s is not counted: %v", kind, shape.Counts)
			}
		}
	}
	if out := h.berth("check"); !strings.Contains(out, "nothing is wrong") {
		t.Errorf("berth check: %s", out)
	}
}

// Beside a daemon that reads no engine, `berth witness` tells what runs: names, and what a check is made of. A check
// reads the engine by itself where there is no witness.
func TestWitnessBeside(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 44, "--docker-host", "none")
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	// Nobody reads the engine, and the check may not either.
	if r, out, err := check(d, "--docker-host", "none"); err == nil || r.Engine != "none" || len(r.Findings) != 0 {
		t.Errorf("berth check without an engine: %s (%v)", out, err)
	}
	if l := h.lease(a); l.SeenBy.Container != "" {
		t.Errorf("nobody has looked, and %s is shown as %+v", a, l)
	}
	here := []string{"--docker-host", machineEngine.URL()} // what the engine calls the daemon, that says itself
	if r := h.check(here...); len(r.Findings) != 0 {
		t.Errorf("berth check --docker-host: %+v", r)
	}

	w, err := startProcess(d.Name+"-witness", nil, binary,
		append([]string{"--admin-socket", d.AdminSocket(), "witness", "--every", "1s"}, here...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Signal(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the witness's log:\n%s", w.Log())
		}
	})
	h.seen(a, c)
	renamed := h.name()
	h.docker("rename", c, renamed)
	h.seen(a, renamed)
	other := h.container(n)
	h.seen(h.address(other, n), other)
	h.finds() // through what the witness has told

	// A daemon that is started anew learns it again.
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.Revive(); err != nil {
		t.Fatal(err)
	}
	h.seen(a, renamed)

	// A leak is found, and put right, by what the witness tells.
	leaked, err := takeByHand(d.PluginSocket(), h.lease(a).Pool, "", "02:62:74:00:44:01")
	if err != nil {
		t.Fatal(err)
	}
	h.healsSoon("unused_lease "+leaked, "--docker-host", "none")
	h.seen(a, renamed)
}

// healsSoon waits until `berth check --repair` has put one thing right, and finds nothing else wrong with it.
func (h *House) healsSoon(want string, args ...string) {
	h.Helper()
	healed := false
	if err := ground.Eventually(time.Minute, func() error {
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
	}); err != nil {
		h.Fatal(err)
	}
	if left := h.check(args...).left(); len(left) != 0 {
		h.Errorf("after %s was put right: %v", want, left)
	}
}

// A managed plugin may read no engine. A check from its host finds out by itself what the plugin is called there.
func TestCheckManaged(t *testing.T) {
	t.Parallel()
	name := prefix + "checked:latest"
	if err := makePlugin(machineEngine, name, binary); err != nil {
		t.Fatal(err)
	}
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	p.AsksMAC = true
	if _, err := machineEngine.Docker("plugin", "set", name, askMAC); err != nil {
		t.Fatal(err)
	}
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}
	h := enter(t, machineEngine, p, 45)
	n := h.network("--subnet", h.v4("0/24"))
	c := h.container(n)
	a := h.address(c, n)
	h.finds()
	// Behind the engine's back the container loses its lease, and gets it again.
	before := h.lease(a)
	if err := giveByHand(filepath.Join(pluginDir, p.ID, "berth.sock"), before.Pool, a); err != nil {
		t.Fatal(err)
	}
	// The first view that the daemon did not take itself may be of before: it counts when another shows the same.
	h.finds()
	if f := h.finds("uncovered_address " + a).Findings[0]; f.Owner != c || f.MAC != before.MAC {
		t.Errorf("found: %+v", f)
	}
	h.healsSoon("uncovered_address " + a)
	if l := h.lease(a); l.MAC != before.MAC || l.Pool != before.Pool {
		t.Errorf("it was %+v and is %+v", before, l)
	}
	h.finds()

	w, err := startProcess(prefix+"checked-witness", nil, binary, "--admin-socket", p.AdminSocket(), "witness")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Signal(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Error(err)
		}
	})
	h.seen(a, c)
}
