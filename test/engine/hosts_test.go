//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"berth/test/lab"
)

// HostInfo is what the tests read of `berth host ls --format json`.
type HostInfo struct {
	Name, State             string
	Present                 bool
	Pools, Leases, Headroom int
}

// hostInfo returns a host of the cluster as another host shows it.
func (h *Host) hostInfo(name string) (HostInfo, error) {
	out, err := berth(h.Berth, "host", "ls", "--format", "json")
	if err != nil {
		return HostInfo{}, err
	}
	var all []HostInfo
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return HostInfo{}, fmt.Errorf("berth host ls --format json: %w: %s", err, out)
	}
	for _, x := range all {
		if x.Name == name {
			return x, nil
		}
	}
	return HostInfo{}, fmt.Errorf("berth host ls has no host %s: %s", name, out)
}

// awaitsHost waits until this host shows another one in a state, present or not.
func (h *Host) awaitsHost(name string, state string, present bool) {
	h.Helper()
	lab.Await(h, 30*time.Second, func() error {
		x, err := h.hostInfo(name)
		if err == nil && (x.State != state || x.Present != present) {
			err = fmt.Errorf("%v shows %+v", h, x)
		}
		return err
	})
}

// Hosts are drained, removed, and admitted again.
func TestHosts(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 112)
	c.serve()
	c.hosts[0].planLAN()
	lab.Must(t, c.each((*Host).joinLAN), c.each(func(h *Host) error { return h.startMany("lan", 2) }))
	c.run("drained", c.drained)
	c.run("asked to go", c.askedToGo)
	c.run("off", c.off)
}

// run runs a part of the test as a subtest. Each part builds on the one before.
func (c *Cluster) run(name string, part func()) {
	outer := c.T
	if !outer.Run(name, func(t *testing.T) {
		c.as(t)
		defer c.as(outer)
		part()
	}) {
		outer.FailNow()
	}
}

// as makes t report the failures.
func (c *Cluster) as(t *testing.T) {
	c.T = t
	for _, h := range c.hosts {
		h.T = t
	}
}

// refusesNew checks that a host gives out nothing in the cluster's spaces, with each of the words, and still gives out
// addresses in its own space.
func (h *Host) refusesNew(words ...string) {
	h.Helper()
	h.refusesRun("lan", words...)
	own := h.network("--subnet", h.v4("0/24"))
	h.docker("rm", "--force", h.container(own))
	h.removes(own)
}

// drained: a drained host takes nothing new and keeps what it has. After `--undo` it takes part again.
func (c *Cluster) drained() {
	a, b := c.hosts[0], c.hosts[1]
	a.berth("host", "drain", "b")
	a.awaitsHost("b", "draining", true)
	b.refusesNew("draining")
	all, _ := c.agree("lan", lanSubnet, 2, 2)
	c.reach(all)
	b.dropsOne("lan")
	c.agree("lan", lanSubnet, 2, 1)
	a.berth("host", "drain", "--undo", "b")
	lab.Check(c, b.startMany("lan", 1))
	c.agree("lan", lanSubnet, 2, 2)
}

// askedToGo: a host whose daemon answers is removed. It releases everything by itself and is refused until it is
// admitted.
func (c *Cluster) askedToGo() {
	a, b := c.hosts[0], c.hosts[1]
	held, err := b.held("lan")
	lab.Must(c, err)
	// there is no terminal for a question
	a.berthRefuses([]string{"--yes", "2 addresses", held[0].Address, held[1].Address}, "host", "rm", "b")
	a.berth("host", "rm", "--yes", "b")
	a.awaitsHost("b", "removed", true)
	a.awaitsFreed("b")
	b.refusesNew("removed", "berth host admit b")
	if err := b.leave("lan"); err != nil { // it no longer owns what it releases
		c.Error(err)
	}
	a.berth("host", "admit", "b")
	a.awaitsHost("b", "", true)
	c.joinsAgain(b)
}

// awaitsFreed waits until nothing of lan is on record for another host.
func (h *Host) awaitsFreed(name string) {
	h.Helper()
	lab.Await(h, 5*time.Second, func() error {
		all, err := leases(h.Berth, lanSubnet)
		for _, l := range all {
			if l.Host == name {
				return fmt.Errorf("host %s was removed; on record is %+v", name, l)
			}
		}
		return err
	})
}

// joinsAgain checks that an admitted host can create its network again and run containers.
func (c *Cluster) joinsAgain(h *Host) {
	c.Helper()
	lab.Await(c, 30*time.Second, h.joinLAN)
	lab.Must(c, h.startMany("lan", 2))
	all, _ := c.agree("lan", lanSubnet, 2, 2)
	c.reach(all)
	c.settles("lan", 2, 2)
}

// off: the machine of a host is gone. With --off, `berth host rm` frees what the host held. If the host comes back, it
// is refused until it is admitted. Its old holds do not count against the new holders.
func (c *Cluster) off() {
	a, b := c.hosts[0], c.hosts[1]
	held, err := b.held("lan")
	lab.Must(c, err)
	lab.Must(c, b.crash())
	a.awaitsHost("b", "", false)
	a.berthRefuses([]string{"does not answer", "--off"}, "host", "rm", "--yes", "b")
	if l := a.lease(held[0].Address); l.Host != "b" {
		c.Errorf("%s, which %s has: on record is %+v", held[0].Address, held[0].Container, l)
	}
	a.berth("host", "rm", "--off", "--yes", "b")
	a.awaitsHost("b", "removed", false)
	a.awaitsFreed("b")
	// A container on another host takes one of its addresses.
	name := a.Harness.name()
	a.docker("run", "--detach", "--name", name, "--network", "lan", "--ip", held[0].Address, imageName, "sleep",
		"1000000")
	lab.Must(c, b.back())
	b.refusesNew("removed", "berth host admit b")
	lab.Check(c, b.leave("lan"))
	if l := a.lease(held[0].Address); l.Host != "a" {
		c.Errorf("%s of host a's %s: on record is %+v", held[0].Address, name, l)
	}
	a.docker("rm", "--force", name)
	a.berth("host", "admit", "b")
	a.awaitsHost("b", "", true)
	c.joinsAgain(b)
}
