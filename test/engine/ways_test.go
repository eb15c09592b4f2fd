//go:build engine

package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// contained is Berth in a container, from the repository's Dockerfile.
type contained struct {
	name   string // of the image, the container and the driver
	engine Engine
}

func (c *contained) Driver() string      { return c.name }
func (c *contained) AdminSocket() string { return filepath.Join(base, c.name, "run", "admin.sock") }
func (c *contained) await() error {
	return awaitBerth(binary, c.AdminSocket(), func() error { return nil })
}

// Log returns the daemon's output that the engine kept.
func (c *contained) Log() string {
	b, err := exec.Command("docker", "logs", c.name).CombinedOutput()
	return fmt.Sprint(string(b), err)
}

// Kill ends the container's process as a crash does.
func (c *contained) Kill() error {
	_, err := c.engine.Docker("kill", c.name)
	return err
}

// Revive starts the container again.
func (c *contained) Revive() error {
	if _, err := c.engine.Docker("start", c.name); err != nil {
		return err
	}
	return c.await()
}

// The image needs no other image. The line in its Dockerfile starts it. It serves the engine that runs it, and its
// witness reads that engine.
func TestContainer(t *testing.T) {
	t.Parallel()
	c := startContained(t, prefix+"contained")
	h := enter(t, machineEngine, c, 91)
	n := h.network("--subnet", h.v4("0/24"))
	first := h.container(n)
	a := h.address(first, n)
	lab.Must(t, c.Kill())
	if err := c.Revive(); err != nil {
		t.Fatal(err, c.Log())
	}
	h.hasAddress(first, n, a)
	second := h.container(n)
	b := h.address(second, n)
	if b == a {
		t.Errorf("two containers have %s", a)
	}
	// The container's own witness reads the engine and reports whose address this is.
	lab.Check(t, lab.Eventually(20*time.Second, func() error {
		if l := h.lease(b); l.SeenBy.Container != second {
			return fmt.Errorf("%s is %s's, and the lease is %+v", b, second, l)
		}
		return nil
	}))
	if engine, err := berth(c, "status", "--format", "{{.Witness.Engine}}"); err != nil || engine != "reachable" {
		t.Errorf("for the daemon in the container the engine is %q (%v)", engine, err)
	}
}

// startContained starts Berth in a container of this machine's engine.
func startContained(t *testing.T, name string, options ...string) *contained {
	t.Helper()
	c := &contained{name: name, engine: machineEngine}
	dir := filepath.Join(base, c.name)
	buildImage(t, c.name, filepath.Join(dir, "context"))
	t.Cleanup(func() {
		lab.Check(t, removeContainers(machineEngine, c.name))
	})
	own := strings.NewReplacer("--name berth ", "--name "+c.name+" ", "/run/berth:", filepath.Join(dir, "run")+":",
		"/var/lib/berth:", filepath.Join(dir, "state")+":")
	args := strings.Fields(own.Replace(dockerfileLine(t, "Dockerfile")))
	image := len(args) - 1
	if args[0] != "docker" || args[image] != "berth" {
		t.Fatalf("the Dockerfile's line is %q", args)
	}
	args = append(args[1:image], options...)
	if _, err := machineEngine.Docker(append(args, c.name, "--plugin-socket",
		filepath.Join(pluginDir, c.name+".sock"))...); err != nil {
		t.Fatal(err)
	}
	if err := c.await(); err != nil {
		t.Fatal(err, c.Log())
	}
	return c
}

// dockerfileLine returns the docker run line in a Dockerfile's comment.
func dockerfileLine(t *testing.T, file string) string {
	t.Helper()
	root, err := lab.Root()
	lab.Must(t, err)
	text, err := os.ReadFile(filepath.Join(root, file))
	lab.Must(t, err)
	_, line, found := strings.Cut(strings.ReplaceAll(string(text), "\\\n#", ""), "\n#   docker run ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatalf("%s says no line to run it with", file)
	}
	return "docker run " + line
}

// buildImage runs docker build on a directory that contains bin/berth, as the repository does after `make build`.
func buildImage(t *testing.T, name, dir string) {
	t.Helper()
	root, err := lab.Root()
	lab.Must(t, err)
	program, err := os.ReadFile(binary)
	lab.Must(t, err)
	lab.Must(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
	lab.Must(t, os.WriteFile(filepath.Join(dir, "bin", "berth"), program, 0o755))
	if _, err := machineEngine.Docker("build", "-q", "-t", name, "-f", filepath.Join(root, "Dockerfile"),
		dir); err != nil {
		t.Fatal(err)
	}
}
