//go:build engine

package engine

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"berth/test/lab"
)

// deployed returns a project, not deployed yet, on its own planned network with a pool.
func (h *Harness) deployed(command []string, file string, variables map[string]string) *project {
	h.Helper()
	p := h.newProject("", nil)
	p.command, p.planned = command, h.plan("--subnet", h.v4("0/24")+",pool")
	p.write(file, variables)
	return p
}

// deployCommand returns the command for a verb of `berth deploy` on the project: by its files, or by its name alone.
func (p *project) deployCommand(ctx context.Context, verb string, byFile bool, args ...string) *exec.Cmd {
	words := []string{"--admin-socket", p.Berth.AdminSocket(), "deploy", verb}
	if byFile {
		words = append(words, "-f", p.files[0], "-p", p.name)
	} else {
		words = append(words, p.name)
	}
	words = append(words, "--ipam-driver", p.Berth.Driver(), "--compose-command", strings.Join(p.command, " "),
		"--docker-host", p.Engine.URL())
	cmd := exec.CommandContext(ctx, binary, slices.Concat(words, p.flags, args)...)
	cmd.Dir = p.TempDir()
	return cmd
}

// ends runs a command of `berth deploy` and returns its output and exit code.
func (p *project) ends(verb string, byFile bool, args ...string) (said string, code int) {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(5*time.Minute))
	defer cancel()
	out, err := p.deployCommand(ctx, verb, byFile, args...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	lab.Must(p, err)
	return string(out), 0
}

// deploy runs a verb of `berth deploy` on the files.
func (p *project) deploy(verb string, args ...string) (said string, code int) {
	p.Helper()
	return p.ends(verb, true, args...)
}

// task runs a verb of `berth deploy` on the project by its name alone.
func (p *project) task(verb string, args ...string) (said string, code int) {
	p.Helper()
	return p.ends(verb, false, args...)
}

// does runs a task that must succeed and returns its output.
func (p *project) does(verb string, args ...string) string {
	p.Helper()
	said, code := p.task(verb, append(args, "--yes")...)
	if code != 0 {
		p.Fatalf("%s ends with %d:\n%s", verb, code, said)
	}
	return said
}

// plans checks the exit code and the words of a plan.
func (p *project) plans(want int, words ...string) {
	p.Helper()
	said, code := p.deploy("plan")
	p.ended("the plan", said, code, want, words...)
}

// fails runs a deploy that must fail with the given words.
func (p *project) fails(words ...string) {
	p.Helper()
	said, code := p.deploy("apply", "--yes")
	p.ended("the deploy", said, code, 1, words...)
}

// ended checks the exit code and the words of a `berth deploy` command.
func (p *project) ended(what, said string, code, want int, words ...string) {
	p.Helper()
	if code != want {
		p.Errorf("%s ends with %d, not %d:\n%s", what, code, want, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			p.Errorf("%s does not say %q:\n%s", what, w, said)
		}
	}
}

// deploys runs a deploy that must succeed and returns its output.
func (p *project) deploys() string {
	p.Helper()
	said, code := p.deploy("apply", "--yes")
	if code != 0 {
		p.Fatalf("the deploy ends with %d:\n%s", code, said)
	}
	return said
}

// inOrder checks that an output has one text before another.
func (p *project) inOrder(said, first, second string) {
	p.Helper()
	if i, j := strings.Index(said, first), strings.Index(said, second); i < 0 || j < i {
		p.Errorf("%q does not come before %q:\n%s", first, second, said)
	}
}

// same checks that two lists are equal.
func (p *project) same(what string, before, now []string) {
	p.Helper()
	if !slices.Equal(before, now) {
		p.Errorf("%s were %v, and are %v", what, before, now)
	}
}

// upLeaves checks that Compose's own `up` changes no container, and that there are count of them.
func (p *project) upLeaves(count int) {
	p.Helper()
	ids := p.ids()
	p.run("up", "--detach")
	if again := p.ids(); !slices.Equal(again, ids) || len(ids) != count {
		p.Errorf("there were %v, and after `up` there are %v", ids, again)
	}
}

// runsAt checks that replicas (SERVICE/NUMBER) run with the given addresses, and that only these are reserved for
// them.
func (p *project) runsAt(at map[string]string) {
	p.Helper()
	for replica, end := range at {
		service, number, _ := strings.Cut(replica, "/")
		p.isAt(p.containerOf(service, int(number[0]-'0')), p.name, p.v4(end))
		p.same(replica+"'s reservations", []string{p.v4(end)}, p.reserved(p.planned, p.name+"/"+replica))
	}
}

func (p *project) webOwner(n int) string { return p.name + "/web/" + string(rune('0'+n)) }

// addresses returns the addresses of the three web replicas and the database.
func (p *project) addresses() (all []string) {
	p.Helper()
	for n := 1; n <= 3; n++ {
		all = append(all, p.at(p.containerOf("web", n), p.name))
	}
	return append(all, p.at(p.containerOf("db", 1), p.name))
}

func (p *project) hasAgain(want []string) {
	p.Helper()
	p.same("the addresses", want, p.addresses())
}

// history returns the lines of `berth deploy history` for the project, as "TASK: OUTCOME", the latest first.
func (p *project) history() (all []string) {
	p.Helper()
	var runs []struct{ Task, Outcome string }
	p.json(&runs, "deploy", "history", p.name)
	for _, r := range runs {
		all = append(all, r.Task+": "+r.Outcome)
	}
	return all
}

// unlock removes the lock of a killed deploy, if there is one.
func (p *project) unlock() {
	p.Helper()
	if strings.Contains(p.berth("deploy", "status"), p.name) {
		p.berth("deploy", "unlock", p.name)
	}
}
