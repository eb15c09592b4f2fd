//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/test/lab"
)

// Report is what the tests read of `berth check --format json`.
type Report struct {
	Host, Engine, Trouble string
	Taken                 time.Time
	Findings              []Finding
	Counts                map[string]int
	Repaired              int
}

// Finding is a fault that `berth check` found.
type Finding struct {
	Kind, Address, Subnet, Network, Host, Owner, MAC, Detail string
	Seen                                                     time.Time
	Repairable, Repaired                                     bool
	Lease                                                    uint64
}

// at returns the finding's address or, without one, its subnet.
func (f Finding) at() string {
	if f.Address != "" {
		return f.Address
	}
	return f.Subnet
}

// left returns the remaining findings, as "KIND ADDRESS" or "KIND SUBNET", sorted.
func (r Report) left() []string {
	all := []string{}
	for i := range r.Findings {
		if f := &r.Findings[i]; !f.Repaired {
			all = append(all, f.Kind+" "+f.at())
		}
	}
	slices.Sort(all)
	return all
}

// check runs `berth check`. If findings remain or the engine is away, it returns report and error.
func check(b Berth, args ...string) (r Report, out string, failed error) {
	// time for an engine that hangs
	out, failed = lab.Run(2*time.Minute, nil, binary,
		append([]string{"--admin-socket", b.AdminSocket(), "check", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return r, out, fmt.Errorf("berth check --format json: %w: %s (%v)", err, out, failed)
	}
	return r, out, failed
}

// check runs `berth check` with an engine that answers. The exit status must fit the report.
func (h *Harness) check(args ...string) Report {
	h.Helper()
	r, out, err := check(h.Berth, append(args, h.reads...)...)
	if r.Engine != "reachable" {
		h.Fatalf("berth check: %s (%v)", out, err)
	}
	if left := r.left(); (err == nil) != (len(left) == 0) {
		h.Errorf("berth check leaves %v, and ends with %v", left, err)
	}
	return r
}

// finds checks that `berth check` finds exactly this ("KIND ADDRESS" or "KIND SUBNET") and returns its report.
func (h *Harness) finds(want ...string) Report {
	h.Helper()
	slices.Sort(want)
	r := h.check()
	if got := r.left(); !slices.Equal(got, want) {
		h.Fatalf("berth check finds %v, not %v: %+v", got, want, r.Findings)
	}
	return r
}

// heals checks that `berth check --repair` repairs exactly this, but nothing in its time of grace in the first run.
func (h *Harness) heals(want ...string) {
	h.Helper()
	slices.Sort(want)
	first := h.finds(want...)
	for _, f := range first.Findings {
		early := first.Taken.Sub(f.Seen) < checkGrace // on a busy machine the first view may be older
		if uncovered := f.Kind == "uncovered_address"; uncovered && !f.Repairable || !uncovered && f.Repairable && early {
			h.Errorf("seen for %s: %+v", first.Taken.Sub(f.Seen), f)
		}
		if f.Detail == "" || f.Seen.IsZero() {
			h.Errorf("found: %+v", f)
		}
	}
	var healed []string
	lab.Await(h, 20*time.Second, func() error {
		r := h.check("--repair")
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Repaired {
				healed = append(healed, f.Kind+" "+f.at())
			}
		}
		if left := r.left(); len(left) > 0 {
			return fmt.Errorf("berth check --repair leaves %v: %+v", left, r.Findings)
		}
		return nil
	})
	if slices.Sort(healed); !slices.Equal(healed, want) {
		h.Errorf("put right was %v, not %v", healed, want)
	}
	h.finds()
}

// checkGrace is the time of grace of a check in the tests.
const checkGrace = time.Second

// witness starts a daemon for a scenario. It reads an engine and considers a thing gone after a second and two checks.
// It checks only on request, unless flags say otherwise.
func witness(t *testing.T, e Engine, sockets string, number int, flags ...string) *Daemon {
	t.Helper()
	own := []string{"--docker-host", e.URL(), "--check-every", "0",
		"--check-grace", checkGrace.String()}
	return daemon(t, fmt.Sprintf("w%d", number), sockets, append(own, flags...)...)
}

// witnessed gives a scenario its number and a witness on this machine's engine. The scenario's networks use the driver
// that asks for MACs.
func witnessed(t *testing.T, number int, flags ...string) (*Harness, *Daemon) {
	t.Helper()
	d := witness(t, machineEngine, pluginDir, number, flags...)
	return enter(t, machineEngine, byMAC{d}, number), d
}

// relayed gives a scenario its number and a witness that asks for MACs, which the engine reaches through a relay.
func relayed(t *testing.T, e Engine, sockets string, number int) (*Harness, *Relay) {
	t.Helper()
	d := witness(t, e, filepath.Join(base, fmt.Sprintf("%sw%d", prefix, number), "plug"), number, "--ask-mac")
	r, err := startRelay(d, sockets)
	lab.Must(t, err)
	t.Cleanup(func() {
		lab.Check(t, r.Close())
	})
	return enter(t, e, d, number), r
}

// seen waits until `berth lease ls` shows that a container runs with an address.
func (h *Harness) seen(address, container string) Lease {
	h.Helper()
	var l Lease
	lab.Await(h, 20*time.Second, func() error {
		if l = h.lease(address); l.SeenBy.Container != container || l.SeenBy.State != "running" {
			return fmt.Errorf("%s is said to be that of %q, and not of %s, which runs: %+v", address,
				l.SeenBy.Container, container, l)
		}
		return nil
	})
	return l
}

// leased returns all addresses in use inside the scenario's IPv4 range, without gateways.
func (h *Harness) leased() []string {
	h.Helper()
	all := []string{}
	for _, l := range h.leases(h.v4("0/24")) {
		if l.Kind != "gateway" {
			all = append(all, l.Address)
		}
	}
	slices.Sort(all)
	return all
}
