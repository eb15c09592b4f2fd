//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const recordedFile = `
version: "3.9"
services:
  web:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: [front]
    deploy: {replicas: 5, update_config: {parallelism: 2}}
  db:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: [front]
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// What a deploy asks of the engine, written down by a proxy before it: a plan changes nothing; each replica is stopped,
// removed, made and started by itself, and no more of a service are away at once than may be in flight (BD-2, BD-8).
func TestDeployRecorded(t *testing.T) {
	eachGeneration(t, newer, "record", enterPlanned, 205, recorded)
}

func recorded(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	p := h.newProject(recordedFile, map[string]string{"planned": planned, "subnet": h.v4("0/24"), "round": "one"})
	p.command = command
	r, err := startRecorder(h.TempDir(), p.Engine.Socket)
	if err != nil {
		h.Fatal(err)
	}
	defer r.Close()
	through := []string{"--docker-host", "unix://" + r.Socket}
	plan := func(want int) {
		h.Helper()
		if said, code := p.deploy("plan", through...); code != want {
			h.Errorf("the plan ends with %d, and %d was to come:\n%s", code, want, said)
		}
		if all := r.Writes(); len(all) > 0 {
			h.Errorf("a plan asks the engine for %v", all)
		}
	}
	apply := func() []Write {
		h.Helper()
		if said, code := p.deploy("apply", append(through, "--yes")...); code != 0 {
			h.Fatalf("the deploy ends with %d:\n%s", code, said)
		}
		return r.Writes()
	}
	plan(2)
	first := apply()
	if made := count(first, "create"); made != 6 || count(first, "stop")+count(first, "remove") > 0 {
		h.Errorf("a new project is made by %v", first)
	}
	plan(0)
	p.write(recordedFile, map[string]string{"planned": planned, "subnet": h.v4("0/24"), "round": "two"})
	plan(2)
	all := apply()
	oneByOne(h, all, []string{"db/1", "web/1", "web/2", "web/3", "web/4", "web/5"}, map[string]int{"web": 2, "db": 1})
	plan(0)
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

func count(all []Write, do string) (n int) {
	for _, w := range all {
		if w.Do == do {
			n++
		}
	}
	return n
}

// oneByOne wants each container exchanged by steps of its own, and of each service no more away at once than so many.
func oneByOne(h *House, all []Write, owners []string, most map[string]int) {
	h.Helper()
	stage := map[string]string{} // how far each is
	before := map[string]string{"stop": "", "remove": "stop", "create": "remove", "start": "create"}
	away := map[string][]string{}
	reached := map[string]int{}
	for i, w := range all {
		from, known := before[w.Do]
		if !known || w.Owner == "" {
			continue
		}
		if stage[w.Owner] != from {
			h.Errorf("write %d: %s of %s comes after %q of it:\n%s", i, w.Do, w.Owner, stage[w.Owner], listed(all))
		}
		stage[w.Owner] = w.Do
		service, _, _ := strings.Cut(w.Owner, "/")
		switch w.Do {
		case "stop":
			away[service] = append(away[service], w.Owner)
			reached[service] = max(reached[service], len(away[service]))
		case "start":
			away[service] = slices.DeleteFunc(away[service], func(o string) bool { return o == w.Owner })
		}
	}
	for _, owner := range owners {
		if stage[owner] != "start" {
			h.Errorf("the last of %s is %q:\n%s", owner, stage[owner], listed(all))
		}
	}
	for service, n := range most {
		if reached[service] == 0 || reached[service] > n {
			h.Errorf("of %s %d were away at once, and %d may be:\n%s", service, reached[service], n, listed(all))
		}
	}
}

func listed(all []Write) string {
	var b strings.Builder
	for _, w := range all {
		fmt.Fprintf(&b, "  %s %s\n", w.Do, w.Owner)
	}
	return b.String()
}
