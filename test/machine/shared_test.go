//go:build machine

package machine

import (
	"sync"
	"testing"

	"berth/test/lab"
)

// The network of the shared machine. Its containers are always restarted.
const (
	lan       = "lan"
	lanSubnet = "10.7.0.0/24"
	lanSize   = 6
)

// shared is the machine for tests that leave it unchanged. Berth and its containers are installed.
var shared = sync.OnceValues(func() (*Machine, error) { return furnished("shared", lanSize) })

// furnished is a machine with Berth and with containers on one of its networks.
func furnished(name string, containers int) (*Machine, error) {
	m, err := newMachine(name)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		m.Boot,
		func() error { return m.install(binary) },
		m.importImage,
		func() error { return m.createNetwork(lan, "berth", lanSubnet) },
		func() error { return m.startContainers(containers, "c", lan) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Harness is a test on a machine.
type Harness struct {
	*testing.T
	*Machine
}

// enter wraps a machine for a test. If the test fails, it shows the machine's journal.
func enter(t *testing.T, m *Machine, err error) *Harness {
	t.Helper()
	lab.Must(t, err)
	t.Cleanup(func() {
		if !t.Failed() || m.init == 0 {
			return
		}
		journal, err := m.In("journalctl", "--boot", "--no-pager", "--lines", "80", "--unit", "berth*", "--unit",
			"docker")
		t.Logf("the journal of %s: %s (%v)", m.name, journal, err)
	})
	return &Harness{T: t, Machine: m}
}

// own makes a machine for one test, and removes it after the test.
func own(t *testing.T, name string, containers int) *Harness {
	t.Helper()
	m, err := furnished(name, containers)
	if err == nil {
		t.Cleanup(func() { // runs after the journal is shown
			lab.Check(t, m.Remove())
		})
	}
	return enter(t, m, err)
}

func (h *Harness) must(err error) {
	h.Helper()
	lab.Must(h, err)
}

// settled checks that all containers of the network run, each with its own address that Berth has on record and
// that answers, and that Berth finds nothing wrong.
func (h *Harness) settled(n int) map[string]Container {
	h.Helper()
	all, err := h.back(lan, n)
	h.must(err)
	h.must(h.sound())
	h.must(h.agreed(lanSubnet, all))
	h.must(h.reach(all))
	return all
}

// held are the leases of the network.
func (h *Harness) held() map[string]Lease {
	h.Helper()
	all, err := h.leases(lanSubnet)
	h.must(err)
	if len(all) == 0 {
		h.Fatal("nothing is leased")
	}
	return all
}

// unitPid is the pid of a unit's main process inside the machine.
func (h *Harness) unitPid(unit string) int64 {
	h.Helper()
	pid, err := h.number(unit, "MainPID")
	h.must(err)
	if pid == 0 {
		h.Fatalf("%s does not run", unit)
	}
	return pid
}
