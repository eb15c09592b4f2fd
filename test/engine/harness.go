//go:build engine

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

// Harness is the environment of a scenario: an engine, and a Berth that it uses. Its methods fail the test if Docker
// or Berth refuse. A scenario that expects a refusal calls the engine itself.
type Harness struct {
	*testing.T
	Engine Engine
	Berth  Berth
	reads  []string // flags that give `berth check` the engine if the daemon reads none
	number int      // of the scenario, which owns 10.OCTET.NUMBER.0/24 and fd00:OCTET:NUMBER::/48
	made   int
	shares bool // other scenarios use its Berth, too; none of them plans anything
}

// entered holds the running scenarios by place. A scenario that ends removes everything with its number.
var entered sync.Map

// place identifies a running scenario.
type place struct {
	engine string // its socket
	number int
}

// enter gives a scenario its number, and removes at its end what it made. If another running test has the number on
// the engine, the test fails.
func enter(t *testing.T, e Engine, b Berth, number int) *Harness {
	h := &Harness{T: t, Engine: e, Berth: b, number: number}
	at := place{e.Socket, number}
	test, _, _ := strings.Cut(t.Name(), "/")
	if other, taken := entered.LoadOrStore(at, test); taken && other != test {
		t.Fatalf("the number %d is that of %v, which runs: give this scenario another one", number, other)
	}
	t.Cleanup(func() {
		defer entered.Delete(at)
		if t.Failed() {
			t.Logf("Berth's log:\n%s", tail(b.Log(), 40))
		}
		lab.Check(t, h.leave())
	})
	return h
}

