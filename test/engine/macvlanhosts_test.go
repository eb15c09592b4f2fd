//go:build engine

package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// joinByMacvlan creates the host's Docker network on the LAN itself.
func (h *Host) joinByMacvlan(name string, options ...string) error {
	_, err := h.Engine.Docker(slices.Concat([]string{"network", "create", "--driver", "macvlan", "--opt", "parent=brl2",
		"--subnet", lanSubnet, "--gateway", "10.77.0.1"}, options, []string{name})...)
	return err
}

// Two hosts have containers on one LAN by macvlan. Docker's own IPAM counts on each host for itself, so that their
// containers get the same addresses (moby #49921). By Berth, whose hosts share a store, no address is twice, and all
// reach one another (LN-12, BO-1).
func TestMacvlanHosts(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 109)
	c.serve()
	if err := c.each(func(h *Host) error {
		return errors.Join(h.joinByMacvlan("plain"), h.startMany("plain", 3))
	}); err != nil {
		t.Fatal(err)
	}
	if all, err := c.holders("plain"); err == nil || !strings.Contains(err.Error(), " is twice: ") {
		t.Errorf("of Docker's own IPAM no address is twice any more, this test has nothing to show: %v (%v)", all, err)
	} else {
		t.Log("by Docker's own IPAM ", err)
	}
	if err := c.each(func(h *Host) error { return h.leave("plain") }); err != nil {
		t.Fatal(err)
	}

	c.hosts[0].planLAN()
	if err := c.each(func(h *Host) error {
		return errors.Join(h.joinByMacvlan("lan", "--ipam-driver", "berth", "--ipam-opt", "network=lan"),
			h.startMany("lan", 3))
	}); err != nil {
		t.Fatal(err)
	}
	all, _ := c.agree("lan", lanSubnet, 3, 3)
	c.reach(all)
	if err := c.each(func(h *Host) error { return h.leave("lan") }); err != nil {
		t.Fatal(err)
	}
}
