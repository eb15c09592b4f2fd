//go:build engine

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The worker is ready when a file is there that the database writes once it runs; the services tell in a directory of
// the host what they do, a line each.
const workedFile = `
x-berth: {update: {watch: 1s-60s, canary_watch: 1s-60s}}
services:
  web:
    image: ${image}
    command: ${run}
    environment: {ROUND: "${round}"}
    networks: [front]
    volumes: ["${told}:/told", /kept]
    depends_on: {migrate: {condition: service_completed_successfully}, once: {condition: service_completed_successfully}}
    deploy: {replicas: 2}
    x-berth:
      drain: {command: [sh, -c, "echo drain >>/told/all; ${drain}"], timeout: 20s}
  side:
    image: ${image}
    command: ${run}
    network_mode: "service:db"
  once:
    image: ${image}
    command: ["sh", "-c", "echo once >>/told/all"]
    networks: [front]
    volumes: ["${told}:/told"]
  migrate:
    image: ${image}
    command: ["sh", "-c", "echo migrate ${migrate} >>/told/all; exit ${exit}"]
    networks: [front]
    volumes: ["${told}:/told"]
    depends_on: [db]
    x-berth: {worker: true}
  db:
    image: ${image}
    command: ["sh", "-c", "trap 'exit 0' TERM; echo db >>/told/all; while :; do sleep 1000 & wait; done"]
    environment: {ROUND: "${dbround}"}
    networks: [front]
    volumes: ["${told}:/told", "data:/data"]
    x-berth:
      snapshot: {command: [sh, -c, 'echo snapshot $$BERTH_INSTANCE >>${told}/all; test -e $$BERTH_VOLUME_DATA/mine'], timeout: 20s}
volumes:
  data: {name: "${project}-data"}
networks:
  front:
    name: ${project}
    driver_opts: {com.docker.network.bridge.name: "${bridge}"}
    ipam: {driver: "${driver}", options: {network: "${planned}"}, config: [{subnet: "${subnet}"}]}
`

// Workers run behind what they need and before what needs them, and are gone afterwards with their addresses; alone
// they are no change. Containers are drained before they are stopped, and their volumes saved after that; where either
// fails they go on. What uses another one's network goes with it, and volumes without a name go over (BD-6, BD-8,
// BO-11).
func TestDeployWorked(t *testing.T) {
	eachGeneration(t, newer, "worked", enterPlanned, 225, func(h *House, command []string) {
		w := &worked{House: h, told: h.TempDir(), planned: h.plan("--subnet", h.v4("0/24")+",pool"),
			says: map[string]string{"round": "1", "dbround": "1", "migrate": "1", "exit": "0", "drain": "true"}}
		w.goes(command)
	})
}

// worked is a project with workers and hooks.
type worked struct {
	*House
	p       *project
	told    string // where its services tell what they do
	planned string
	says    map[string]string
}

// set writes the file anew, with some of it otherwise.
func (w *worked) set(pairs ...string) {
	w.Helper()
	for i := 0; i < len(pairs); i += 2 {
		w.says[pairs[i]] = pairs[i+1]
	}
	all := map[string]string{"planned": w.planned, "subnet": w.v4("0/24"), "told": w.told}
	for key, value := range w.says {
		all[key] = value
	}
	if w.p == nil {
		w.p = w.newProject(workedFile, all)
	} else {
		w.p.write(workedFile, all)
	}
}

