//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// way is how Berth learns which container asks for an address, on an engine that does not say.
type way struct {
	name   string
	flags  []string // of serve
	beside bool     // `berth witness` runs beside it
	tells  []string // flags of `berth witness`
}

// ways returns all ways.
func ways(e Engine) []way {
	return []way{
		{name: "own witness", flags: []string{"--docker-host", e.URL()}},
		{name: "berth witness", flags: []string{"--docker-host", "none"}, beside: true},
		{name: "no witness", flags: []string{"--docker-host", "none"}},
	}
}

// witnessed reports whether a witness tells Berth which container asks.
func (w way) witnessed() bool { return w.beside || !slices.Contains(w.flags, "none") }

// kept is a network whose containers get their addresses in a given way.
type kept struct {
	*Harness
	way     way
	network string
}

// idle returns how many other containers are on a network.
func idle() int { return sample(0, 3, 8) }

// startKept starts a Berth in a way, with a network.
func startKept(t *testing.T, e Engine, sockets string, w way, number int) *kept {
	t.Helper()
	d := daemon(t, fmt.Sprintf("k%d", number), sockets, w.flags...)
	if w.beside {
		witnessBeside(t, d, append([]string{"--docker-host", e.URL()}, w.tells...)...)
	}
	k := &kept{Harness: &Harness{T: t, Engine: e, Berth: d, number: number}, way: w}
	if e == machineEngine { // a test's own engine ends with everything in it
		k.Harness = enter(t, e, d, number)
	}
	if !w.witnessed() {
		k.reads = []string{"--docker-host", e.URL()}
	}
	k.network = k.Harness.network("--subnet", k.v4("0/25"))
	k.follows()
	return k
}

// witnessBeside runs `berth witness` beside a Berth until the test ends.
func witnessBeside(t *testing.T, b Berth, flags ...string) {
	t.Helper()
	w, err := startProcess(strings.ReplaceAll(b.Driver(), ":", "-")+"-witness", nil, binary,
		append([]string{"--admin-socket", b.AdminSocket(), "witness"}, flags...)...)
	lab.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the witness's log:\n%s", w.Log())
		}
		lab.Check(t, w.Signal(syscall.SIGTERM, 10*time.Second))
	})
}

// idlers starts idle containers on the network.
func (k *kept) idlers() {
	k.Helper()
	for range idle() {
		k.container(k.network)
	}
}

// pin reserves the containers' present addresses for them.
func (k *kept) pin(containers []string) {
	k.Helper()
	k.pinned(append([]string{"pin", "--yes"}, containers...)...)
}

// together runs a command on each of the containers at once.
func (h *Harness) together(containers []string, args ...string) {
	h.Helper()
	lab.Must(h, atOnce(containers, func(c string) error {
		_, err := h.Engine.Docker(append(slices.Clone(args), c)...)
		return err
	}))
}

// follows waits until the witness, if any, receives the engine's events.
func (k *kept) follows() {
	k.Helper()
	lab.Await(k, 30*time.Second, func() error {
		if w := k.witness(); k.way.witnessed() && !w.Live {
			return fmt.Errorf("the witness is %+v", w)
		}
		return nil
	})
}

// witnessStatus is what the tests read of `berth status` about the witness.
type witnessStatus struct {
	Live    bool
	Counts  map[string]int // of what the last check found, by kind
	Guesses struct{ Made int }
}

func (h *Harness) witness() witnessStatus {
	h.Helper()
	var status struct{ Witness witnessStatus }
	h.json(&status, "status")
	return status.Witness
}

// at returns the address of a running container.
func (h *Harness) at(container, network string) string {
	h.Helper()
	ep := h.endpoint(container, network)
	if ep.IPAddress == "" {
		h.Fatalf("%s has no address on %s", container, network)
	}
	return ep.IPAddress
}

// tally counts how often containers had their old address afterwards, and how often one that none of them had before.
type tally struct{ kept, of, outside int }

func (t tally) missed() int { return t.of - t.kept }

// count compares the addresses of the same containers before and after.
func (t *tally) count(before, after []string) {
	for i, a := range after {
		t.of++
		switch {
		case a == before[i]:
			t.kept++
		case !slices.Contains(before, a):
			t.outside++
		}
	}
}

// where returns the addresses of running containers.
func (h *Harness) where(network string, containers []string) (all []string) {
	h.Helper()
	for _, c := range containers {
		all = append(all, h.at(c, network))
	}
	return all
}

// stays does something to containers repeatedly and counts how often each has its old address afterwards.
func (h *Harness) stays(rounds int, network string, containers []string, happen func()) (all tally) {
	h.Helper()
	before := h.where(network, containers)
	for range rounds {
		happen()
		after := h.where(network, containers)
		all.count(before, after)
		before = after
	}
	return all
}

// sound checks that no address is used twice, that `berth check` finds nothing wrong, and that each lease has the name
// of its container if there is a witness.
func (k *kept) sound() {
	k.Helper()
	lab.Check(k, lab.Eventually(30*time.Second, func() error {
		_, out, err := check(k.Berth, k.reads...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}))
	k.named()
}

// named checks that each container on Berth's networks has an address of its own under its name in Berth. It retries,
// because a container may just be put back to its own address.
func (k *kept) named() {
	k.Helper()
	lab.Check(k, lab.Eventually(20*time.Second, func() error {
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
	}))
}

// has returns the container of each address on Berth's networks.
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
