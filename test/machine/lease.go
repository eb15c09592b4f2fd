//go:build machine

package machine

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/test/lab"
)

// Lease holds the fields that the tests read from one lease in `berth lease ls --format json`.
type Lease struct {
	ID      uint64 `json:"id"` // unique, even among leases of the same address
	Address string `json:"address"`
	Kind    string `json:"kind"`
	Owner   string `json:"owner"`
}

func decodeLeases(out string) (map[string]Lease, error) {
	var list []Lease
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("berth lease ls --format json: %w:\n%s", err, out)
	}
	all := map[string]Lease{}
	for _, l := range list {
		if other, doubled := all[l.Address]; doubled {
			return nil, fmt.Errorf("two leases of one address: %+v, %+v", l, other)
		}
		all[l.Address] = l
	}
	return all, nil
}

// Berth runs Berth's command line on the machine.
func (m *Machine) Berth(args ...string) (string, error) {
	return m.In(append([]string{"berth"}, args...)...)
}

// leases are Berth's leases inside a prefix, by address.
func (m *Machine) leases(within string) (map[string]Lease, error) {
	prefix, err := netip.ParsePrefix(within)
	if err != nil {
		return nil, err
	}
	out, err := m.Berth("lease", "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	all, err := decodeLeases(out)
	maps.DeleteFunc(all, func(address string, _ Lease) bool {
		a, err := netip.ParseAddr(address)
		return err != nil || !prefix.Contains(a)
	})
	return all, err
}

// agreed checks that the leases of a subnet are exactly the addresses of these containers.
func (m *Machine) agreed(subnet string, containers map[string]Container) error {
	held, err := m.leases(subnet)
	if err != nil {
		return err
	}
	maps.DeleteFunc(held, func(_ string, l Lease) bool { return l.Kind == "gateway" })
	var want []string
	for _, c := range containers {
		want = append(want, c.Address)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(held)); !slices.Equal(got, want) {
		return fmt.Errorf("of %s Berth has %v on record, and the containers have %v", subnet, got, want)
	}
	return nil
}

// sound waits until `berth check` reports no problem.
func (m *Machine) sound() error {
	return lab.Eventually(30*time.Second, func() error {
		out, err := m.Berth("check")
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
}

// pin pins each container of a network to its present address.
func (m *Machine) pin(network string) error {
	_, err := m.Berth("pin", "--network", network, "--yes")
	return err
}
