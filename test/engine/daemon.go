//go:build engine

package engine

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// pluginDir is where the engine looks for legacy plugins: a socket's base name is its driver's name.
const pluginDir = "/run/docker/plugins"

// Berth is a running driver as the engine and a person see it.
type Berth interface {
	Driver() string      // what --ipam-driver takes
	AdminSocket() string // where its command line reaches it
	Kill() error         // SIGKILL; it returns when the process is dead
	Revive() error       // it runs again after Kill, with the same state; returns when it answers
	Log() string         // what it has written, for a test that failed
}

// byMAC is a daemon as the engine meets it on its second plugin socket, where it is asked for MACs.
type byMAC struct{ *Daemon }

// Driver is the name that the engine knows that socket by.
func (m byMAC) Driver() string { return m.Name + "-mac" }

// asksMAC reports whether a Berth has the engine say the MACs of containers.
func asksMAC(b Berth) bool {
	switch b := b.(type) {
	case byMAC:
		return true
	case *Daemon:
		return slices.Contains(b.Flags, "--ask-mac")
	case *Plugin:
		return b.AsksMAC
	}
	return false
}

// macFits reports whether a MAC on record can be that of a container: the very one where the engine was asked for it.
func macFits(b Berth, recorded, mac string) bool {
	return recorded == mac || recorded == "" && !asksMAC(b)
}

// Daemon is `berth serve` on legacy plugin sockets. Several live side by side under different names.
type Daemon struct {
	Name    string // the driver's name
	Binary  string
	Sockets string   // the directory of its plugin socket: pluginDir, or what another engine has mounted there
	Flags   []string // of serve, besides those of its state and sockets
	Dir     string   // of its state, its admin socket and its log
	within  []string // what its command begins with, where it runs in an engine's namespaces
	process *Process
}

// daemon starts one for a test, with a fresh state, which ends with the test. It is named as all things of the tests
// are, and so.
func daemon(t testing.TB, name, sockets string, flags ...string) *Daemon {
	t.Helper()
	name = prefix + name
	d := &Daemon{Name: name, Binary: binary, Sockets: sockets, Flags: flags, Dir: filepath.Join(base, name)}
	lab.Must(t, d.start())
	t.Cleanup(func() {
		lab.Check(t, d.Stop())
	})
	return d
}

// start starts the daemon with a fresh state and waits until it answers.
func (d *Daemon) start() error {
	if err := os.RemoveAll(d.Dir); err != nil {
		return err
	}
	for _, dir := range []string{d.state(), d.Sockets} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return d.Revive()
}

func (d *Daemon) state() string { return filepath.Join(d.Dir, "state") }

// Driver is the name that the engine knows the daemon by.
func (d *Daemon) Driver() string { return d.Name }

// PluginSocket is what the engine speaks to.
func (d *Daemon) PluginSocket() string { return filepath.Join(d.Sockets, d.Name+".sock") }

// AdminSocket is what the command line speaks to.
func (d *Daemon) AdminSocket() string { return filepath.Join(d.Dir, "admin.sock") }

// Log is all that the daemon has written, over its restarts.
func (d *Daemon) Log() string { return d.process.Log() }

// Revive starts the daemon on the state that is there.
func (d *Daemon) Revive() error {
	args := append(slices.Clone(d.within), d.Binary, "serve", "--state", d.state(),
		"--plugin-socket", d.PluginSocket(), "--mac-socket", filepath.Join(d.Sockets, byMAC{d}.Driver()+".sock"),
		"--admin-socket", d.AdminSocket(), "--log-level", "debug")
	args = append(args, d.Flags...)
	p, err := startProcess(filepath.Base(d.Dir), nil, args[0], args[1:]...)
	if err != nil {
		return err
	}
	d.process = p
	return awaitBerth(d.Binary, d.AdminSocket(), func() error {
		if p.ended() {
			return fmt.Errorf("berth serve ended:\n%s", p.Log())
		}
		_, err := os.Stat(d.PluginSocket())
		return err
	})
}

// Kill ends the daemon as a crash does.
func (d *Daemon) Kill() error { return d.process.Signal(syscall.SIGKILL, 10*time.Second) }

// Stop ends the daemon in order.
func (d *Daemon) Stop() error { return d.process.Signal(syscall.SIGTERM, 10*time.Second) }

// awaitBerth returns when a Berth answers on its admin socket and also holds.
func awaitBerth(binary, adminSocket string, also func() error) error {
	return lab.Eventually(40*time.Second, func() error {
		if err := also(); err != nil {
			return err
		}
		conn, err := net.Dial("unix", adminSocket) // cheaper than a command while nobody listens
		if err != nil {
			return err
		}
		conn.Close()
		_, err = lab.Run(10*time.Second, nil, binary, "--admin-socket", adminSocket, "lease", "ls")
		return err
	})
}
