//go:build engine

package engine

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// PrivateEngine is an extra engine of the tests. It has its own network namespace, because a second engine in the
// machine's would remove the first one's bridge. In its own mount namespace another directory is mounted over the
// plugin sockets.
type PrivateEngine struct {
	Engine
	Sockets string // this engine sees it as /run/docker/plugins
	name    string
	bridge  []string // flags for its default network: by default there is none
	holder  *Process // keeps the mount namespace while the engine is killed and started
	dockerd *Process
}

// engineOf starts an engine for a scenario, with the image of the tests, until the test ends.
func engineOf(t *testing.T, number int) *PrivateEngine {
	t.Helper()
	return ownEngine(t, fmt.Sprintf("%se%d", prefix, number), "10.213.249.1")
}

// ownEngine starts an engine with the image of the tests, on a host with an address, until the test ends. Without
// flags for it, there is no default bridge.
func ownEngine(t *testing.T, name, address string, bridge ...string) *PrivateEngine {
	t.Helper()
	e, err := hostNamespace(name, address+"/24")
	lab.Must(t, err)
	if len(bridge) > 0 {
		e.bridge = bridge
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the engine's log:\n%s", tail(e.dockerd.Log(), 60))
		}
		lab.Check(t, e.Stop())
	})
	lab.Must(t, e.Start(), importImage(e.Engine))
	return e
}

// daemon starts a Berth in the engine's namespaces, under a driver's name, until the test ends.
func (e *PrivateEngine) daemon(t *testing.T, driver string, flags ...string) *Daemon {
	t.Helper()
	d := &Daemon{Name: driver, Binary: binary, Sockets: e.Sockets, Dir: filepath.Join(base, e.name+"-berth"),
		within: e.within(), Flags: flags}
	lab.Must(t, d.start())
	t.Cleanup(func() { lab.Check(t, d.Stop()) })
	return d
}

// hostNamespace makes the namespaces, with address as the address of the engine's host. It does not start the engine.
func hostNamespace(name, address string) (*PrivateEngine, error) {
	// A bridge serves as the host's network card. It has a carrier only if one of its ports is up.
	if err := ip(
		"netns add "+name,
		"-n "+name+" link set lo up",
		"-n "+name+" link add host0 type bridge",
		"-n "+name+" link add port0 type veth peer name port1",
		"-n "+name+" link set port0 master host0 up",
		"-n "+name+" link set port1 up",
		"-n "+name+" link set host0 up",
		"-n "+name+" address add "+address+" dev host0",
	); err != nil {
		return nil, err
	}
	return privateEngine(name, socketsOf(name))
}

// socketsOf returns the directory of an engine's plugin sockets. The path is short: a managed plugin's directory below
// it adds 65 bytes, and a unix socket's path has at most 107.
func socketsOf(name string) string { return filepath.Join(base, "p"+strings.TrimPrefix(name, prefix)) }

