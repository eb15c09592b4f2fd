//go:build engine

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// Plugin is Berth as a managed plugin of the engine.
type Plugin struct {
	Name    string // with its tag, as for --ipam-driver
	ID      string
	AsksMAC bool   // set by BERTH_ASK_MAC
	Sockets string // the engine creates the plugin's socket directory in it
	engine  Engine
	binary  string // the command line for it
}

// askMAC is the setting that makes a plugin ask the engine for MACs.
const askMAC = "BERTH_ASK_MAC=true"

// content is held while an engine imports a plugin's content: if two import the same layer at once, it refuses with
// "already exists" (20.10).
var content sync.Mutex

// makePlugin creates a plugin from a binary with scripts/plugin, as `make plugin` does.
func makePlugin(e Engine, name, binary string) error {
	root, err := lab.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(base, "plugin")
	if err != nil {
		return err
	}
	content.Lock()
	defer content.Unlock()
	_, err = lab.Run(2*time.Minute, nil, "env", "DOCKER_HOST=unix://"+e.Socket,
		filepath.Join(root, "scripts/plugin"), name, binary,
		dir)
	return errors.Join(err, os.RemoveAll(dir))
}

// publishPlugin creates a plugin, pushes it to the registry in its name and removes it from the engine. A test calls
// it before it runs in parallel: on a busy host an engine 20.10 can panic during a push (send on closed channel).
func publishPlugin(e Engine, name, binary string) error {
	if err := makePlugin(e, name, binary); err != nil {
		return err
	}
	if _, err := e.Docker("plugin", "push", name); err != nil {
		return err
	}
	_, err := e.Docker("plugin", "rm", name)
	return err
}

// installPlugin installs a plugin as a person does: by one docker command with its name in the registry. An alias is
// its name in the engine; "" keeps the registry's.
func installPlugin(e Engine, remote, alias, binary string, settings ...string) (*Plugin, error) {
	args := []string{"plugin", "install", "--grant-all-permissions"}
	p := &Plugin{Name: remote, AsksMAC: slices.Contains(settings, askMAC), Sockets: pluginDir, engine: e,
		binary: binary}
	if alias != "" {
		args = append(args, "--alias", alias)
		p.Name = alias
	}
	content.Lock()
	_, err := e.Docker(append(append(args, remote), settings...)...)
	content.Unlock()
	if err != nil {
		return nil, err
	}
	return p, p.Revive()
}

// Driver returns the plugin's name with its tag.
func (p *Plugin) Driver() string { return p.Name }

// AdminSocket returns the socket's path in the host directory where the engine shows the plugin's sockets.
func (p *Plugin) AdminSocket() string { return filepath.Join(p.Sockets, p.ID, "berth-admin.sock") }

// Log is empty: the engine writes the plugin's output into its own log.
func (p *Plugin) Log() string { return "(the plugin's log is in the engine's log)" }

// Revive waits until the plugin answers. The engine restarts a managed plugin by itself.
func (p *Plugin) Revive() error {
	id, err := p.engine.Docker("plugin", "inspect", "-f", "{{.ID}}", p.Name)
	if err != nil {
		return err
	}
	p.ID = id
	return awaitBerth(p.binary, p.AdminSocket(), func() error { return nil })
}

// Kill ends the plugin's process as a crash does.
func (p *Plugin) Kill() error {
	pid, err := listenerPid(p.AdminSocket())
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	return lab.Eventually(10*time.Second, func() error {
		if processAlive(pid) {
			return fmt.Errorf("the plugin's process %d is still there", pid)
		}
		return nil
	})
}

// Disable stops the plugin, even if networks use it.
func (p *Plugin) Disable() error {
	_, err := p.engine.Docker("plugin", "disable", "-f", p.Name)
	return err
}

// Enable starts it again and waits until it answers.
func (p *Plugin) Enable() error {
	if _, err := p.engine.Docker("plugin", "enable", p.Name); err != nil {
		return err
	}
	return p.Revive()
}

// removedAfter removes the plugin at the end of a test.
func (p *Plugin) removedAfter(t *testing.T) {
	t.Cleanup(func() {
		if _, err := p.engine.Docker("plugin", "rm", "-f", p.Name); err != nil {
			t.Error(err)
		}
	})
}

// removePlugins removes the plugins of all test runs.
func removePlugins(e Engine) error {
	out, err := e.Docker("plugin", "ls", "--format", "{{.Name}}")
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(out) {
		if !strings.Contains(name, mark) {
			continue
		}
		if _, err := e.Docker("plugin", "rm", "-f", name); err != nil {
			return err
		}
	}
	return nil
}

// listenerPid returns the process that listens on a unix socket.
func listenerPid(socket string) (int, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return int(cred.Pid), nil
}
