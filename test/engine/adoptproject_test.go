//go:build engine

package engine

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// The files have the shapes that published ones have: a site and its database on the network that nobody names;
// services with names of their own, an address and two networks; and workers of which there are several.
const (
	siteFile = `
services:
  db:
    image: ${image}
    command: ${run}
    restart: always
    environment: [MYSQL_DATABASE=site]
  web:
    image: ${image}
    command: ${run}
    restart: always
    depends_on: [db]
    volumes: [data:/data]
volumes:
  data:
`
	photosFile = `
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
	queueFile = `
services:
  api:
    image: ${image}
    command: ${run}
  worker:
    image: ${image}
    command: ${run}
    scale: 3
  broker:
    image: ${image}
    command: ${run}
`
)

// A Compose project on networks of the engine's own IPAM comes to Berth by one command and the steps that it prints,
// and each of its containers has the addresses afterwards that it had before.
func TestAdoptProject(t *testing.T) {
	t.Parallel()
	h, d := witnessed(t, 181)
	h.Berth = d // which is the one that `berth adopt` names
	for name, c := range map[string]struct {
		file  string
		order []string // in which its services come, and so get their addresses
		up    []string
	}{
		"site":   {siteFile, []string{"db", "web"}, nil},
		"photos": {photosFile, []string{"database", "server", "cache"}, nil},
		"queue":  {queueFile, []string{"worker", "broker", "api"}, []string{"--scale", "worker=4"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "photos" && testing.Short() {
				t.Skip("photos has their parts but for replicas")
			}
			h := *h
			h.T = t
			h.made += 10 * len(name) // names of its own
			p := h.newProject(c.file, map[string]string{"subnet": h.v4("0/24"), "address": h.v4("77")})
			p.command = composeCommands(t)["1.29"]
			for _, service := range c.order {
				p.run(slices.Concat([]string{"up", "--detach", "--no-deps"}, scaleOf(service, c.up),
					[]string{service})...)
			}
			p.run("stop", "--timeout", "1", c.order[0]) // so that the next one is before it
			p.run("restart", "--timeout", "1", c.order[1])
			p.run("start", c.order[0])
			before := p.everywhere()
			said := h.berth("adopt", "--project", p.name)
			if again := p.everywhere(); !maps.EqualFunc(before, again, maps.Equal[map[string]string]) {
				t.Errorf("it changed Docker: it was\n%v\nand is\n%v", before, again)
			}
			p.follow(said)
			if after := p.everywhere(); !maps.EqualFunc(before, after, maps.Equal[map[string]string]) {
				t.Errorf("by these steps\n%s\nthe containers, which had\n%v\nhave\n%v", said, before, after)
			}
			for container, places := range before {
				for network := range places {
					p.address(container, network)
				}
			}
			h.finds()
			p.files = append(p.files, filepath.Join(filepath.Dir(p.files[0]), "berth.override.yaml"))
			p.run("down", "--timeout", "1", "--volumes")
		})
	}
}

// scaleOf are the flags that scale a service, where they are about that one.
func scaleOf(service string, flags []string) []string {
	if len(flags) > 0 && strings.HasPrefix(flags[1], service+"=") {
		return flags
	}
	return nil
}

// everywhere are the IPv4 addresses of the project's containers, by container and network.
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

// follow does what the lines that are indented say.
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
		ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(2*time.Minute))
		// 1.29 has no other name
		command := append([]string{"DOCKER_HOST=unix://" + p.Engine.Socket, "docker-compose"},
			words[slices.Index(words, "-p"):]...)
		_, err := run(ctx, nil, "env", command...)
		cancel()
		if err != nil {
			p.Fatal(err)
		}
	}
	if done < 3 {
		p.Fatalf("there are no steps in\n%s", said)
	}
}