// privateEngine prepares an engine in an existing network namespace and does not start it.
func privateEngine(name, sockets string) (*PrivateEngine, error) {
	if longest := 107 - 65 - len("/berth-admin.sock"); len(sockets) > longest {
		return nil, fmt.Errorf("%s: with %d bytes its managed plugins would have no sockets", sockets, len(sockets))
	}
	e := &PrivateEngine{name: name, Sockets: sockets, bridge: []string{"--bridge", "none"}}
	e.Socket = e.path("docker.sock")
	for _, dir := range []string{e.Sockets, e.path("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(e.path("empty.json"), []byte("{}"), 0o600); err != nil {
		return nil, err
	}
	// `ip netns exec` would hide the cgroups from the engine.
	var err error
	e.holder, err = startProcess(name+"-holder", nil, "nsenter", "--net=/run/netns/"+name,
		"unshare", "--mount", "--propagation", "private",
		"sh", "-c", "mount --bind "+e.Sockets+" "+pluginDir+" && touch "+e.path("held")+" && exec sleep 1000000")
	if err != nil {
		return nil, err
	}
	if err := lab.Eventually(10*time.Second, func() error {
		_, err := os.Stat(e.path("held"))
		return err
	}); err != nil {
		return nil, fmt.Errorf("%w: %s", err, e.holder.Log())
	}
	return e, nil
}

// within returns the prefix of a command in the engine's namespaces. nsenter replaces itself with the command.
func (e *PrivateEngine) within() []string {
	return []string{"nsenter", "--target", strconv.Itoa(e.holder.Pid()), "--mount", "--net"}
}

func (e *PrivateEngine) path(file string) string { return filepath.Join(base, e.name, file) }

// Start starts the engine on the existing data and waits until it answers. If it panics, Start starts it once more, as
// docker.service does: an engine of the 20.10 line may panic at its start after a crash, while its plugin's shim ends.
func (e *PrivateEngine) Start() error {
	err := e.starts()
	if errors.Is(err, errPanicked) {
		err = e.starts()
	}
	return err
}

// dockerdOptions are more options of the engines in namespaces.
var dockerdOptions = flag.String("dockerd", "",
	"more `options` of the engines in namespaces, such as --firewall-backend=nftables")

// letsIn returns the options of a bridge network whose containers are to be reached by elastic addresses. With the
// backend nftables the engine drops what comes there, as the finding firewall_in_way tells.
func letsIn() []string {
	if !strings.Contains(*dockerdOptions, "nftables") {
		return nil
	}
	return []string{"--opt", "com.docker.network.bridge.gateway_mode_ipv4=nat-unprotected"}
}

// errPanicked says that the engine itself panicked.
var errPanicked = errors.New("dockerd panicked")

// starts starts the engine: the dockerd in PATH, as the machine's is.
func (e *PrivateEngine) starts() error {
	args := append(e.within(), "dockerd", "--config-file", e.path("empty.json"), "--data-root", e.path("data"),
		"--exec-root", e.path("run"), "--pidfile", e.path("docker.pid"), "--host", "unix://"+e.Socket, "--log-level", "warn")
	args = slices.Concat(args, e.bridge, strings.Fields(*dockerdOptions))
	p, err := startProcess(e.name, nil, args[0], args[1:]...)
	if err != nil {
		return err
	}
	e.dockerd = p
	return lab.Eventually(90*time.Second, func() error {
		if p.ended() {
			if strings.Contains(p.Log(), "panic: runtime error") {
				return lab.Final(fmt.Errorf("%w:\n%s", errPanicked, p.Log()))
			}
			return lab.Final(fmt.Errorf("dockerd ended:\n%s", p.Log()))
		}
		_, err := e.api(http.MethodGet, "/_ping", nil)
		return err
	})
}

// complaints returns the engine's log without news of containers and messages about a kernel without IPVS.
func (e *PrivateEngine) complaints() string {
	lines := strings.Split(e.dockerd.Log(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(s string) bool {
		return strings.Contains(s, "level=info") || strings.Contains(s, "net.ipv4.vs.")
	}), "\n")
}

// Find runs Berth's command line where it sees this engine's plugin sockets and no other daemon of the machine. It
// must find the daemon by itself.
func (e *PrivateEngine) Find(binary string, args ...string) (string, error) {
	hide := "[ ! -d /run/berth ] || mount -t tmpfs none /run/berth; exec \"$@\""
	return lab.Run(20*time.Second, nil, "nsenter", append([]string{"--target", strconv.Itoa(e.holder.Pid()), "--mount",
		"unshare", "--mount", "--propagation", "private", "sh", "-c", hide, "sh", binary}, args...)...)
}

// Kill ends the engine as a crash does. Its containers' shims live on, as after a crash.
func (e *PrivateEngine) Kill() error {
	if err := e.dockerd.Signal(syscall.SIGKILL, 10*time.Second); err != nil {
		return err
	}
	// Its containerd is killed, too. An orderly end would remove these files.
	containerd := e.path("run/containerd/containerd.pid")
	if pid, err := readPid(containerd); err == nil {
		killAndWait(pid)
	}
	for _, file := range []string{e.path("docker.pid"), containerd} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Freeze stops the engine's process, and Thaw continues it.
func (e *PrivateEngine) Freeze() error { return syscall.Kill(e.dockerd.Pid(), syscall.SIGSTOP) }

// Thaw does nothing if nothing is frozen.
func (e *PrivateEngine) Thaw() error { return syscall.Kill(e.dockerd.Pid(), syscall.SIGCONT) }

// StopEngine ends the engine with SIGTERM: it stops its containers and releases their addresses.
func (e *PrivateEngine) StopEngine() error { return e.dockerd.Signal(syscall.SIGTERM, time.Minute) }

// Stop ends the engine with SIGTERM and removes its namespaces and its data. The next engine of the name starts
// afresh.
func (e *PrivateEngine) Stop() error {
	err := errors.Join(e.StopEngine(), e.holder.Signal(syscall.SIGKILL, 10*time.Second), removeNamespace(e.name))
	return errors.Join(err, lab.UnmountUnder(e.path("")), os.RemoveAll(e.path("")))
}

func readPid(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// ip runs commands of ip(8) and stops at the first that fails.
func ip(commands ...string) error {
	for _, args := range commands {
		if _, err := lab.Run(time.Minute, nil, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// removeNamespaces removes all of the tests' network namespaces.
func removeNamespaces() error {
	files, err := filepath.Glob("/run/netns/" + mark + "*")
	for _, file := range files {
		err = errors.Join(err, removeNamespace(filepath.Base(file)))
	}
	return err
}

// removeNamespace ends all processes in a network namespace, also those of an engine's containers, and removes it. It
// repeats this, because an engine may start more meanwhile.
func removeNamespace(name string) error {
	if err := lab.Eventually(30*time.Second, func() error {
		out, err := lab.Run(time.Minute, nil, "ip", "netns", "pids", name)
		if err != nil {
			return err
		}
		if out == "" {
			return nil
		}
		var pids []int
		for field := range strings.FieldsSeq(out) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(append(pids, pid), descendants(pid)...)
			}
		}
		killAndWait(pids...)
		return fmt.Errorf("%d processes ran in %s", len(pids), name)
	}); err != nil {
		return err
	}
	return ip("netns delete " + name)
}

// descendants returns the processes that pid and its children started and that still belong to them.
func descendants(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
