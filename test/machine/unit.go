//go:build machine

package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"berth/test/lab"
)

// units are the units that `make install` installs and starts.
var units = []string{"berth.service", "berth-witness.service", "berth.socket", "berth-admin.socket"}

// source is the user's clone of the source tree on the machine.
const source = "/root/berth"

// install does what a user does: a fresh clone, and `make install`. The machine has no Go, so the test puts a
// program built elsewhere into the clone.
func (m *Machine) install(program string) error {
	clonedTo := m.root(source)
	if _, err := os.Stat(clonedTo); err != nil {
		if err := clone(clonedTo); err != nil {
			return err
		}
	}
	b, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	bin := filepath.Join(clonedTo, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "berth"), b, 0o755); err != nil {
		return err
	}
	out, err := m.In("make", "--no-print-directory", "-C", source, "install")
	if err == nil && !strings.Contains(out, "Berth runs.") {
		err = fmt.Errorf("make install does not say that Berth runs: %s", out)
	}
	return err
}

// property is a property of a unit in systemd.
func (m *Machine) property(unit, name string) (string, error) {
	return m.In("systemctl", "show", "--value", "--property", name, unit)
}

// number is a numeric property.
func (m *Machine) number(unit, name string) (int64, error) {
	text, err := m.property(unit, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, unit, err)
	}
	return n, nil
}

// active checks that all of Berth's units are active.
func (m *Machine) active() error {
	return lab.Eventually(20*time.Second, func() error {
		out, err := m.In(append([]string{"systemctl", "is-active"}, units...)...)
		if err != nil {
			return fmt.Errorf("%v are %v: %w", units, strings.Fields(out), err)
		}
		return nil
	})
}

// inOrder checks that in this boot the sockets existed and Berth had reported ready before the engine started.
func (m *Machine) inOrder() error {
	engine, err := m.number("docker.service", "ExecMainStartTimestampMonotonic")
	if err != nil {
		return err
	}
	for _, unit := range units {
		ready, err := m.number(unit, "ActiveEnterTimestampMonotonic")
		if err != nil {
			return err
		}
		if ready == 0 || ready >= engine {
			return fmt.Errorf("%s was active at %d us, and the engine was started at %d us", unit, ready, engine)
		}
	}
	return nil
}
