//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// HostInfo is what the tests read of `berth host ls --format json`.
type HostInfo struct {
	Name, State             string
	Present                 bool
	Pools, Leases, Headroom int
}

// hostInfo is a host of the cluster as another one shows it.
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

// awaitsHost waits until a host is seen by another one as it should be.
func (h *Host) awaitsHost(name string, state string, present bool) {
	h.Helper()
	if err := ground.Eventually(30*time.Second, func() error {
		x, err := h.hostInfo(name)
		if err == nil && (x.State != state || x.Present != present) {
			err = fmt.Errorf("%v shows %+v", h, x)
		}
		return err
	}); err != nil {
		h.Fatal(err)
	}
}

// Hosts share a subnet that nobody planned, are of one name, are drained, removed, and let in again.
func TestHosts(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 112)
	c.serve()
	c.run("last network ends the subnet", c.lastEnds)
	c.run("one name twice", c.oneNameTwice)
	c.hosts[0].planLAN()
	if err := c.each((*Host).joinLAN); err != nil {
		t.Fatal(err)
	}
	if err := c.each(func(h *Host) error { return h.startMany("lan", 2) }); err != nil {
		t.Fatal(err)
	}
	c.run("drained", c.drained)
	c.run("asked to go", c.askedToGo)
	c.run("off", c.off)
}

// run runs a part of the test as one of its own. Each part builds on the one before.
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

// as has t told what fails.
func (c *Cluster) as(t *testing.T) {
	c.T = t
	for _, h := range c.hosts {
		h.T = t
	}
}

// lastEnds: the subnet of two hosts' Docker networks, which no person planned, has one gateway, which is nobody's while
// one of them is there, and ends with the last of them (issue: "the last host's docker network rm ends a subnet that
// was not planned").
func (c *Cluster) lastEnds() {
	a, b := c.hosts[0], c.hosts[1]
	const subnet, gateway = "10.78.0.0/24", "10.78.0.1"
	for _, h := range c.hosts {
		h.docker("network", "create", "--driver", "bridge", "--ipam-driver", "berth", "--ipam-opt", "space=global",
			"--subnet", subnet, "ext")
		if err := h.startMany("ext", 3); err != nil {
			c.Fatal(err)
		}
	}
	_, rest := c.agree("ext", subnet, 3, 3)
	if len(rest) != 1 || rest[0].Address != gateway || rest[0].Kind != "gateway" {
		c.Errorf("beside the containers this is on record: %+v", rest)
	}
	if err := a.leave("ext"); err != nil {
		c.Fatal(err)
	}
	_, rest = c.agree("ext", subnet, 0, 3)
	if len(rest) != 1 || rest[0].Address != gateway || rest[0].Kind != "gateway" {
		c.Errorf("%v has left; beside the containers this is on record: %+v", a, rest)
	}
	name := b.House.name()
	b.refused([]string{gateway}, "run", "--detach", "--name", name, "--network", "ext", "--ip", gateway, imageName,
		"sleep", "1000000")
	b.docker("rm", "--force", name)
	if err := b.startMany("ext", 1); err != nil {
		c.Error(err)
	}
	c.agree("ext", subnet, 0, 4)
	if err := b.leave("ext"); err != nil {
		c.Fatal(err)
	}
	for _, h := range c.hosts {
		left, err := leases(h.Berth, subnet)
		all, listErr := networks(h.Berth)
		if err != nil || listErr != nil || len(left)+len(all) > 0 {
			c.Errorf("both have left; %v has %+v and %+v (%v, %v)", h, left, all, err, listErr)
		}
	}
}

// oneNameTwice: a second daemon under a host's name is refused, whether it begins with nothing or with a copy of the
// first one's state.
func (c *Cluster) oneNameTwice() {
	a, b := c.hosts[0], c.hosts[1]
	second := c.berthOf(b, "a")
	second.Name, second.Dir = "second", filepath.Join(base, prefix+"second")
	c.Cleanup(func() {
		if err := os.RemoveAll(second.Dir); err != nil {
			c.Error(err)
		}
	})
	if err := second.start(); err != nil {
		c.Fatal(err)
	}
	defer func() {
		if err := second.Stop(); err != nil {
			c.Error(err)
		}
	}()
	// Its own space works; the cluster's do not.
	if err := ground.Eventually(20*time.Second, func() error {
		out, err := b.Engine.Docker("network", "create", "--driver", "bridge", "--ipam-driver", "second", "--ipam-opt",
			"space=global", "--subnet", "10.78.1.0/24", "twin")
		if err == nil {
			c.Fatalf("a second host of the name a was given a subnet: %s", out)
		}
		if !strings.Contains(err.Error(), "there is a host a in the cluster already") {
			return err
		}
		return nil
	}); err != nil {
		c.Error(err)
	}
	b.docker("network", "create", "--driver", "bridge", "--ipam-driver", "second", "--subnet", b.v4("0/24"), "twin")
	b.removes("twin")
	a.docker("network", "create", "--driver", "bridge", "--ipam-driver", "berth", "--ipam-opt", "space=global",
		"--subnet", "10.78.1.0/24", "twin")
	a.removes("twin")
}

