//go:build machine

package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"
)

// prefix starts the names of all machines, in systemd-nspawn and in the cgroups.
const prefix = "berth-t-machine-"

// Machine is a Debian with systemd and Docker.
type Machine struct {
	name string
	dir  string // its layer, its root, and its engine's data
	off  chan struct{}
	init int // 0 while it is off

	boots int // number of boots
}

// newMachine makes a machine on the shared tree, and does not boot it.
func newMachine(name string) (*Machine, error) {
	m := &Machine{name: prefix + name, dir: filepath.Join(base, name)}
	return m, mountTree(*tree, m.dir)
}

// root is the path on the host of a machine's path, even while the machine is off.
func (m *Machine) root(path string) string { return filepath.Join(m.dir, "root", path) }

// console is the console output of all boots.
func (m *Machine) console() string {
	b, _ := os.ReadFile(filepath.Join(m.dir, "console"))
	return string(b)
}

// Boot boots the machine and returns when all its units have started.
func (m *Machine) Boot() error {
	if err := makeCgroups(m.name); err != nil {
		return err
	}
	console, err := os.OpenFile(filepath.Join(m.dir, "console"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	// The engine's data is outside the layer, because its images are layers too.
	nspawn := []string{"systemd-nspawn", "--quiet", "--directory", m.root(""), "--machine", m.name, "--register=no",
		"--keep-unit",
		"--boot", "--private-network", "--bind", filepath.Join(m.dir, "docker") +
			":/var/lib/docker", "--link-journal=no",
		"--resolv-conf=off", "--timezone=off", "--console=pipe", "--capability=all",
		"--system-call-filter=@keyring bpf @mount"}
	join := `for dir in $GROUPS_OF_IT; do echo $$ >"$dir/cgroup.procs" || exit 1; done; exec "$@"`
	cmd := exec.Command("sh", append([]string{"-c", join, "sh"}, nspawn...)...)
	cmd.Env = append(os.Environ(), "GROUPS_OF_IT="+strings.Join(cgroups(m.name), " "))
	cmd.Stdout, cmd.Stderr = console, console
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.boots++
	off := make(chan struct{})
	m.off = off
	go func() {
		_ = cmd.Wait() // a power cut makes it fail
		close(off)
	}()
	if err := lab.Eventually(20*time.Second, func() error {
		for _, pid := range children(cmd.Process.Pid) {
			if isInit(pid) {
				m.init = pid
				return nil
			}
		}
		return fmt.Errorf("%s has no init:\n%s", m.name, m.console())
	}); err != nil {
		return errors.Join(err, syscall.Kill(cmd.Process.Pid, syscall.SIGKILL))
	}
	return m.started()
}

// started waits until systemd has started everything of a boot.
func (m *Machine) started() error {
	err := lab.Eventually(3*time.Minute, func() error {
		state, err := m.In("systemctl", "is-system-running")
		if state == "running" || state == "degraded" {
			return nil
		}
		return fmt.Errorf("%s is %q (%v)", m.name, state, err)
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, m.console())
	}
	failed, err := m.In("systemctl", "list-units", "--failed", "--plain", "--no-legend")
	if err == nil && failed != "" {
		journal, _ := m.In("journalctl", "--boot", "--no-pager", "--lines", "60")
		err = fmt.Errorf("units failed: %s\n%s", failed, journal)
	}
	return err
}

// In runs a command on the machine, as root.
func (m *Machine) In(args ...string) (string, error) {
	in := m.command(args...)
	return lab.Run(2*time.Minute, nil, in[0], in[1:]...)
}

// command is the command on the host that runs a command on the machine.
func (m *Machine) command(args ...string) []string {
	return append([]string{"nsenter", "--target", strconv.Itoa(m.init), "--all", "--wd=/root",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}, args...)
}

// PowerCut kills all its processes at once.
func (m *Machine) PowerCut() error {
	if err := syscall.Kill(m.init, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return m.gone(20 * time.Second)
}

// PowerOff shuts it down in order.
func (m *Machine) PowerOff() error {
	if out, err := m.In("systemctl", "--no-block", "poweroff"); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return m.gone(2 * time.Minute)
}

// gone waits until it is off.
func (m *Machine) gone(within time.Duration) error {
	select {
	case <-m.off:
		m.init = 0
		return endCgroups(m.name)
	case <-time.After(within):
		return fmt.Errorf("%s is not off after %s:\n%s", m.name, within, m.console())
	}
}

// Remove stops it at once and deletes it.
func (m *Machine) Remove() error {
	var err error
	if m.init != 0 {
		err = m.PowerCut() // systemd-nspawn then tidies up by itself
	}
	return errors.Join(err, removeMachine(filepath.Base(m.dir)))
}

// removeMachine removes a machine of any run.
func removeMachine(name string) error {
	dir := filepath.Join(base, name)
	root, statErr := os.Stat(filepath.Join(dir, "root"))
	if err := errors.Join(endCgroups(prefix+name), lab.UnmountUnder(dir)); err != nil {
		return err // and remove nothing through a mount
	}
	if statErr == nil {
		removeTraces(name, root.Sys().(*syscall.Stat_t))
	}
	return os.RemoveAll(dir)
}

// removeTraces removes what a killed systemd-nspawn leaves in /run, and its directories there if they are empty.
func removeTraces(name string, root *syscall.Stat_t) {
	const run = "/run/systemd/nspawn/"
	for _, path := range []string{"propagate/" + prefix + name, fmt.Sprintf("locks/inode-%d:%d", root.Dev, root.Ino),
		"propagate", "locks", ""} {
		_ = os.Remove(run + path) // it is absent, or others use it
	}
}

// cleanUp removes what the tests made, also after an interruption.
func cleanUp() error {
	entries, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeMachine(e.Name()))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(base)
}
