//go:build machine

package machine

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The power is cut while addresses are taken one after the other. All acknowledged ones are on the disk, and at
// most one more. After the next boot the containers are back, each with an address that answers.
func TestPowerCut(t *testing.T) {
	m, err := shared()
	h := enter(t, m, err)
	h.settled(lanSize)
	network, subnet := fmt.Sprintf("busy%d", h.boots), fmt.Sprintf("10.%d.0.0/16", 100+h.boots)
	_, err = h.Berth("network", "create", network, "--subnet", subnet)
	h.must(err)
	before, err := h.leases("0.0.0.0/0")
	h.must(err)

	acknowledged := h.cutWhileTaking(network, 60)
	onDisk := h.stateOf(h.root("/var/lib/berth"))
	for address, l := range before {
		if onDisk[address] != l {
			t.Errorf("acknowledged: %+v; on the disk: %+v", l, onDisk[address])
		}
	}
	for _, address := range acknowledged {
		if _, ok := onDisk[address]; !ok {
			t.Errorf("%s was acknowledged, and is not on the disk", address)
		}
	}
	if more := len(onDisk) - len(before) - len(acknowledged); more < 0 || more > 1 {
		t.Errorf("on the disk are %d leases, of %d and %d that were acknowledged", len(onDisk), len(before),
			len(acknowledged))
	}

	h.must(h.Boot())
	h.must(h.active())
	h.must(h.inOrder())
	h.settled(lanSize)
	taken, err := h.leases(subnet)
	h.must(err)
	for _, address := range acknowledged {
		if taken[address] != onDisk[address] {
			t.Errorf("on the disk: %+v; after the boot: %+v", onDisk[address], taken[address])
		}
	}
}

// cutWhileTaking makes the machine take one address of a network after the other, cuts its power after n
// acknowledgements, and returns all acknowledged addresses.
func (h *Harness) cutWhileTaking(network string, n int) (acknowledged []string) {
	h.Helper()
	taking := h.command("sh", "-c", `i=0; while i=$((i+1)); do berth address take "$1" --owner o$i || exit 1; done`,
		"sh", network)
	cmd := exec.Command(taking[0], taking[1:]...)
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		acknowledged = append(acknowledged, strings.TrimSpace(lines.Text()))
		if len(acknowledged) == n {
			h.must(h.PowerCut())
		}
	}
	if err := cmd.Wait(); err == nil || len(acknowledged) < n {
		h.Fatalf("the power was not cut while it worked: %d acknowledged, %v", len(acknowledged), err)
	}
	slices.Sort(acknowledged)
	if slices.Contains(acknowledged, "") || len(slices.Compact(slices.Clone(acknowledged))) != len(acknowledged) {
		h.Fatalf("acknowledged twice, or nothing: %v", acknowledged)
	}
	return acknowledged
}

// stateOf are the leases in a state on the disk: it starts a daemon without an engine on a copy, and reads them.
// It expects `berth state check` to find nothing wrong with the copy.
func (h *Harness) stateOf(dir string) map[string]Lease {
	h.Helper()
	place := filepath.Join(h.dir, "copy")
	state, socket := filepath.Join(place, "state"), filepath.Join(place, "admin.sock")
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patient(time.Minute))
	defer cancel()
	for _, command := range []string{"mkdir -p " + place, "cp -a " + dir + " " + state, binary + " state check --state " +
		state} {
		args := strings.Fields(command)
		_, err := lab.Run(time.Minute, nil, args[0], args[1:]...)
		h.must(err)
	}
	daemon := exec.CommandContext(ctx, binary, "serve", "--state", state, "--admin-socket", socket,
		"--plugin-socket", filepath.Join(place, "plugin.sock"), "--docker-host", "none")
	h.must(daemon.Start())
	defer func() {
		_ = daemon.Process.Kill() // it is only a copy
		_ = daemon.Wait()
	}()
	var out string
	lab.Await(h, 20*time.Second, func() (err error) {
		out, err = lab.Run(time.Minute, nil, binary, "--admin-socket", socket, "lease", "ls", "--format", "json")
		return err
	})
	all, err := decodeLeases(out)
	if err != nil {
		h.Fatal(fmt.Errorf("the state of %s: %w", dir, err))
	}
	return all
}
