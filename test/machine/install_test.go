//go:build machine

package machine

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
)

// `make install` in a clone: the units run in their sandbox, containers have addresses, and the next boot starts
// Berth first. `make uninstall` removes everything but the state, which the next installation uses.
func TestInstall(t *testing.T) {
	h := own(t, "fresh", 2)
	h.must(h.active())
	for _, unit := range units {
		if state, err := h.property(unit, "UnitFileState"); err != nil || state != "enabled" {
			t.Errorf("%s is %s (%v)", unit, state, err)
		}
	}
	h.sandboxed()
	h.learns()
	h.settled(2)
	for _, socket := range []string{"/run/docker/plugins/berth.sock root:root 600",
		"/run/berth/admin.sock root:berth 660"} {
		path, _, _ := strings.Cut(socket, " ")
		if got, err := h.In("stat", "--format", "%n %U:%G %a", path); err != nil || got != socket {
			t.Errorf("%s is %q (%v)", path, got, err)
		}
	}

	h.must(h.PowerOff())
	h.must(h.Boot())
	h.must(h.active())
	h.must(h.inOrder())
	h.sandboxed()
	h.settled(2)
	h.uninstalled()
}

// learns checks that the witness's sandbox lets it announce a container that has started again with another MAC, so
// that the machine reaches it before the kernel itself suspects the old one (after 23 s).
func (h *Harness) learns() {
	h.Helper()
	h.must(h.createNetwork("learns", "berth-mac", "10.9.66.0/24"))
	h.must(h.startContainers(2, "learns", "learns")) // a bridge without containers makes the kernel forget all MACs
	all, err := h.back("learns", 2)
	h.must(err)
	h.must(h.reach(all))
	_, err = h.Docker("restart", "learns1")
	h.must(err)
	begun := time.Now()
	h.must(h.reach(all))
	if took := time.Since(begun); took > 15*time.Second {
		h.Errorf("the restarted container was reached after %s", took)
	}
	_, err = h.Docker("rm", "-f", "learns1", "learns2")
	h.must(err)
	_, err = h.Docker("network", "rm", "learns")
	h.must(err)
}

// sandboxed checks the sandboxes as seen by the units' processes.
func (h *Harness) sandboxed() {
	h.Helper()
	const netRaw = 1 << 13 // CAP_NET_RAW
	for unit, capabilities := range map[string]int{"berth.service": 0, "berth-witness.service": netRaw} {
		status, err := h.In("cat", fmt.Sprintf("/proc/%d/status", h.unitPid(unit)))
		h.must(err)
		for _, line := range []string{fmt.Sprintf("CapPrm:\t%016x", capabilities),
			fmt.Sprintf("CapBnd:\t%016x", capabilities), "NoNewPrivs:\t1", "Seccomp:\t2"} {
			if !strings.Contains(status, line+"\n") {
				h.Errorf("the status of %s has no %q:\n%s", unit, line, status)
			}
		}
	}
	pid := fmt.Sprint(h.unitPid("berth.service"))
	mounts, err := h.In("cat", "/proc/"+pid+"/mountinfo")
	h.must(err)
	writable := map[string]bool{}
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 5 {
			writable[f[4]] = strings.HasPrefix(f[5]+",", "rw,") // the last mount on a path hides earlier ones
		}
	}
	for path, want := range map[string]bool{"/": false, "/var/lib/berth": true, "/home": false, "/proc/sys": false} {
		if got, mounted := writable[path]; !mounted || got != want {
			h.Errorf("%s is mounted for the daemon: %v, and writable: %v\n%s", path, mounted, got, mounts)
		}
	}
	if mode, err := h.In("stat", "--format", "%U %a", "/var/lib/berth"); err != nil || mode != "berth 700" {
		h.Errorf("/var/lib/berth is %q (%v)", mode, err)
	}
}

// uninstalled checks `make uninstall` while containers run, and then `make install`.
func (h *Harness) uninstalled() {
	h.Helper()
	before := h.held()
	_, err := h.In("make", "--no-print-directory", "-C", source, "uninstall")
	h.must(err)
	for _, unit := range units {
		if state, err := h.property(unit, "LoadState"); err != nil || state != "not-found" {
			h.Errorf("%s is %s (%v)", unit, state, err)
		}
	}
	for _, path := range []string{"/usr/local/bin/berth", "/run/docker/plugins/berth.sock", "/run/berth/admin.sock",
		"/etc/systemd/system/berth.service", "/etc/systemd/system/berth.socket",
		"/etc/systemd/system/berth-admin.socket", "/etc/systemd/system/berth-witness.service",
		"/etc/systemd/system/multi-user.target.wants/berth.service",
		"/etc/systemd/system/sockets.target.wants/berth.socket"} {
		if _, err := h.In("test", "-e", path); err == nil {
			h.Errorf("%s is left", path)
		}
	}
	if out, err := h.In("sh", "-c", "ps -eo args | grep '[b]erth serve'"); err == nil {
		h.Errorf("it runs on: %s", out)
	}
	if state, err := os.ReadDir(h.root("/var/lib/berth")); err != nil || len(state) == 0 {
		h.Errorf("the state did not stay: %v (%v)", state, err)
	}
	h.must(h.install(binary))
	if after := h.held(); !maps.Equal(before, after) {
		h.Errorf("installed again, it has %v; before it was uninstalled %v", after, before)
	}
	h.settled(2)
}
