//go:build engine

package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/ground"

	"berth/test/checkout"
)

// contained is Berth in a container, made from the tree's Dockerfile.
type contained struct {
	name   string // of the image, the container and the driver
	engine Engine
}

func (c *contained) Driver() string      { return c.name }
func (c *contained) AdminSocket() string { return filepath.Join(base, c.name, "run", "admin.sock") }
func (c *contained) await() error {
	return awaitBerth(binary, c.AdminSocket(), func() error { return nil })
}

// Log is what the engine kept of the daemon's output.
func (c *contained) Log() string {
	b, err := exec.Command("docker", "logs", c.name).CombinedOutput()
	return fmt.Sprint(string(b), err)
}

// Kill ends its process as a crash does.
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

// The image needs no other image, and serves the engine that runs it, by the line that its Dockerfile says; what runs
// there, it reads from the engine.
func TestContainer(t *testing.T) {
	t.Parallel()
	c := startContained(t, prefix+"contained")
	h := enter(t, machineEngine, c, 91)
	n := h.network("--subnet", h.v4("0/24"))
	first := h.container(n)
	a := h.address(first, n)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Revive(); err != nil {
		t.Fatal(err, c.Log())
	}
	if again := h.address(first, n); again != a {
		t.Errorf("%s had %s and has %s", first, a, again)
	}
	second := h.container(n)
	b := h.address(second, n)
	if b == a {
		t.Errorf("two containers have %s", a)
	}
	// The container's own witness reads the engine, and says whose the address is.
	if err := ground.Eventually(20*time.Second, func() error {
		if l := h.lease(b); l.SeenBy.Container != second {
			return fmt.Errorf("%s is %s's, and the lease is %+v", b, second, l)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
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
		if err := removeContainers(machineEngine, c.name); err != nil {
			t.Error(err)
		}
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

// dockerfileLine is the line that a Dockerfile's own comment says to run it with.
func dockerfileLine(t *testing.T, file string) string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	_, line, found := strings.Cut(strings.ReplaceAll(string(text), "\\\n#", ""), "\n#   docker run ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatalf("%s says no line to run it with", file)
	}
	return "docker run " + line
}

// buildImage runs docker build on a directory that holds bin/berth, as the tree does after `make build`.
func buildImage(t *testing.T, name, dir string) {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "berth"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := machineEngine.Docker("build", "-q", "-t", name, "-f", filepath.Join(root, "Dockerfile"),
		dir); err != nil {
		t.Fatal(err)
	}
}

// systemd hands the two sockets over: a connection is accepted before Berth runs, and starts it. Berth
// leaves both in place when it ends: they are systemd's.
func TestSocketActivation(t *testing.T) {
	t.Parallel()
	name := prefix + "activated"
	dir := filepath.Join(base, name)
	plugin, admin := filepath.Join(pluginDir, name+".sock"), filepath.Join(dir, "admin.sock")
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := startProcess(name, nil, "systemd-socket-activate", "--fdname=plugin:admin", "--listen="+plugin,
		"--listen="+admin,
		binary, "serve", "--state", filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Signal(syscall.SIGTERM, 10*time.Second); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(plugin); err != nil {
			t.Errorf("Berth removed a socket that is not its own: %v", err)
		}
	})
	for _, socket := range []string{plugin, admin} {
		if err := ground.Eventually(10*time.Second, func() error {
			_, err := os.Stat(socket)
			return err
		}); err != nil {
			t.Fatalf("%v: %s", err, p.Log())
		}
	}
	h := enter(t, machineEngine, &activated{name: name, admin: admin, process: p}, 92)
	n := h.network("--subnet", h.v4("0/24")) // the engine's first connection starts Berth
	h.address(h.container(n), n)
	if out, err := berth(h.Berth, "subnet", "ls"); err != nil || !strings.Contains(out, h.v4("0/24")) {
		t.Errorf("berth subnet ls: %s (%v)", out, err)
	}
}

// activated is a Berth that was started for its sockets.
type activated struct {
	name, admin string
	process     *Process
}

func (a *activated) Driver() string      { return a.name }
func (a *activated) AdminSocket() string { return a.admin }
func (a *activated) Log() string         { return a.process.Log() }
func (a *activated) Kill() error         { return a.process.Signal(syscall.SIGKILL, 10*time.Second) }
func (a *activated) Revive() error       { return fmt.Errorf("systemd starts %s", a.name) }
