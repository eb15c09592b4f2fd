//go:build engine

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// TestDeployPage runs the lines of docs/deploy.md on the Compose file of that page: from `docker compose up` on the
// engine's own network to a deployed project.
func TestDeployPage(t *testing.T) {
	t.Parallel()
	h := enter(t, machineEngine, daemon(t, "page", pluginDir), 209)
	page, err := os.ReadFile("../../docs/deploy.md")
	lab.Must(t, err)
	p := h.newProject("", nil)
	p.command = composeCommands(t)["5"]
	_, text, found := strings.Cut(string(page), "## From `docker compose up` to `berth deploy`\n")
	if !found {
		t.Fatal("the page has no such section")
	}
	_, file, _ := strings.Cut(text, "\n```yaml\n")
	file, _, ended := strings.Cut(file, "\n```\n")
	if !ended {
		t.Fatal("the page has no Compose file")
	}
	file = regexp.MustCompile(`(?m)^ +command: .*\n`).ReplaceAllString(file, "")
	file = regexp.MustCompile(`(?m)^( +)image: .*`).ReplaceAllString(file, "${1}image: "+imageName+
		"\n${1}command: [\"sh\", \"-c\", \"trap 'exit 0' TERM; while :; do sleep 1000 & wait; done\"]")
	docker, err := exec.LookPath("docker")
	lab.Must(t, err)
	r := &pageRun{project: p, dir: t.TempDir()}
	r.has("compose.yaml", r.own(file), 0o600)
	r.has("bin/docker", fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = compose ]; then shift; exec %s \"$@\"; fi\nexec %s "+
		"\"$@\"\n", p.command[0], docker), 0o700)
	lab.Must(t, os.Symlink(binary, filepath.Join(r.dir, "bin/berth")))
	ran := 0
	for _, block := range strings.Split(text, "\n```console\n")[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, one := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, says, _ := strings.Cut(one, "\n")
			r.run(r.own(command), r.own(says))
			ran++
		}
	}
	if ran < 20 {
		t.Errorf("the page has %d lines to run", ran)
	}
}

// pageRun runs a page's lines in a directory, as a project with its own name and addresses.
type pageRun struct {
	*project
	dir string
}

func (r *pageRun) has(name, text string, mode os.FileMode) {
	r.Helper()
	file := filepath.Join(r.dir, name)
	lab.Must(r, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), mode))
}

// own returns a text of the page with the names and addresses of the test's project.
func (r *pageRun) own(text string) string {
	return strings.NewReplacer("10.30.0.", r.v4(""), "shop", r.name, "driver: berth,",
		"driver: "+r.Berth.Driver()+",", "default -> berth", "default -> "+r.Berth.Driver()).Replace(text)
}

// run runs a line. It compares the output of a Berth command with the page.
func (r *pageRun) run(line, says string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(5*time.Minute))
	defer cancel()
	named := line
	for _, verb := range []string{"adopt", "compose", "deploy plan", "deploy apply", "deploy start", "deploy stop",
		"deploy recreate"} {
		if strings.HasPrefix(line, "berth "+verb+" ") {
			named += " --ipam-driver " + r.Berth.Driver()
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", named)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"),
		"DOCKER_HOST=unix://"+r.Engine.Socket, "BERTH_DOCKER_HOST=unix://"+r.Engine.Socket,
		"BERTH_ADMIN_SOCKET="+r.Berth.(*Daemon).AdminSocket())
	out, err := cmd.CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		r.Fatal(err)
	}
	want := 0
	switch {
	case strings.Contains(line, "deploy plan") && !strings.Contains(says, "nothing to do"):
		want = 2
	case strings.Contains("\n"+says, "\nberth: "):
		want = 1
	}
	if code != want {
		r.Fatalf("%s ends with %d, and was to end with %d:\n%s", line, code, want, out)
	}
	if !strings.HasPrefix(line, "berth ") {
		return
	}
	if !shownAs(says).Match(out) {
		r.Errorf("%s says\n%s\nand the page\n%s", line, out, says)
	}
}
