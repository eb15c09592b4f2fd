//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// One host is cut off from etcd, and the other continues. The first host refuses new addresses of the shared spaces,
// with the reason. Its own space works. It keeps releases for later and gives out its claimed headroom. After the
// reconnection everything settles by itself. At no moment do two containers have the same address (invariants 1, 2, 4,
// 6 and 7).
func TestAway(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 111)
	c.serve()
	a, b := c.hosts[0], c.hosts[1]
	a.planLAN()
	a.berth("network", "create", "spare", "--space", "global", "--subnet", spareSubnet+",gateway=10.79.0.1,pool",
		"--headroom", fmt.Sprint(spare()))
	lab.Must(t, c.each(func(h *Host) error {
		if err := h.joinLAN(); err != nil {
			return err
		}
		if err := h.joinSpare(); err != nil {
			return err
		}
		_, err := h.Engine.Docker(h.networkCommand("own", "--subnet", h.v4("0/24"))...)
		return err
	}))
	lab.Must(t, c.each(func(h *Host) error {
		for _, network := range []string{"lan", "spare", "own"} {
			if err := h.startMany(network, 3); err != nil {
				return err
			}
		}
		return nil
	}))
	before, _ := c.agree("lan", lanSubnet, 3, 3)
	claimed := c.headroom(b, spare())
	c.headroom(a, spare())
	pool := b.lease(b.gateway()).Pool

	lab.Must(t, cutOff(b.engine.name))
	b.refusesAway(pool)
	c.reach(before) // running containers continue
	lab.Check(t, lab.Eventually(20*time.Second, func() error {
		st, err := b.away()
		if err == nil && st.Away == "" {
			err = fmt.Errorf("berth status says %+v", st)
		}
		return err
	}))
	if err := b.startMany("own", 3); err != nil {
		t.Errorf("a network of the host's own space: %v", err)
	}
	waited, err := b.away() // the first request may have left one
	gone := b.dropsOne("lan")
	if st, stErr := b.away(); err != nil || stErr != nil || st.Waiting != waited.Waiting+1 {
		t.Errorf("a container of the shared network was removed, while etcd is out of reach: %+v, before that %+v "+
			"(%v, %v)", st, waited, stErr, err)
	}
	lab.Must(t, a.startMany("lan", more()))
	if l := a.lease(gone); l.Host != "b" {
		t.Errorf("%s was given back on a host that is cut off; %v shows %+v", gone, a, l)
	}

	c.outOfHeadroom(claimed)

	// The Berth of the cut-off host is killed, too, and starts without etcd. It still knows its kept releases.
	lab.Must(t, b.Berth.Kill(), b.Berth.Revive())
	if err := b.startMany("own", 1); err != nil {
		t.Errorf("a network of the host's own space, etcd was never reached: %v", err)
	}
	b.refusesAway(pool)
	again := b.dropsOne("lan")
	b.dropsOne("spare")

	lab.Must(t, reconnect(b.engine.name), b.reaches())
	for _, address := range []string{gone, again} {
		if l := a.lease(address); l.Host == "b" {
			t.Errorf("%s was given back, and the host is reached again; %v shows %+v", address, a, l)
		}
	}
	c.settled()
	c.headroom(b, spare())
	lab.Check(t, b.startMany("lan", 5))
	c.settled()
}

// spare returns the headroom of each host on the network spare.
func spare() int { return sample(0, 4, 16) }

// more returns how many containers one host starts while the other is cut off.
func more() int { return sample(0, 4, 20) }

// spareSubnet is the subnet of the network spare. Each host has a headroom there.
const spareSubnet = "10.79.0.0/24"

// joinSpare creates the host's Docker network on spare, with a bridge that no other host sees.
func (h *Host) joinSpare() error {
	_, err := h.Engine.Docker("network", "create", "--driver", "bridge", "--ipam-driver", "berth", "--ipam-opt",
		"network=spare",
		"--ipam-opt", "gateway=10.79.0.25"+h.address[len(h.address)-1:], "spare")
	return err
}

