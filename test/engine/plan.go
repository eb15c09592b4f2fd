//go:build engine

package engine

import (
	"errors"
	"fmt"
	"strings"

	"berth/test/lab"
)

// Network is what the tests read of `berth network show --format json`.
type Network struct {
	ID, Name, Space string
	CIDR, Gateway   string
	Subnets         []Subnet
	Docker          int
	Planned         bool
	Use             struct{ Reserved int }
}

// Subnet is one subnet of a Network.
type Subnet struct {
	CIDR, Name, Gateway string
	Pools               []struct{ Name, Start, End, Map string }
	Exclusions          []struct{ Start, End, Note string }
	Docker              int
}

// pools returns the ranges of a subnet's pools, as "NAME START-END".
func (s Subnet) pools() string {
	var all []string
	for _, p := range s.Pools {
		all = append(all, fmt.Sprintf("%s %s-%s", p.Name, p.Start, p.End))
	}
	return strings.Join(all, ", ")
}

// removePlans removes all networks of a Berth, with the taken and reserved addresses in them.
func removePlans(b Berth) error {
	taken, err := asked[[]struct{ Network, Owner, Address string }](b, "address", "ls")
	if err != nil {
		return err
	}
	all, err := asked[[]Network](b, "network", "ls")
	errs := []error{err}
	for _, a := range taken {
		_, err := berth(b, "address", "release", a.Network, "--owner", a.Owner)
		errs = append(errs, err)
	}
	for _, n := range all {
		_, err := berth(b, "network", "rm", n.Name, "--force")
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// plan creates a Berth network and returns its name.
func (h *Harness) plan(options ...string) string {
	h.Helper()
	name := h.name()
	h.berth(append([]string{"network", "create", name}, options...)...)
	return name
}

// berth runs a Berth command that must succeed.
func (h *Harness) berth(args ...string) string {
	h.Helper()
	out, err := berth(h.Berth, args...)
	lab.Must(h, err)
	return out
}

// berthRefuses runs a Berth command that must fail with an error that contains each of the words.
func (h *Harness) berthRefuses(words []string, args ...string) {
	h.Helper()
	out, err := berth(h.Berth, args...)
	h.refusal("berth", args, out, err, words)
}

// show returns a network as Berth shows it.
func (h *Harness) show(name string) Network {
	h.Helper()
	var n Network
	h.json(&n, "network", "show", name)
	return n
}

// on creates a Docker network on a planned one.
func (h *Harness) on(planned string, options ...string) string {
	h.Helper()
	return h.network(append([]string{"--ipam-opt", "network=" + planned}, options...)...)
}

// span returns the range from one of the scenario's addresses to another.
func (h *Harness) span(from, to int) string {
	return h.v4(fmt.Sprint(from)) + "-" + h.v4(fmt.Sprint(to))
}

// gets runs containers on a network and checks that they have exactly these addresses, in any order. It returns their
// names.
func (h *Harness) gets(network string, last ...string) []string {
	h.Helper()
	wanted := map[string]bool{}
	for _, l := range last {
		wanted[h.v4(l)] = true
	}
	var names []string
	for range last {
		c := h.container(network)
		a := h.address(c, network)
		if !wanted[a] {
			h.Errorf("%s got %s; left are %v", c, a, wanted)
		}
		delete(wanted, a)
		names = append(names, c)
	}
	return names
}

// full checks that one more container is refused, with each of the words.
func (h *Harness) full(network string, words ...string) {
	h.Helper()
	name := h.name()
	h.refused(words, containerCommand(name, network)...)
	h.docker("rm", "-f", name)
}
