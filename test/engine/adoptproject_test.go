//go:build engine

package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// Services with their own names, a static address and two networks, as in published files.
const photosFile = `
version: "3.7"
services:
  server:
    container_name: ${project}-server
    image: ${image}
    command: ${run}
    depends_on: [cache, database]
    networks: [front, back]
  cache:
    container_name: ${project}-cache
    image: ${image}
    command: ${run}
    networks: [back]
  database:
    container_name: ${project}-database
    image: ${image}
    command: ${run}
    networks:
      back: {ipv4_address: ${address}, aliases: [postgres]}
networks:
  front:
  back:
    driver_opts: {com.docker.network.bridge.name: ${bridge}}
    ipam:
      config: [{subnet: ${subnet}}]
`

// One command, and the steps that it prints, move a Compose project from networks on the engine's own IPAM to Berth.
// Afterwards each container has its old addresses.
func TestAdoptProject(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 181)
	h.Berth = d // `berth adopt` names this one
	p := h.newProject(photosFile, map[string]string{"address": h.v4("77")})
	p.command = oldest(t)
	for _, service := range []string{"database", "server", "cache"} { // their order determines their addresses
		p.run("up", "--detach", "--no-deps", service)
	}
	p.run("stop", "--timeout", "1", "database")
	p.run("restart", "--timeout", "1", "server")
	p.run("start", "database")
	before := p.everywhere()
	said := h.berth("adopt", "--project", p.name)
	if again := p.everywhere(); !maps.EqualFunc(before, again, maps.Equal[map[string]string]) {
		t.Errorf("it changed Docker: it was\n%v\nand is\n%v", before, again)
	}
	p.follow(said)
	if after := p.everywhere(); !maps.EqualFunc(before, after, maps.Equal[map[string]string]) {
		t.Errorf("after these steps\n%s\nthe containers, which had\n%v\nhave\n%v", said, before, after)
	}
	for container, places := range before {
		for network := range places {
			p.address(container, network)
		}
	}
	h.finds()
}

// everywhere returns the IPv4 addresses of the project's containers, by container and network.
func (p *project) everywhere() map[string]map[string]string {
	p.Helper()
	all := map[string]map[string]string{}
	names := p.docker("ps", "--all", "--filter", "label=com.docker.compose.project="+p.name, "--format", "{{.Names}}")
	for _, name := range strings.Fields(names) {
		all[name] = map[string]string{}
		out := p.docker("inspect", "--format",
			"{{range $n, $e := .NetworkSettings.Networks}}{{$n}} {{$e.IPAddress}}\n{{end}}", name)
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) == 2 {
				all[name][f[0]] = f[1]
			}
		}
	}
	if len(all) < 2 {
		p.Fatalf("the project %s has %v", p.name, slices.Collect(maps.Keys(all)))
	}
	return all
}

// follow runs the indented lines.
func (p *project) follow(said string) {
	p.Helper()
	done := 0
	for line := range strings.Lines(said) {
		step, is := strings.CutPrefix(line, "  ")
		if !is {
			continue
		}
		done++
		words := strings.Fields(step)
		if words[0] == "berth" {
			p.berth(words[1:]...)
			continue
		}
		// not `docker compose`: the Compose of the test
		command := slices.Concat([]string{"DOCKER_HOST=unix://" + p.Engine.Socket}, p.command,
			words[slices.Index(words, "-p"):])
		_, err := lab.Run(2*time.Minute, nil, "env", command...)
		lab.Must(p, err)
	}
	if done < 3 {
		p.Fatalf("there are no steps in\n%s", said)
	}
}
