//go:build engine

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The pages whose titles are Docker's errors: each of their lines runs, on an engine and a Berth with few default
// pools, and prints what the page shows. This checks the engine's messages, too.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		page, title string // the title is the message of engines of the 20.10 line
		newer       string // the message of engines of the 29 line
		least       int    // number of lines to run
	}{
		{"pool-overlaps.md", "Pool overlaps with other one on this address space",
			"Pool overlaps with other one on this address space", 9},
		{"address-in-use.md", "Address already in use", "Address already in use", 14},
		{"no-free-pool.md", "could not find an available, non-overlapping IPv4 address pool",
			"all predefined address pools have been fully subnetted", 9},
		{"fixed-ip-refused.md", "user specified IP address is supported only when connecting to networks with user " +
			"configured subnets", "no configured subnet contains IP address", 9},
	} {
		t.Run(c.page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../docs/" + c.page)
			lab.Must(t, err)
			page := string(text)
			if title, _, _ := strings.Cut(page, "\n"); title != "# "+c.title {
				t.Errorf("its title is %s", title)
			}
			r := newErrorPage(t, 233+i)
			ran := 0
			for _, one := range pageCommands(page, engineMajor) {
				r.run(one.command, one.says, one.hidden)
				ran++
			}
			if ran < c.least {
				t.Errorf("the page has %d lines to run", ran)
			}
			if !shows(page, c.title) || !shows(page, c.newer) {
				t.Error("an engine's message is not among what was run")
			}
		})
	}
}

// shows reports whether a page has an engine's message as the output of a command, on one line or on two.
func shows(page, message string) bool {
	for _, before := range []string{"Error response from daemon: …", "Error response from daemon: ", "settings:\n"} {
		if strings.Contains(page, before+message) {
			return true
		}
	}
	return false
}

// shownCommand is a command of a page, and its output there.
type shownCommand struct {
	command, says string
	hidden        bool // not shown; its output is not compared
}

// pageCommands returns the commands of a page's console blocks and comments (<!-- run: COMMAND -->). The comments
// <!-- engines before 25 -->, <!-- engines from 29 --> and <!-- engines from 25 before 29 --> are about the next block.
func pageCommands(page string, major int) (all []shownCommand) {
	inside, other := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		hidden, isHidden := strings.CutPrefix(line, "<!-- run: ")
		switch {
		case strings.HasPrefix(line, "<!-- engines "):
			other = !within(strings.Fields(line)[2:], major)
		case isHidden:
			all = append(all, shownCommand{command: strings.TrimSuffix(hidden, " -->"), hidden: true})
		case strings.HasPrefix(line, "```"):
			other = other && !inside // until the end of its block
			inside = line == "```console"
		case other:
		case inside && isCommand:
			all = append(all, shownCommand{command: command})
		case inside:
			all[len(all)-1].says += line + "\n"
		}
	}
	return all
}

// within reports whether a version is within bounds, such as "from 25 before 29".
func within(bounds []string, major int) bool {
	for i := 0; i+1 < len(bounds); i += 2 {
		version, err := strconv.Atoi(bounds[i+1])
		if err != nil || (bounds[i] == "before") != (major < version) {
			return false
		}
	}
	return true
}

// errorPage is an engine and a Berth. The lines of a page run on them unchanged.
type errorPage struct {
	*testing.T
	e     *PrivateEngine
	berth *Daemon
	bin   string
}

func newErrorPage(t *testing.T, number int) *errorPage {
	t.Helper()
	e := ownEngine(t, fmt.Sprintf("%serr%d", prefix, number), fmt.Sprintf("10.%d.%d.1", octet, number), "--bridge",
		"none", "--default-address-pool", "base=172.30.0.0/24,size=25")
	lab.Must(t, importAs(e.Engine, "nginx"))
	b := e.daemon(t, "berth", "--docker-host", e.URL(), "--default-pool", "base=172.31.0.0/24,size=25")
	r := &errorPage{T: t, e: e, berth: b, bin: t.TempDir()}
	lab.Must(t, os.Symlink(binary, filepath.Join(r.bin, "berth")))
	return r
}

// run runs a line in a shell beside the engine. It must fail exactly if the page shows an error. `berth check` is
// repeated until its output matches the page: on a busy machine Berth looks at the host a moment later.
func (r *errorPage) run(line, says string, hidden bool) {
	r.Helper()
	if !hidden && strings.HasPrefix(line, "berth check") {
		lab.Await(r, 10*time.Second, func() error {
			if out, _ := r.shell(line); !shownAs(says).Match(out) {
				return fmt.Errorf("%s says\n%s\nand the page\n%s", line, out, says)
			}
			return nil
		})
	}
	out, err := r.shell(line)
	r.Logf("$ %s\n%s", line, out)
	if hidden {
		if err != nil {
			r.Fatalf("%s: %v\n%s", line, err, out)
		}
		return
	}
	refused := strings.Contains(says, "Error response from daemon: ") || strings.Contains("\n"+says, "\nberth: ")
	if (err != nil) != refused {
		r.Fatalf("%s: %v:\n%s", line, err, out)
	}
	if !shownAs(says).Match(out) {
		r.Errorf("%s says\n%s\nand the page\n%s", line, out, says)
	}
}

// shell runs a line in a shell beside the engine. The error is the shell's exit error.
func (r *errorPage) shell(line string) ([]byte, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(2*time.Minute))
	defer cancel()
	args := append(r.e.within(), "sh", "-c", line)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "PATH="+r.bin+":"+os.Getenv("PATH"), "DOCKER_HOST="+r.e.URL(),
		"BERTH_DOCKER_HOST="+r.e.URL(), "BERTH_ADMIN_SOCKET="+r.berth.AdminSocket(), "TZ=UTC")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	return out, err
}
