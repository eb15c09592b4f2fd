//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth/test/lab"
)

// dockerNetwork is a network as the engine shows it.
type dockerNetwork struct {
	ID, Driver string
	Internal   bool
	IPAM       struct {
		Driver string
		Config []struct{ Subnet, Gateway, IPRange string }
	}
	Options, Labels map[string]string
}

func (h *Harness) dockerNetwork(name string) (n dockerNetwork) {
	h.Helper()
	lab.Must(h, json.Unmarshal([]byte(h.docker("network", "inspect", "--format", "{{json .}}", name)), &n))
	return n
}

// places returns address and gateway of containers on a network, and whether they run.
func (h *Harness) places(network string, containers ...string) map[string]string {
	h.Helper()
	all := map[string]string{}
	for _, name := range containers {
		all[name] = h.docker("inspect", "--format", `{{with index .NetworkSettings.Networks "`+network+
			`"}}{{.IPAddress}} {{.GlobalIPv6Address}} {{.Gateway}} {{.IPv6Gateway}}{{end}} {{.State.Running}}`, name)
	}
	return all
}

// isOut checks that a network is on the engine's own IPAM and otherwise unchanged.
func (h *Harness) isOut(name string, was dockerNetwork) {
	h.Helper()
	is := h.dockerNetwork(name)
	if is.IPAM.Driver != "default" || is.ID == was.ID {
		h.Errorf("%s is of the IPAM driver %s", name, is.IPAM.Driver)
	}
	delete(was.Labels, "com.docker.compose.config-hash")
	for i := range is.IPAM.Config {
		if i < len(was.IPAM.Config) && was.IPAM.Config[i].Gateway == "" {
			is.IPAM.Config[i].Gateway = "" // its containers use it, but the old network did not show it
		}
	}
	if !slices.Equal(is.IPAM.Config, was.IPAM.Config) || is.Driver != was.Driver || is.Internal != was.Internal ||
		!maps.Equal(is.Options, was.Options) || !maps.Equal(is.Labels, was.Labels) {
		h.Errorf("%s was\n%+v\nand is\n%+v", name, was, is)
	}
}

// leaves runs berth leave, with its notes in a directory of the test.
func (h *Harness) leaves(notes string, args ...string) string {
	h.Helper()
	return h.berth(slices.Concat([]string{"leave", "--docker-host", h.Engine.URL(), "--note-dir", notes}, args)...)
}

// A network with containers of every kind goes back to the engine's own IPAM. Each container keeps its address there,
// also after its next start, and Berth keeps nothing of the network.
func TestLeave(t *testing.T) {
	t.Parallel()
	h, _ := witnessed(t, 183)
	notes := t.TempDir()
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("64/26"), "--gateway", h.v4("3"), "--ipv6", "--subnet",
		h.v6("/64"), "--label", "site=a")
	web := h.container(n, "--network-alias", "www")
	own := h.container(n, "--ip", h.v4("99"))
	stopped := h.container(n)
	h.seen(h.address(stopped, n), stopped)
	had := h.places(n, web, own, stopped)
	h.docker("stop", "--time", "1", stopped)
	was := h.dockerNetwork(n)
	if out := h.leaves(notes, n, "--dry-run"); !strings.Contains(out, web+" would be connected to "+n+" with ") {
		t.Error(out)
	}
	if is := h.dockerNetwork(n); is.ID != was.ID {
		t.Error("a dry run made the network anew")
	}
	t.Log(h.leaves(notes, n, "--yes"))
	h.isOut(n, was)
	if left := h.leased(); len(left) > 0 {
		t.Errorf("Berth has %v still", left)
	}
	h.docker("start", stopped)
	h.docker("restart", "--time", "1", web)
	if now := h.places(n, web, own, stopped); !maps.Equal(had, now) {
		t.Errorf("they had\n%v\nand have\n%v", had, now)
	}
	if _, _, aliases := h.asks(web, n); !slices.Contains(aliases, "www") {
		t.Errorf("%s has the aliases %v", web, aliases)
	}
	h.berthRefuses([]string{"this Berth gives addresses to no Docker network"}, "leave", n, "--yes",
		"--docker-host", h.Engine.URL(),
		"--note-dir", notes)
}