// leave removes the scenario's containers, networks and plans, and checks that Berth has no record of them left. A
// network that the engine keeps because it miscounts is logged and does not fail the scenario: its gateway stays on
// record.
func (h *Harness) leave() error {
	h.Helper()
	errs := []error{removeContainers(h.Engine, h.prefix())}
	kept, err := removeNetworks(h.Engine, h.prefix())
	errs = append(errs, err)
	for _, name := range kept {
		h.Logf("network %s: %v", name, errMiscounted)
	}
	if !h.shares {
		// a network of Docker's can go between the list and its removal
		if err := lab.Eventually(counting, func() error { return removePlans(h.Berth) }); len(kept) == 0 {
			errs = append(errs, err)
		}
	}
	for _, within := range []string{h.v4("0/24"), h.v6("/48")} {
		errs = append(errs, lab.Eventually(counting, func() error {
			left, err := leases(h.Berth, within)
			if len(kept) > 0 {
				left = slices.DeleteFunc(left, func(l Lease) bool {
					return l.Kind == "gateway" || l.Kind == "auxiliary"
				})
			}
			if err == nil && len(left) > 0 {
				err = fmt.Errorf("after all containers and networks are gone, Berth has %v", left)
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

// v4 returns an address or a range of the scenario: v4("0/24"), v4("17").
func (h *Harness) v4(rest string) string { return fmt.Sprintf("10.%d.%d.%s", octet, h.number, rest) }

// v6 does the same in IPv6: v6("::/64"), v6("::17").
func (h *Harness) v6(rest string) string {
	if strings.HasPrefix(rest, "/") {
		rest = "::" + rest
	}
	return fmt.Sprintf("fd00:%d:%x%s", octet, h.number, rest)
}

// docker runs a command that must succeed.
func (h *Harness) docker(args ...string) string {
	h.Helper()
	out, err := h.Engine.Docker(args...)
	lab.Must(h, err)
	return out
}

// refused runs a command that must fail with an error that contains each of the words. It returns the error.
func (h *Harness) refused(words []string, args ...string) string {
	h.Helper()
	out, err := h.Engine.Docker(args...)
	return h.refusal("docker", args, out, err, words)
}

// refusal checks that a command was refused with each of the words and returns its error.
func (h *Harness) refusal(program string, args []string, out string, err error, words []string) string {
	h.Helper()
	if err == nil {
		h.Fatalf("%s %s was not refused: %s", program, strings.Join(args, " "), out)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			h.Errorf("the error does not say %q: %v", word, err)
		}
	}
	return err.Error()
}

// json runs a Berth command that prints JSON.
func (h *Harness) json(into any, args ...string) {
	h.Helper()
	out := h.berth(append(args, "--format", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		h.Fatalf("berth %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// removes removes networks, which must succeed.
func (h *Harness) removes(networks ...string) {
	h.Helper()
	for _, network := range networks {
		lab.Must(h, removeNetwork(h.Engine, network))
	}
}

// name returns a name that is unique on the engine.
func (h *Harness) name() string {
	h.made++
	return h.prefix() + strconv.Itoa(h.made)
}

func (h *Harness) prefix() string { return fmt.Sprintf("%s%d-", prefix, h.number) }

// onMAC makes the scenario's later networks use the driver that asks for MACs.
func (h *Harness) onMAC() { h.Berth = byMAC{h.Berth.(*Daemon)} }

// network creates a bridge network on the scenario's Berth and returns its name.
func (h *Harness) network(options ...string) string {
	h.Helper()
	name := h.name()
	h.docker(h.networkCommand(name, options...)...)
	return name
}

// networkCommand returns a `docker network create` whose bridge has a unique name.
func (h *Harness) networkCommand(name string, options ...string) []string {
	args := []string{"network", "create", "--driver", "bridge", "--ipam-driver", h.Berth.Driver(),
		"--opt", "com.docker.network.bridge.name=" + bridgeOf(name)}
	return append(append(args, options...), name)
}

// bridgeOf returns the name of a network's bridge, which may have fewer bytes than a network's name.
func bridgeOf(network string) string { return "bt" + strings.TrimPrefix(network, mark) }

// container runs a container that stays and returns its name.
func (h *Harness) container(network string, options ...string) string {
	h.Helper()
	name := h.name()
	h.docker(containerCommand(name, network, options...)...)
	return name
}

func containerCommand(name, network string, options ...string) []string {
	args := append([]string{"run", "--detach", "--name", name, "--network", network}, options...)
	return append(append(args, imageName), sleepForever...)
}

// address returns a container's IPv4 address. The container, Docker and Berth's records must agree on it, on the
// subnet's mask and on the container's MAC.
func (h *Harness) address(container, network string) string {
	h.Helper()
	c, err := h.Engine.inspect(container)
	lab.Must(h, err)
	ep, err := c.on(network)
	if err != nil {
		h.Fatal(container, err)
	}
	lab.Check(h, c.shows(container, fmt.Sprintf("%s/%d", ep.IPAddress, ep.IPPrefixLen)))
	h.recorded(ep.IPAddress, ep.MacAddress)
	return ep.IPAddress
}

// hasAddress checks the IPv4 address of a container.
func (h *Harness) hasAddress(container, network, want string) {
	h.Helper()
	if got := h.address(container, network); got != want {
		h.Errorf("%s has %s, not %s", container, got, want)
	}
}

// isAt checks the IPv4 address of a container as Docker shows it.
func (h *Harness) isAt(container, network, want string) {
	h.Helper()
	if got := h.at(container, network); got != want {
		h.Errorf("%s has %s, not %s", container, got, want)
	}
}

// endpoint returns a container's endpoint on a network.
func (h *Harness) endpoint(container, network string) Endpoint {
	h.Helper()
	ep, err := h.Engine.Endpoint(container, network)
	lab.Must(h, err)
	return ep
}

// subnets returns the subnets of a Docker network.
func (h *Harness) subnets(network string) []IPAMConfig {
	h.Helper()
	all, err := h.Engine.Subnets(network)
	lab.Must(h, err)
	return all
}

// recorded checks that Berth has exactly one lease of an address, with the given MAC if Berth asks for MACs.
func (h *Harness) recorded(address, mac string) {
	h.Helper()
	bits := 32
	if strings.Contains(address, ":") {
		bits = 128
	}
	got := h.leases(fmt.Sprintf("%s/%d", address, bits))
	if len(got) != 1 || !macFits(h.Berth, got[0].MAC, mac) {
		h.Errorf("%s with MAC %s: Berth has %+v", address, mac, got)
	}
}

// leases returns Berth's leases inside a prefix.
func (h *Harness) leases(within string) []Lease {
	h.Helper()
	got, err := leases(h.Berth, within)
	lab.Must(h, err)
	return got
}

// lease returns the only lease of an address; without one, Kind is empty.
func (h *Harness) lease(address string) Lease {
	h.Helper()
	got := h.leases(netip.PrefixFrom(netip.MustParseAddr(address), netip.MustParseAddr(address).BitLen()).String())
	if len(got) > 1 {
		h.Fatalf("%s is on record %d times: %+v", address, len(got), got)
	}
	if len(got) == 0 {
		return Lease{}
	}
	return got[0]
}

// tail returns the last lines of a text.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// allRun waits until a restart policy has started the containers.
func (h *Harness) allRun(containers []string) {
	h.Helper()
	lab.Await(h, time.Minute, func() error {
		for _, c := range containers {
			if got, err := h.Engine.inspect(c); err != nil || got.State.Status != "running" {
				return fmt.Errorf("%s is %s (%v)", c, got.State.Status, err)
			}
		}
		return nil
	})
}