// lines are what was told since the last time.
func (w *worked) lines() []string {
	w.Helper()
	file := filepath.Join(w.told, "all")
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		w.Fatal(err)
	}
	if err := os.RemoveAll(file); err != nil {
		w.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// wants compares what was told.
func (w *worked) wants(what string, want ...string) {
	w.Helper()
	if got := w.lines(); !slices.Equal(got, want) {
		w.Errorf("%s: it tells %q, want %q", what, got, want)
	}
}

// fails deploys, which is to fail with some words.
func (w *worked) fails(words ...string) {
	w.Helper()
	said, code := w.p.deploy("apply", "--yes")
	if code != 1 {
		w.Errorf("it ends with %d:\n%s", code, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			w.Errorf("it says nothing of %q:\n%s", word, said)
		}
	}
}

// noWorker wants that nothing is left of the worker.
func (w *worked) noWorker() {
	w.Helper()
	if id := w.p.containerOf("migrate", 1); id != "" {
		w.Errorf("the worker is there still: %s", id)
	}
	if all := w.reserved(w.planned, w.p.name+"/migrate/1"); len(all) > 0 {
		w.Errorf("for the worker %v is reserved", all)
	}
}

func (w *worked) goes(command []string) {
	w.set()
	p := w.p
	p.command = command
	p.deploys()
	w.wants("made", "db", "migrate 1", "once")
	w.noWorker()
	p.plans(0, "nothing to do")
	side, db := p.containerOf("side", 1), p.containerOf("db", 1)

	w.set("round", "2")
	p.docker("exec", p.containerOf("web", 1), "sh", "-c", "echo mine >/kept/file")
	p.plans(2, "run", p.name+"/migrate/1", "2 to recreate")
	p.deploys()
	w.wants("web has changed", "migrate 1", "drain", "drain")
	if kept := p.docker("exec", p.containerOf("web", 1), "busybox", "cat", "/kept/file"); kept != "mine" {
		w.Errorf("the volume without a name has %q", kept)
	}
	w.noWorker()

	w.set("migrate", "2", "exit", "3")
	w.fails("migrate/1: it ended with exit code 3")
	w.wants("the worker fails", "migrate 2")
	w.noWorker()
	w.set("exit", "0")
	p.deploys()
	w.wants("the worker alone has changed", "migrate 2")
	p.plans(0)

	before := p.ids()
	w.set("round", "3", "drain", "echo it is busy; exit 4")
	w.fails("it was not drained, and continues: it ended with exit code 4; it said \"it is busy\"")
	w.wants("a drain fails", "migrate 2", "drain")
	if after := p.ids(); !slices.Equal(before, after) {
		w.Errorf("a drain fails, and there are %v, not %v", after, before)
	}
	w.set("round", "2", "drain", "true")
	w.snapshots(db, side)
	w.oneOff()
	p.run("down", "--volumes", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// snapshots: what the files say of the database changes; at first its volume cannot be saved.
func (w *worked) snapshots(db, side string) {
	w.Helper()
	p := w.p
	p.deploys() // the drain of before is none of a container's configuration: what changes is at most the round
	w.lines()
	w.set("dbround", "2")
	w.fails("no snapshot was taken, and it is as it was", "exit status 1")
	w.wants("a snapshot fails", "migrate 2", "snapshot "+p.name+"/db/1", "db")
	if now := p.containerOf("db", 1); now != db {
		w.Errorf("a snapshot fails, and the database is %s, not %s", now, db)
	}
	for _, id := range []string{db, side} {
		if p.docker("inspect", "--format", "{{.State.Running}}", id) != "true" {
			w.Errorf("a snapshot fails, and %s does not run", id)
		}
	}
	p.docker("exec", db, "sh", "-c", "echo mine >/data/mine")
	p.deploys()
	w.wants("the database has changed", "migrate 2", "snapshot "+p.name+"/db/1", "db")
	now := p.containerOf("db", 1)
	if now == db || p.containerOf("side", 1) == side {
		w.Errorf("the database was %s and is %s, with %s", db, now, side)
	}
	mode := p.docker("inspect", "--format", "{{.HostConfig.NetworkMode}}", p.containerOf("side", 1))
	if mode != "container:"+now {
		w.Errorf("the network of the database is that of %s", mode)
	}
	p.plans(0)
}

// oneOff: what `compose run` has left is deleted once it has ended.
func (w *worked) oneOff() {
	w.Helper()
	p := w.p
	name := p.name + "-run"
	p.run("run", "--no-deps", "--name", name, "web", "sh", "-c", "exit 0")
	p.plans(2, "delete", name, "1 to delete")
	p.deploys()
	if left := p.docker("ps", "--all", "--quiet", "--filter", "name="+name); left != "" {
		w.Errorf("what `compose run` has left is there still: %s", left)
	}
	ids := p.ids()
	p.plans(0)
	p.run("up", "--detach")
	again := p.ids()
	for _, id := range ids {
		if !slices.Contains(again, id) {
			w.Errorf("`up` makes %v of %v", again, ids)
		}
	}
	// Compose makes its worker, of which it knows no better; the next deploy ends it.
	p.plans(2, fmt.Sprintf("delete    %s/migrate/1", p.name))
	p.deploys()
	w.noWorker()
	p.plans(0)
}