// TestLeaveCarries: Docker's own IPAM keeps what it can of a plan: a pool, devices, exclusions, and what is reserved
// for nobody on the network, also outside the pool. The next container gets the address that it would have got before.
func TestLeaveCarries(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 159)
	planned := d.Name + "-carried"
	subnet := fmt.Sprintf("%s,gateway=%s,pool=%s", h.v4("0/24"), h.v4("1"), h.v4("128/25"))
	h.berth("network", "create", planned, "--subnet", subnet)
	h.berth("address", "take", planned, "--owner", "nas", "--ip", h.v4("129"))
	h.berth("reservation", "add", planned, "--owner", "db", "--ip", h.v4("130"))
	h.berth("reservation", "add", planned, "--owner", "later", "--ip", h.v4("20"))
	h.berth("exclusion", "add", planned, h.v4("131")+"-"+h.v4("133"))
	n := h.network("--ipam-opt", "network="+planned, "--subnet", h.v4("0/24"))
	h.hasAddress(h.container(n), n, h.v4("128"))
	h.leaves(t.TempDir(), n, "--yes")
	var is struct {
		IPAM struct {
			Config []struct {
				IPRange            string
				AuxiliaryAddresses map[string]string
			}
		}
	}
	lab.Must(t, json.Unmarshal([]byte(h.docker("network", "inspect", "--format", "{{json .}}", n)), &is))
	got := is.IPAM.Config[0]
	if aux := got.AuxiliaryAddresses; got.IPRange != h.v4("128/25") || len(aux) != 6 || aux["nas"] != h.v4("129") ||
		aux["db"] != h.v4("130") || aux["later"] != h.v4("20") {
		t.Errorf("Docker has %+v", got)
	}
	h.isAt(h.container(n), n, h.v4("134"))
}

// killAfter kills a program that prints its steps, a line each, once it has printed the given one. It is at most one
// step further then: the pipe holds one write, which killAfter does not read.
func (h *Harness) killAfter(step int, name string, args ...string) {
	h.Helper()
	var ends [2]int
	lab.Must(h, unix.Pipe2(ends[:], unix.O_DIRECT|unix.O_CLOEXEC))
	said, out := os.NewFile(uintptr(ends[0]), "said"), os.NewFile(uintptr(ends[1]), "out")
	defer func() { _ = said.Close() }() // only read from
	if _, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		h.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout = out
	lab.Must(h, cmd.Start())
	_ = out.Close() // the program has its own copy
	line := make([]byte, os.Getpagesize())
	for range step {
		if _, err := said.Read(line); err != nil {
			break // it has ended: what it left shows how far it came
		}
	}
	saying := []unix.PollFd{{Fd: int32(ends[0]), Events: unix.POLLIN}}
	for err := error(unix.EINTR); err == unix.EINTR; { // a signal of the Go runtime may interrupt it
		_, err = unix.Poll(saying, 60_000)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
}

// If `berth leave` is killed after any of its steps, the next run finishes it and removes its notes. With --keep the
// plan stays.
func TestLeaveKilled(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 184)
	const last = 4 // off, off, recreated, on, on
	for after := range last + 1 {
		if testing.Short() && after%2 == 0 {
			continue // killed after the first container is off, and once the network is recreated
		}
		notes := t.TempDir()
		planned := h.plan("--subnet", h.v4("0/24")+",pool,gateway="+h.v4("1"))
		n := h.network("--subnet", h.v4("0/24"), "--ipam-opt", "network="+planned)
		a, b := h.container(n), h.container(n)
		had, was := h.places(n, a, b), h.dockerNetwork(n)
		h.killAfter(after, binary, "--admin-socket", d.AdminSocket(), "leave", n, "--yes", "--keep", "--docker-host",
			h.Engine.URL(), "--note-dir", notes)
		switch left, err := filepath.Glob(filepath.Join(notes, "*")); {
		case err == nil && len(left) == 1:
			h.leaves(notes, n, "--yes")
		case err != nil || after < last: // it may have ended after its last step, before the kill
			t.Fatalf("killed after step %d it has left %v (%v)", after, left, err)
		}
		h.isOut(n, was)
		if now := h.places(n, a, b); !maps.Equal(had, now) {
			t.Errorf("killed after step %d: they had\n%v\nand have\n%v", after, had, now)
		}
		if left, err := filepath.Glob(filepath.Join(notes, "*")); err != nil || len(left) != 0 {
			t.Errorf("it has left %v (%v)", left, err)
		}
		if h.show(planned).Name != planned {
			t.Errorf("the plan is gone")
		}
		h.docker("rm", "--force", a, b)
		h.removes(n)
		h.berth("network", "rm", planned, "--force")
	}
}

