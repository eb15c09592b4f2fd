//go:build engine

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// A project is stopped, started and made anew without a word of its files, by what its containers say of them, with
// either generation of Compose: in the order of its dependencies or against it, each replica with the addresses that
// are its own; and it is told who did that, and what came of it (BD-10).
func TestDeploySteps(t *testing.T) {
	eachGeneration(t, newer, "steps", enterPlanned, 201, stepped)
}

func stepped(h *House, command []string) {
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	p := h.newProject(deployedFile, map[string]string{"planned": planned, "subnet": h.v4("0/24"), "db": h.v4("80"),
		"round": "one", "replicas": "3", "web": "${run}"})
	p.command = command
	if said, code := p.task("start"); code != 1 || !strings.Contains(said, "name the files with -f") {
		p.Errorf("a project without containers is started with %d:\n%s", code, said)
	}
	p.deploys()
	ids := p.ids()
	has := p.addresses()
	if said, code := p.task("start", "--yes"); code != 0 || !strings.Contains(said, "nothing to do") {
		p.Errorf("what runs is started with %d:\n%s", code, said)
	}
	if said, code := p.task("stop"); code != exitWrong || !strings.Contains(said, "--yes") {
		p.Errorf("without an answer it is stopped with %d:\n%s", code, said)
	}
	said := p.does("stop")
	if i, j := strings.LastIndex(said, "stop "+p.name+"/web/"), strings.Index(said, "stop "+p.name+"/db/1"); i < 0 ||
		j < i {
		p.Errorf("the database is stopped before those that need it:\n%s", said)
	}
	if running := p.docker("ps", "--quiet", "--filter", "label=com.docker.compose.project="+p.name); running != "" {
		p.Errorf("after a stop %s run", running)
	}
	if left := p.ids(); !slices.Equal(left, ids) {
		p.Errorf("a stop leaves %v of %v", left, ids)
	}
	for n := 1; n <= 3; n++ {
		if all := p.reserved(planned, p.webOwner(n)); len(all) != 1 {
			p.Errorf("after a stop web %d has %v reserved", n, all)
		}
	}
	p.docker("rm", "--force", p.containerOf("web", 2))
	if said, code := p.task("start", "web/7", "--yes"); code != 1 || !strings.Contains(said, "there is no web/7") {
		p.Errorf("one that is not there is started with %d:\n%s", code, said)
	}
	p.does("start", "web/2") // which was removed: the files say that it is there
	if running := p.docker("ps", "--quiet", "--no-trunc", "--filter", "label=com.docker.compose.project="+p.name); running !=
		p.containerOf("web", 2) {
		p.Errorf("what runs is %s", running)
	}
	said = p.does("start")
	if i, j := strings.Index(said, "done "+p.name+"/db/1"), strings.Index(said, "watch "+p.name+"/web/"); i < 0 || j < i {
		p.Errorf("the database is not started before those that need it:\n%s", said)
	}
	p.plans(0)
	p.hasAgain(has)
	ids = p.ids()
	said = p.does("recreate", "web")
	if again := p.ids(); len(again) != 4 || len(shared(again, ids)) != 1 || !slices.Contains(again, p.containerOf("db", 1)) {
		p.Errorf("of %v there are %v after web was recreated", ids, again)
	}
	if i, j := strings.Index(said, "done "+p.webOwner(1)+" (canary)"), strings.Index(said, "stop "+p.webOwner(2)); i < 0 ||
		j < i {
		p.Errorf("the canary is not first:\n%s", said)
	}
	p.hasAgain(has)
	p.plans(0)
	ids = p.ids()
	p.run("up", "--detach")
	if again := p.ids(); !slices.Equal(again, ids) {
		p.Errorf("`up` makes %v of %v", again, ids)
	}
	p.told([]string{"recreate web: done", "start: done", "start web/2: done", "stop: done", "apply: done"})
	p.run("down", "--timeout", "1")
	p.berth("compose", "-f", p.files[0], "-p", p.name, "--ipam-driver", p.Berth.Driver(), "--release")
}

// exitWrong is the exit code of wrong usage of `berth deploy`.
const exitWrong = 64

func (p *project) webOwner(n int) string { return p.name + "/web/" + string(rune('0'+n)) }

// addresses are those of the three web replicas and of the database.
func (p *project) addresses() (all []string) {
	p.Helper()
	for n := 1; n <= 3; n++ {
		all = append(all, p.at(p.containerOf("web", n), p.name))
	}
	return append(all, p.at(p.containerOf("db", 1), p.name))
}

func (p *project) hasAgain(want []string) {
	p.Helper()
	if now := p.addresses(); !slices.Equal(now, want) {
		p.Errorf("the addresses were %v, and are %v", want, now)
	}
}

func shared(a, b []string) (all []string) {
	for _, one := range a {
		if slices.Contains(b, one) {
			all = append(all, one)
		}
	}
	return all
}

// told wants of the history what was done and what came of it, the latest first.
func (p *project) told(want []string) {
	p.Helper()
	var runs []struct{ Task, Outcome, Did string }
	if err := json.Unmarshal([]byte(p.berth("deploy", "history", p.name, "--format", "json")), &runs); err != nil {
		p.Fatal(err)
	}
	var got []string
	for _, r := range runs {
		got = append(got, r.Task+": "+r.Outcome)
	}
	if !slices.Equal(got, want) {
		p.Errorf("the history is %v, and was to be %v", got, want)
	}
}

// task runs a verb of `berth deploy` on the project by its name alone.
func (p *project) task(verb string, args ...string) (said string, code int) {
	p.Helper()
	args = append([]string{"--admin-socket", p.Berth.(*Daemon).AdminSocket(), "deploy", verb, p.name,
		"--ipam-driver", p.Berth.Driver(), "--compose-command", strings.Join(p.command, " "), "--docker-host",
		"unix://" + p.Engine.Socket}, args...)
	ctx, cancel := context.WithTimeout(context.Background(), ground.Patient(5*time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = p.TempDir()
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		p.Fatal(err)
	}
	return string(out), 0
}

// does runs a verb that is to succeed, and returns what it tells.
func (p *project) does(verb string, args ...string) string {
	p.Helper()
	said, code := p.task(verb, append(args, "--yes")...)
	if code != 0 {
		p.Fatalf("%s ends with %d:\n%s", verb, code, said)
	}
	return said
}
