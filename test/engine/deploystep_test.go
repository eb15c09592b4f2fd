//go:build engine

package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The worker is ready when a file is there that the database writes once it runs. The services log their actions in a
// directory of the host, a line each.
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
` + frontNetwork

// Workers run after the services they need and before those that need them. Then they are deleted, with their
// addresses. A change of a worker alone is no change. Containers are drained before they stop, and their volumes are
// saved after that. If either fails, they continue. A container on another container's network is recreated with it,
// and unnamed volumes are kept (BD-6, BD-8, BO-11).
func TestDeployWorked(t *testing.T) {
	eachGeneration(t, newer, 225, func(h *Harness, command []string) {
		w := &worked{project: h.deployed(command, "", nil), told: h.TempDir(),
			variables: map[string]string{"round": "1", "dbround": "1", "migrate": "1", "exit": "0", "drain": "true"}}
		w.changes()
		w.snapshots()
		w.oneOff()
	})
}

// worked is a project with workers and hooks.
type worked struct {
	*project
	told      string // where its services log their actions
	variables map[string]string
}

// set writes the file with some variables changed.
func (w *worked) set(pairs ...string) {
	w.Helper()
	for i := 0; i < len(pairs); i += 2 {
		w.variables[pairs[i]] = pairs[i+1]
	}
	w.variables["told"] = w.told
	w.write(workedFile, w.variables)
}

// wants checks the services' actions since the last call.
func (w *worked) wants(what string, want ...string) {
	w.Helper()
	file := filepath.Join(w.told, "all")
	text, _ := os.ReadFile(file) // no file: no action
	_ = os.Remove(file)
	w.same(what+": the lines", want, strings.Fields(strings.ReplaceAll(string(text), " ", "_")))
}

// noWorker checks that nothing is left of the worker.
func (w *worked) noWorker() {
	w.Helper()
	if id := w.containerOf("migrate", 1); id != "" {
		w.Errorf("the worker is still there: %s", id)
	}
	if all := w.reserved(w.planned, w.name+"/migrate/1"); len(all) > 0 {
		w.Errorf("%v is reserved for the worker", all)
	}
}

// changes: the worker runs before web, which is drained.
func (w *worked) changes() {
	w.Helper()
	w.set()
	w.deploys()
	w.wants("created", "db", "migrate_1", "once")
	w.noWorker()
	w.plans(0, "nothing to do")

	w.set("round", "2")
	w.docker("exec", w.containerOf("web", 1), "sh", "-c", "echo mine >/kept/file")
	w.plans(2, "run", w.name+"/migrate/1", "2 to recreate")
	w.deploys()
	w.wants("web has changed", "migrate_1", "drain", "drain")
	if kept := w.docker("exec", w.containerOf("web", 1), "busybox", "cat", "/kept/file"); kept != "mine" {
		w.Errorf("the unnamed volume has %q", kept)
	}
	w.set("migrate", "2", "exit", "3")
	w.fails("migrate/1: it ended with exit code 3")
	w.wants("the worker fails", "migrate_2")
	w.noWorker()
	w.set("exit", "0")
	w.deploys()
	w.wants("the worker alone has changed", "migrate_2")
	w.plans(0)

	before := w.ids()
	w.set("round", "3", "drain", "echo it is busy; exit 4")
	w.fails("it was not drained, so it keeps running: it ended with exit code 4; it said \"it is busy\"")
	w.wants("a drain fails", "migrate_2", "drain")
	w.same("a drain fails: the containers", before, w.ids())
	w.set("round", "2", "drain", "true")
	w.deploys()
	_ = os.Remove(filepath.Join(w.told, "all")) // it does not matter here whether web changes
}

// snapshots: the database changes; the first snapshot of its volume fails.
func (w *worked) snapshots() {
	w.Helper()
	saved := "snapshot_" + w.name + "/db/1"
	db, side := w.containerOf("db", 1), w.containerOf("side", 1)
	w.set("dbround", "2")
	w.fails("the snapshot failed, so the container is unchanged", "exit status 1")
	w.wants("a snapshot fails", "migrate_2", saved, "db")
	for _, id := range []string{db, side} {
		if w.docker("inspect", "--format", "{{.State.Running}}", id) != "true" {
			w.Errorf("a snapshot fails, and %s does not run", id)
		}
	}
	w.docker("exec", db, "sh", "-c", "echo mine >/data/mine")
	w.deploys()
	w.wants("the database has changed", "migrate_2", saved, "db")
	now := w.containerOf("db", 1)
	mode := w.docker("inspect", "--format", "{{.HostConfig.NetworkMode}}", w.containerOf("side", 1))
	if now == db || mode != "container:"+now {
		w.Errorf("the database was %s and is %s; side uses the network of %s", db, now, mode)
	}
	w.plans(0)
}

// oneOff: a finished container of `compose run` is deleted.
func (w *worked) oneOff() {
	w.Helper()
	name := w.name + "-run"
	w.run("run", "--no-deps", "--name", name, "web", "sh", "-c", "exit 0")
	w.plans(2, "delete", name, "1 to delete")
	w.deploys()
	if left := w.docker("ps", "--all", "--quiet", "--filter", "name="+name); left != "" {
		w.Errorf("the container of `compose run` is still there: %s", left)
	}
	w.plans(0)
	w.run("up", "--detach") // Compose creates migrate, because it does not know that it is a worker
	w.plans(2, "delete    "+w.name+"/migrate/1", "1 to delete")
	w.deploys()
	w.noWorker()
	w.plans(0)
}
