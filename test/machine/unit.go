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

// units are what `make install` puts there and starts.
var units = []string{"berth.service", "berth-witness.service", "berth.socket", "berth-admin.socket"}

// source is where a person has cloned the source tree to, on the machine.
const source = "/root/berth"

// install does what a person does: a fresh clone, and `make install`. There is no Go on the machine, so that the
// program was made elsewhere and put into the clone.
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

// property is what systemd says of a unit.
func (m *Machine) property(unit, name string) (string, error) {
	return m.In("systemctl", "show", "--value", "--property", name, unit)
}

// number is a property that is one.
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

// active checks that all of Berth's units are.
func (m *Machine) active() error {
	return lab.Eventually(20*time.Second, func() error {
		out, err := m.In(append([]string{"systemctl", "is-active"}, units...)...)
		if err != nil {
			return fmt.Errorf("%v are %v: %w", units, strings.Fields(out), err)
		}
		return nil
	})
}

// inOrder checks that in this boot the sockets were there, and Berth had said that it is ready, when the engine was
// started.
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
