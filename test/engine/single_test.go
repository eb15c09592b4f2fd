//go:build engine

package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/deploy/single"
	"berth/internal/docker"
	"berth/test/ground"
)

const replicatedFile = `
version: "3.9"
services:
  web:
    image: ${image}
    command: ${run}
    networks: [back, front]
  db:
    image: ${image}
    command: ${run}
    networks: [front]
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", config: [{subnet: "${front}"}]}
  back:
    name: ${project}b
    ipam: {driver: "${driver}", config: [{subnet: "${back}"}]}
`

// composeCommands are the generations of Compose that a project may be of.
func composeCommands(t *testing.T) map[string][]string {
	t.Helper()
	newest, err := filepath.Abs("../../build/tools/compose-v5.5.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(newest); err != nil {
		t.Fatalf("%v; scripts/needs compose makes it", err)
	}
	return map[string][]string{"1.29": {"docker-compose"}, "5": {newest}}
}

// quickest is the Compose of tests for which any does, with the names of containers that the older one gives them: under
// -short the newer, which takes a tenth of the time.
func quickest(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		return append(composeCommands(t)["5"], "--compatibility")
	}
	return composeCommands(t)["1.29"]
}

// either are both generations of Compose; newer is the one that most projects have, older the one before it.
var either, newer, older = []string{"1.29", "5"}, []string{"5"}, []string{"1.29"}

// eachGeneration runs a scenario with either generation of Compose, each with a Berth and a number of its own: the
// first one and the next. Under -short it takes the given ones: both where one makes what the other is to leave alone
// (TestSingle), and else mostly the newer, which is ten times as quick.
func eachGeneration(t *testing.T, short []string, room string, enter func(*testing.T, Engine, Berth, int) *House,
	first int, run func(h *House, command []string)) {
	t.Parallel()
	for name, command := range composeCommands(t) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !slices.Contains(short, name) {
				t.Skip("not under -short")
			}
			if !testing.Short() || len(short) > 1 {
				t.Parallel()
			}
			number := map[string]int{"1.29": first, "5": first + 1}[name]
			run(enter(t, machineEngine, daemon(t, room+strings.ReplaceAll(name, ".", ""), pluginDir), number), command)
		})
	}
}

// One replica in the midst of others is made by the user's own Compose, with its number and with the addresses that are
// its own on both networks, and afterwards `up` makes nothing anew (BO-2, BD-8). What the look at it refuses does not
// run, and a container of somebody else is neither made nor started.
func TestSingle(t *testing.T) {
	eachGeneration(t, either, "single", enter, 229, oneReplica)
}

func oneReplica(h *House, command []string) {
	p := h.newProject(replicatedFile, map[string]string{"front": h.v4("0/25"), "back": h.v4("128/25")})
	p.command = command
	p.run("up", "--detach", "--scale", "web=3")
	before := p.ids()
	if len(before) != 4 {
		p.Fatalf("up makes %v", before)
	}
	second := p.containerOf("web", 2)
	p.docker("rm", "--force", second)
	dial, err := docker.Dial("unix://" + p.Engine.Socket)
	if err != nil {
		p.Fatal(err)
	}
	m := &single.Maker{Command: single.Command{Words: command, Project: p.name, Files: p.files}, Dial: dial}
	wanted := single.Replica{Service: "web", Number: 2, On: []single.Endpoint{
		{Network: p.name, Addresses: []netip.Addr{netip.MustParseAddr(p.v4("77"))}},
		{Network: p.name + "b", Addresses: []netip.Addr{netip.MustParseAddr(p.v4("177"))}},
	}}
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(2*time.Minute))
	defer cancel()
	id, err := m.Make(ctx, wanted, func(context.Context, string) error { return errors.New("it is not wanted") })
	if err == nil || !strings.Contains(err.Error(), "it is not wanted") || id == "" {
		p.Fatalf("a refused container: %q, %v", id, err)
	}
	if running := p.docker("inspect", "--format", "{{.State.Running}}", id); running != "false" {
		p.Errorf("the container that was refused runs")
	}
	p.docker("rm", "--force", id)
	var seen string
	id, err = m.Make(ctx, wanted, func(_ context.Context, id string) error { seen = id; return nil })
	if err != nil || seen != id {
		p.Fatalf("made %q, looked at %q: %v", id, seen, err)
	}
	if a, b := p.at(id, p.name), p.at(id, p.name+"b"); a != p.v4("77") || b != p.v4("177") {
		p.Errorf("replica 2 has %s and %s", a, b)
	}
	after := p.ids()
	if len(after) != 4 || !slices.Contains(after, id) || p.containerOf("web", 2) != id {
		p.Errorf("there are %v; before were %v, and made was %s", after, before, id)
	}
	p.run("up", "--detach", "--scale", "web=3")
	if again := p.ids(); !slices.Equal(again, after) {
		p.Errorf("`up` recreates: %v after %v", again, after)
	}
	p.run("down", "--timeout", "1")
}

// ids are those of the project's containers, in order.
func (p *project) ids() []string {
	p.Helper()
	all := strings.Fields(p.docker("ps", "--all", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name,
		"--format", "{{.ID}}"))
	slices.Sort(all)
	return all
}

// containerOf is the id of a replica.
func (p *project) containerOf(service string, number int) string {
	p.Helper()
	return p.docker("ps", "--all", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name, "--filter",
		"label=com.docker.compose.service="+service, "--filter",
		fmt.Sprintf("label=com.docker.compose.container-number=%d", number), "--format", "{{.ID}}")
}
