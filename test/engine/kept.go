//go:build engine

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/ground"
)

// way is how it is known who asks for an address, on an engine that does not say.
type way struct {
	name    string
	flags   []string // of serve
	beside  bool     // `berth witness` runs beside it
	tells   []string // flags of that
	builtIn bool     // the network is on the engine's own IPAM, and Berth has nothing to do with it
}

// ways are all. The engine's own IPAM, against which they are measured, is the last: nothing is asserted of it.
func ways(e Engine) []way {
	return []way{
		{name: "own witness", flags: []string{"--docker-host", e.URL()}},
		{name: "berth witness", flags: []string{"--docker-host", "none"}, beside: true},
		{name: "no witness", flags: []string{"--docker-host", "none"}},
		{name: "built-in IPAM", flags: []string{"--docker-host", "none"}, builtIn: true},
	}
}

// witnessed tells whether someone says who asks.
func (w way) witnessed() bool { return !w.builtIn && (w.beside || !slices.Contains(w.flags, "none")) }

// kept is a network, and the way in which containers get their addresses there.
type kept struct {
	*House
	way     way
	network string
}

// idle is how many containers do nothing on a network besides those that come and go.
func idle() int { return sample(0, 3, 8) }

// startKept starts what a way is of, with a network.
func startKept(t *testing.T, e Engine, sockets string, w way, number int) *kept {
	t.Helper()
	d := daemon(t, fmt.Sprintf("k%d", number), sockets, w.flags...)
	if w.beside {
		tells, err := startProcess(d.Name+"-witness", nil, binary,
			append([]string{"--admin-socket", d.AdminSocket(), "witness", "--docker-host", e.URL()}, w.tells...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := tells.Signal(syscall.SIGTERM, 10*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	k := &kept{House: &House{T: t, Engine: e, Berth: d, number: number}, way: w}
	// an engine of a test's own goes with all that it has, also where it miscounts its endpoints
	if e == machineEngine {
		k.House = enterPlanned(t, e, d, number)
	}
	if !w.witnessed() {
		k.reads = []string{"--docker-host", e.URL()}
	}
	k.network = k.of(w, "0/25")
	k.follows()
	return k
}

// of makes a network on Berth or on the engine's own IPAM.
func (k *kept) of(w way, subnet string) string {
	k.Helper()
	name := k.name()
	command := k.networkCommand(name, "--subnet", k.v4(subnet))
	if w.builtIn {
		command[slices.Index(command, "--ipam-driver")+1] = "default"
	}
	k.docker(command...)
	return name
}

// idlers are on the network and do nothing.
func (k *kept) idlers() {
	k.Helper()
	for range idle() {
		k.container(k.network)
	}
}

// pin gives containers their present addresses for good.
func (k *kept) pin(containers []string) {
	k.Helper()
	k.pinned(append([]string{"pin", "--yes"}, containers...)...)
}

// together does something to containers at once.
func (h *House) together(containers []string, args ...string) {
	h.Helper()
	errs := make([]error, len(containers))
	var all sync.WaitGroup
	for i, c := range containers {
		all.Go(func() { _, errs[i] = h.Engine.Docker(append(args, c)...) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		h.Fatal(err)
	}
}

// follows waits until the witness, where there is one, hears what the engine says.
func (k *kept) follows() {
	k.Helper()
	if err := ground.Eventually(30*time.Second, func() error {
		if w := k.witness(); k.way.witnessed() && !w.Live {
			return fmt.Errorf("the witness is %+v", w)
		}
		return nil
	}); err != nil {
		k.Fatal(err)
	}
}

// witnessStatus is what the tests read of `berth status` about the witness.
type witnessStatus struct {
	Live    bool
	Guesses struct{ Made, Wrong int }

	Questions struct{ One, Several, None, Late, Boots int }
}

func (h *House) witness() witnessStatus {
	h.Helper()
	var status struct{ Witness witnessStatus }
	if err := json.Unmarshal([]byte(h.berth("status", "--format", "json")), &status); err != nil {
		h.Fatal(err)
	}
	return status.Witness
}

// at is the address of a container that runs.
func (h *House) at(container, network string) string {
	h.Helper()
	ep, err := h.Engine.Endpoint(container, network)
	if err != nil {
		h.Fatal(err)
	}
	if ep.IPAddress == "" {
		h.Fatalf("%s has no address on %s", container, network)
	}
	return ep.IPAddress
}

// stays does something to containers, again and again, and counts how often each has the address afterwards that it
// had before. Where it is one, it tells when that was not so.
func (h *House) stays(rounds int, network string, containers []string, happen func()) (all tally) {
	h.Helper()
	where := func() []string {
		var at []string
		for _, c := range containers {
			at = append(at, h.at(c, network))
		}
		return at
	}
	before := where()
	for round := range rounds {
		began := time.Now()
		happen()
		after := where()
		all.count(before, after)
		if len(containers) == 1 && after[0] != before[0] {
			h.Logf("round %d, %s to %s: %s had %s and has %s", round+1,
				began.Format(time.StampMilli), time.Now().Format(time.StampMilli), containers[0], before[0], after[0])
		}
		before = after
	}
	return all
}

// sound checks that no address is there twice, that `berth check` finds nothing wrong, and that each lease has the
// name of its container where a witness tells.
func (k *kept) sound() {
	k.Helper()
	if k.way.builtIn {
		return
	}
	if err := ground.Eventually(30*time.Second, func() error {
		_, out, err := check(k.Berth, k.reads...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}); err != nil {
		k.Error(err)
	}
	k.named()
}

// named checks that each container of Berth's networks has an address of its own, by which Berth knows it. One that is
// put back to its own meanwhile is looked at again.
func (k *kept) named() {
	k.Helper()
	if err := ground.Eventually(20*time.Second, func() error {
		has, err := k.has()
		if err != nil {
			return err
		}
		for _, l := range k.leases(k.v4("0/24")) {
			switch c, there := has[l.Address]; {
			case l.Kind == "gateway":
			case !there:
				return fmt.Errorf("nobody has %s: %+v", l.Address, l)
			case k.way.witnessed() && l.Name != c:
				return fmt.Errorf("%s is that of %s: %+v", l.Address, c, l)
			}
		}
		return nil
	}); err != nil {
		k.Error(err)
	}
}

// has is which container has each address on Berth's networks.
func (k *kept) has() (map[string]string, error) {
	k.Helper()
	has := map[string]string{}
	networks := k.docker("network", "ls", "--format", "{{.Name}}", "--filter", "name=^"+k.prefix())
	for network := range strings.FieldsSeq(networks) {
		if k.docker("network", "inspect", "-f", "{{.IPAM.Driver}}", network) != k.Berth.Driver() {
			continue
		}
		for c := range strings.FieldsSeq(k.docker("ps", "--format", "{{.Names}}", "--filter", "network="+network)) {
			ep, err := k.Engine.Endpoint(c, network)
			if err != nil {
				return nil, err
			}
			if other, twice := has[ep.IPAddress]; twice {
				return nil, fmt.Errorf("%s is that of %s and of %s", ep.IPAddress, c, other)
			}
			has[ep.IPAddress] = c
		}
	}
	return has, nil
}