// refusesNew checks that a host gives out nothing in the cluster's spaces, with each of the words, and goes on in its
// own.
func (h *Host) refusesNew(words ...string) {
	h.Helper()
	name := h.House.name()
	h.refused(words, "run", "--detach", "--name", name, "--network", "lan", imageName, "sleep", "1000000")
	h.docker("rm", "--force", name)
	own := h.network("--subnet", h.v4("0/24"))
	h.docker("rm", "--force", h.container(own))
	h.removes(own)
}

// drained: a host that is drained takes nothing new, keeps what it has, and takes part again.
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
	if err := b.startMany("lan", 1); err != nil {
		c.Error(err)
	}
	c.agree("lan", lanSubnet, 2, 2)
}

// askedToGo: a host whose daemon answers gives back all it has by itself when it is removed, and is refused until it is
// let in.
func (c *Cluster) askedToGo() {
	a, b := c.hosts[0], c.hosts[1]
	held, err := b.held("lan")
	if err != nil {
		c.Fatal(err)
	}
	// nobody can be asked
	a.berthRefuses([]string{"--yes", "2 addresses", held[0].Address, held[1].Address}, "host", "rm", "b")
	a.berth("host", "rm", "--yes", "b")
	a.awaitsHost("b", "removed", true)
	a.awaitsFreed("b")
	b.refusesNew("removed", "berth host admit b")
	if err := b.leave("lan"); err != nil { // what it gives back is nobody's any more
		c.Error(err)
	}
	a.berth("host", "admit", "b")
	a.awaitsHost("b", "", true)
	c.joinsAgain(b)
}

// awaitsFreed waits until nothing of lan is on record for another host.
func (h *Host) awaitsFreed(name string) {
	h.Helper()
	if err := ground.Eventually(5*time.Second, func() error {
		all, err := leases(h.Berth, lanSubnet)
		for _, l := range all {
			if l.Host == name {
				return fmt.Errorf("host %s was removed; on record is %+v", name, l)
			}
		}
		return err
	}); err != nil {
		h.Fatal(err)
	}
}

// joinsAgain has a host that was let in again create its network and run containers.
func (c *Cluster) joinsAgain(h *Host) {
	c.Helper()
	if err := ground.Eventually(30*time.Second, h.joinLAN); err != nil {
		c.Fatal(err)
	}
	if err := h.startMany("lan", 2); err != nil {
		c.Fatal(err)
	}
	all, _ := c.agree("lan", lanSubnet, 2, 2)
	c.reach(all)
	c.settles("lan", 2, 2)
}

// off: what a host holds whose machine is gone is freed when a person says so. When it comes back all the same, it is
// refused until it is let in, and what it still thinks to hold is no hold on what others have by then.
func (c *Cluster) off() {
	a, b := c.hosts[0], c.hosts[1]
	held, err := b.held("lan")
	if err != nil {
		c.Fatal(err)
	}
	if err := b.crash(); err != nil {
		c.Fatal(err)
	}
	a.awaitsHost("b", "", false)
	a.berthRefuses([]string{"does not answer", "--off"}, "host", "rm", "--yes", "b")
	if l := a.lease(held[0].Address); l.Host != "b" {
		c.Errorf("%s, which %s has: on record is %+v", held[0].Address, held[0].Container, l)
	}
	a.berth("host", "rm", "--off", "--yes", "b")
	a.awaitsHost("b", "removed", false)
	a.awaitsFreed("b")
	// Somebody else takes one of its addresses.
	name := a.House.name()
	a.docker("run", "--detach", "--name", name, "--network", "lan", "--ip", held[0].Address, imageName, "sleep",
		"1000000")
	if err := b.back(); err != nil {
		c.Fatal(err)
	}
	b.refusesNew("removed", "berth host admit b")
	if err := b.leave("lan"); err != nil {
		c.Error(err)
	}
	if l := a.lease(held[0].Address); l.Host != "a" {
		c.Errorf("%s of host a's %s: on record is %+v", held[0].Address, name, l)
	}
	a.docker("rm", "--force", name)
	a.berth("host", "admit", "b")
	a.awaitsHost("b", "", true)
	c.joinsAgain(b)
}
