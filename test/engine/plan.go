//go:build engine

package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth/test/ground"
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

// pools are the ranges of a subnet's pools, as "NAME START-END".
func (s Subnet) pools() string {
	var all []string
	for _, p := range s.Pools {
		all = append(all, fmt.Sprintf("%s %s-%s", p.Name, p.Start, p.End))
	}
	return strings.Join(all, ", ")
}

// enterPlanned gives a scenario its number, and removes what it planned when its containers and Docker networks are
// gone.
func enterPlanned(t *testing.T, e Engine, b Berth, number int) *House {
	h := enter(t, e, b, number)
	t.Cleanup(func() { // runs before that of enter
		err := removeContainers(e, h.prefix())
		kept, rmErr := removeNetworks(e, h.prefix())
		if err = errors.Join(err, rmErr); err != nil {
			t.Error(err)
		}
		// a network of Docker's can go between the list and its removal
		if err := ground.Eventually(counting, func() error { return removePlans(b) }); err != nil && len(kept) == 0 {
			t.Error(err)
		}
	})
	return h
}

// removePlans removes all networks of a Berth with the addresses that were taken and reserved in them.
func removePlans(b Berth) error {
	out, err := berth(b, "address", "ls", "--format", "json")
	if err != nil {
		return err
	}
	var taken []struct{ Network, Owner, Address string }
	if err := json.Unmarshal([]byte(out), &taken); err != nil {
		return fmt.Errorf("berth address ls --format json: %w: %s", err, out)
	}
	for _, a := range taken {
		if _, releaseErr := berth(b, "address", "release", a.Network, "--owner", a.Owner); releaseErr != nil {
			err = errors.Join(err, releaseErr)
		}
	}
	all, listErr := networks(b)
	for _, n := range all {
		if _, rmErr := berth(b, "network", "rm", n.Name, "--force"); rmErr != nil {
			err = errors.Join(err, rmErr)
		}
	}
	return errors.Join(err, listErr)
}

// networks asks Berth's command line for the networks that it has.
func networks(b Berth) ([]Network, error) {
	out, err := berth(b, "network", "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	var all []Network
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("berth network ls --format json: %w: %s", err, out)
	}
	return all, nil
}

// plan creates a network of Berth's and returns its name.
func (h *House) plan(options ...string) string {
	h.Helper()
	name := h.name()
	h.berth(append([]string{"network", "create", name}, options...)...)
	return name
}

// berth runs a command of Berth's that must succeed.
func (h *House) berth(args ...string) string {
	h.Helper()
	out, err := berth(h.Berth, args...)
	if err != nil {
		h.Fatal(err)
	}
	return out
}

// berthRefuses runs a command of Berth's that must fail with an error that holds each of the words.
func (h *House) berthRefuses(words []string, args ...string) {
	h.Helper()
	out, err := berth(h.Berth, args...)
	if err == nil {
		h.Fatalf("berth %s was not refused: %s", strings.Join(args, " "), out)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			h.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

// show is a network as Berth shows it.
func (h *House) show(name string) Network {
	h.Helper()
	out := h.berth("network", "show", name, "--format", "json")
	var n Network
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		h.Fatalf("berth network show: %v: %s", err, out)
	}
	return n
}

// on creates a Docker network on a planned one.
func (h *House) on(planned string, options ...string) string {
	h.Helper()
	return h.network(append([]string{"--ipam-opt", "network=" + planned}, options...)...)
}

// span is the range from one of the scenario's addresses to another.
func (h *House) span(from, to int) string {
	return h.v4(fmt.Sprint(from)) + "-" + h.v4(fmt.Sprint(to))
}

// gets runs containers on a network and checks that they have exactly these addresses, of which the first ones may come
// in any order. It returns their names.
func (h *House) gets(network string, last ...string) []string {
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
func (h *House) full(network string, words ...string) {
	h.Helper()
	name := h.name()
	h.refused(words, containerCommand(name, network)...)
	h.docker("rm", "-f", name)
}