// headroom waits until all hosts show that one host has claimed want addresses of spare in advance. It returns them.
func (c *Cluster) headroom(of *Host, want int) (addresses []string) {
	c.Helper()
	lab.Await(c, 30*time.Second, func() error {
		for _, h := range c.hosts {
			all, err := leases(h.Berth, spareSubnet)
			if err != nil {
				return err
			}
			addresses = nil
			for _, l := range all {
				if l.Kind == "headroom" && l.Host == of.name {
					addresses = append(addresses, l.Address)
				}
			}
			if len(addresses) != want {
				return fmt.Errorf("%v shows a headroom of %d for host %s: %v", h, len(addresses), of.name, addresses)
			}
		}
		return nil
	})
	return addresses
}

// refusesAway checks that the cut-off host and its engine refuse an address of lan, with the reason.
func (h *Host) refusesAway(pool string) {
	h.Helper()
	got, err := takeByHand(h.daemon.PluginSocket(), pool, "", "02:62:74:00:b1:01")
	if err == nil || !strings.Contains(err.Error(), "out of reach") &&
		!strings.Contains(err.Error(), "did not answer in time") {
		h.Errorf("cut off from etcd: Berth gave %s (%v)", got, err)
	}
	h.refusesRun("lan", "out of reach")
}

// refusesRun checks that a container on a network is refused, with each of the words.
func (h *Host) refusesRun(network string, words ...string) {
	h.Helper()
	name := h.Harness.name()
	h.refused(words, containerCommand(name, network)...)
	h.docker("rm", "--force", name)
}

// dropsOne removes one of the host's containers on a network and returns its address.
func (h *Host) dropsOne(network string) string {
	h.Helper()
	held, err := h.held(network)
	if err != nil || len(held) == 0 {
		h.Fatalf("%v has %v on %s (%v)", h, held, network, err)
	}
	h.docker("rm", "--force", held[0].Container)
	return held[0].Address
}

// outOfHeadroom checks that the second host, which is cut off, gives out all its claimed addresses and then refuses.
// The first host continues.
func (c *Cluster) outOfHeadroom(claimed []string) {
	c.Helper()
	a, b := c.hosts[0], c.hosts[1]
	had, err := b.held("spare")
	lab.Must(c, err)
	lab.Must(c, c.each(func(h *Host) error {
		if h == a {
			return h.startMany("spare", more())
		}
		return h.startMany("spare", len(claimed))
	}))
	all, err := c.holders("spare")
	lab.Must(c, err)
	out := 0
	for address, x := range all {
		if x.Host != b.name || slices.ContainsFunc(had, func(y Held) bool { return y.Container == x.Container }) {
			continue
		}
		if out++; !slices.Contains(claimed, address) {
			c.Errorf("%s of %s is none of those that were claimed: %v", address, x.Container, claimed)
		}
	}
	if out != len(claimed) {
		c.Errorf("%d of %d containers started out of the headroom", out, len(claimed))
	}
	b.refusesRun("spare", "out of reach")
}

// settled waits until each Berth's records of the shared networks match the addresses of all containers, and `berth
// check` finds nothing.
func (c *Cluster) settled() {
	c.Helper()
	lab.Await(c, time.Minute, func() error {
		for network, subnet := range map[string]string{"lan": lanSubnet, "spare": spareSubnet} {
			all, err := c.holders(network)
			if err != nil {
				c.Fatal(err) // a duplicate address: waiting does not help
			}
			for _, h := range c.hosts {
				rest, err := recordsOf(h.Berth, subnet, all)
				if err != nil {
					return fmt.Errorf("%v: %w", h, err)
				}
				for _, l := range rest {
					if l.Kind != "gateway" && l.Kind != "headroom" {
						return fmt.Errorf("%v has on record what no container has: %+v", h, l)
					}
				}
			}
		}
		return c.each((*Host).clean)
	})
}
