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

// pluginDir is where the engine looks for legacy plugins: a driver has the name of its socket's file.
const pluginDir = "/run/docker/plugins"

// Berth is a running driver as the engine and a person see it.
type Berth interface {
	Driver() string      // the name for --ipam-driver
	AdminSocket() string // the socket for its command line
	Kill() error         // SIGKILL; returns when the process is dead
	Revive() error       // starts it again after Kill, with the same state; returns when it answers
	Log() string         // its output, for a test that failed
}

// byMAC is a daemon on its second plugin socket, where it asks the engine for MACs.
type byMAC struct{ *Daemon }

// Driver returns the name of that socket's driver.
func (m byMAC) Driver() string { return m.Name + "-mac" }

// asksMAC reports whether a Berth asks the engine for the MACs of containers.
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

// macFits reports whether a recorded MAC can be a container's: the same one if Berth asks for MACs, else also none.
func macFits(b Berth, recorded, mac string) bool {
	return recorded == mac || recorded == "" && !asksMAC(b)
}

// Daemon is `berth serve` on legacy plugin sockets. Several run side by side under different names.
type Daemon struct {
	Name    string // the driver's name
	Binary  string
	Sockets string     // the directory of its plugin socket: pluginDir, or one that another engine has mounted there
	Flags   []string   // of serve, without those for its state and sockets
	Dir     string     // of its state, its admin socket and its log
	within  []string   // the prefix of its command, if it runs in an engine's namespaces
	held    []*os.File // its plugin socket, if something else listens meanwhile, as systemd does
	process *Process
}

// daemon starts a Daemon for a test, with a fresh state, and stops it at the test's end. Its name is name after the
// prefix of the run.
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

// Driver returns the daemon's name in the engine.
func (d *Daemon) Driver() string { return d.Name }

// PluginSocket returns the engine's socket to the daemon.
func (d *Daemon) PluginSocket() string { return filepath.Join(d.Sockets, d.Name+".sock") }

// AdminSocket returns the command line's socket to the daemon.
func (d *Daemon) AdminSocket() string { return filepath.Join(d.Dir, "admin.sock") }

// Log returns the daemon's log.
func (d *Daemon) Log() string { return d.process.Log() }

// Revive starts the daemon on the existing state.
func (d *Daemon) Revive() error {
	args := append(slices.Clone(d.within), d.Binary, "serve", "--state", d.state(),
		"--plugin-socket", d.PluginSocket(), "--mac-socket", filepath.Join(d.Sockets, byMAC{d}.Driver()+".sock"),
		"--admin-socket", d.AdminSocket(), "--log-level", "debug")
	args = append(args, d.Flags...)
	if d.held != nil { // sd_listen_fds(3)
		args = append([]string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=plugin exec "$0" "$@"`}, args...)
	}
	p, err := startProcess(filepath.Base(d.Dir), d.held, args[0], args[1:]...)
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

// holdSocket listens on the plugin socket until the test ends, whether the daemon is there or not. The daemon must be
// stopped, and has the socket from its next start on.
func (d *Daemon) holdSocket(t testing.TB) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.PluginSocket(), Net: "unix"})
	lab.Must(t, err)
	t.Cleanup(func() { l.Close() })
	file, err := l.File()
	lab.Must(t, err)
	t.Cleanup(func() { file.Close() })
	d.held = []*os.File{file}
}

// Kill ends the daemon as a crash does.
func (d *Daemon) Kill() error { return d.process.Signal(syscall.SIGKILL, 10*time.Second) }

// Stop ends the daemon with SIGTERM.
func (d *Daemon) Stop() error { return d.process.Signal(syscall.SIGTERM, 10*time.Second) }

// awaitBerth returns when a Berth answers on its admin socket and also succeeds.
func awaitBerth(binary, adminSocket string, also func() error) error {
	return lab.Eventually(40*time.Second, func() error {
		if err := also(); err != nil {
			return err
		}
		conn, err := net.Dial("unix", adminSocket) // cheaper than a command while the daemon does not listen yet
		if err != nil {
			return err
		}
		conn.Close()
		_, err = lab.Run(10*time.Second, nil, binary, "--admin-socket", adminSocket, "lease", "ls")
		return err
	})
}