const leaveFile = `
services:
  db:
    image: ${image}
    command: ${run}
    ${mac}
    networks:
      lan: {ipv4_address: "${db}", aliases: [postgres]}
  web:
    image: ${image}
    command: ${run}
    networks: [lan]
  worker:
    image: ${image}
    command: ${run}
    networks: [lan]
networks:
  lan:
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {${ipam} config: [{subnet: "${subnet}"}]}
`

// A Compose project leaves Berth while its containers run. With the override file of berth leave, Compose recreates
// its containers once, with their addresses. Afterwards `up` recreates nothing.
func TestLeaveProject(t *testing.T) {
	eachGeneration(t, older, 185, func(h *Harness, command []string) {
		notes := h.TempDir()
		variables := map[string]string{"db": h.v4("80"), "subnet": h.v4("0/24"), "ipam": "driver: " + h.Berth.Driver() + ","}
		variables["mac"] = ""
		if command[0] == "docker-compose" || !compose1.there() { // API 1.41 has no MAC of an endpoint, which the newer one sets
			variables["mac"] = `mac_address: "02:42:0a:00:00:99"`
		}
		p := h.newProject(leaveFile, variables)
		p.command = command
		p.run("up", "--detach", "--scale", "worker=2")
		had, ids, was := p.everywhere(), p.ids(), h.dockerNetwork(p.name+"_lan")
		args := []string{p.name, "--yes"}
		if variables["mac"] != "" && !keepsMACs() {
			args = append(args, "--lose-mac")
		}
		said := h.leaves(notes, args...)
		h.Log(said)
		h.isOut(p.name+"_lan", was)
		if now := p.everywhere(); !maps.EqualFunc(had, now, maps.Equal[map[string]string]) || !slices.Equal(ids, p.ids()) {
			h.Errorf("they had\n%v\nand have\n%v", had, now)
		}
		if left := h.leased(); len(left) > 0 {
			h.Errorf("Berth has %v still", left)
		}
		db := p.containerOf("db", 1)
		p.docker("restart", "--time", "1", db)
		mac := p.docker("inspect", "--format", "{{range .NetworkSettings.Networks}}{{.MacAddress}}{{end}}", db)
		if variables["mac"] != "" && keepsMACs() && mac != "02:42:0a:00:00:99" {
			h.Errorf("the MAC that was asked for is %s now", mac)
		}
		if !strings.Contains(said, "remove driver and options from the ipam of the network lan in "+p.files[0]) {
			h.Error("it does not say what is to go out of the file")
		}
		variables["ipam"] = ""
		override := filepath.Join(filepath.Dir(p.files[0]), "berth.override.yaml")
		text, err := os.ReadFile(override)
		lab.Must(h, err)
		h.Log(string(text))
		p.write(leaveFile, variables)
		p.run("up", "--detach", "--scale", "worker=2")
		if !slices.Equal(ids, p.ids()) {
			h.Error("up without the file that was written made containers anew")
		}
		override = filepath.Join(filepath.Dir(p.files[0]), "berth.override.yaml")
		lab.Must(h, os.WriteFile(override, text, 0o600))
		p.files = append(p.files, override)
		p.run("up", "--detach", "--scale", "worker=2")
		if now := p.everywhere(); !maps.EqualFunc(had, now, maps.Equal[map[string]string]) {
			h.Errorf("recreated they had\n%v\nand have\n%v", had, now)
		}
		ids = p.ids()
		p.run("up", "--detach", "--scale", "worker=2")
		if !slices.Equal(ids, p.ids()) {
			h.Error("up made containers anew")
		}
		h.isOut(p.name+"_lan", was)
		p.run("down", "--timeout", "1")
	})
}
