//go:build engine

package engine

import (
	"flag"
	"maps"
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

var lanEach = flag.Int("lan.each", 0, "how many containers each host starts at once on the LAN")

// Two hosts, and then three, start many containers at once on one network. No two containers have the same address,
// the records match the containers, and these reach one another. Then one host's engine and Berth are killed, the
// others continue, and it comes back (LN-12, BO-1, GA-22, invariants 1 to 3).
func TestLAN(t *testing.T) {
	t.Parallel()
	c := cluster(t, 3, 110)
	c.serve()
	a, b, last := c.hosts[0], c.hosts[1], c.hosts[2]
	n := sample(*lanEach, 6, 40)

	a.planLAN()
	two := *c
	two.hosts = c.hosts[:2]
	lab.Must(t, a.joinLAN(), b.joinLANBy("--ipam-opt", "gateway="+b.gateway()))
	lab.Must(t, two.each(func(h *Host) error { return h.startMany("lan", n) }))
	all, rest := two.agree("lan", lanSubnet, n, n)
	two.onlyGateways(rest, a, b)
	two.reach(all)
	two.settles("lan", n, n)
	lab.Must(t, two.each(func(h *Host) error { return h.removeAll("lan") }))

	lab.Must(t, last.joinLAN(), c.each(func(h *Host) error { return h.startMany("lan", n) }))
	all, rest = c.agree("lan", lanSubnet, n, n, n)
	c.onlyGateways(rest, a, b, last)
	c.reach(all)
	c.settles("lan", n, n, n)

	c.killed(a, all, n, max(1, n/4))
	lab.Must(t, c.each(func(h *Host) error { return h.leave("lan") }))
	for _, h := range c.hosts {
		left, err := leases(h.Berth, lanSubnet)
		if err != nil || len(left) != 1 || left[0].Address != "10.77.0.1" {
			t.Errorf("all is gone; %v has %+v (%v)", h, left, err)
		}
	}
	b.berth("network", "rm", "lan")
	if all, err := asked[[]Network](last.Berth, "network", "ls"); err != nil || len(all) > 0 {
		t.Errorf("%v still has %+v (%v)", last, all, err)
	}
}

// killed kills the engine and Berth of a host. Every host has `each` containers. Its containers run on, and the
// others' new containers get none of their addresses. Then the host comes back, with half of its containers.
func (c *Cluster) killed(h *Host, before map[string]Held, each, more int) {
	c.Helper()
	var own []Held
	update := []string{"update", "--restart", "always"}
	for _, x := range before {
		if x.Host == h.name {
			own = append(own, x)
		}
	}
	restarted := each / 2
	for _, x := range own[:restarted] {
		update = append(update, x.Container)
	}
	h.docker(update...)
	lab.Must(c, h.crash())
	rest := *c
	rest.hosts = slices.DeleteFunc(slices.Clone(c.hosts), func(x *Host) bool { return x == h })
	lab.Must(c, rest.each(func(h *Host) error { return h.startMany("lan", more) }))
	others, err := rest.holders("lan")
	lab.Must(c, err)
	for _, x := range own {
		if shown, err := showsNow(x.pid); err != nil || !strings.Contains(shown, " "+x.Address+"/") {
			c.Errorf("%s, whose engine was killed, does not run on: %s (%v)", x.Container, shown, err)
		}
		if y, ok := others[x.Address]; ok {
			c.Errorf("%s of %s, whose engine was killed, was given to %s on host %s", x.Address, x.Container,
				y.Container, y.Host)
		}
	}
	lab.Must(c, h.back())
	now := []int{each + more, each + more, each + more}
	now[slices.Index(c.hosts, h)] = restarted
	c.settles("lan", now...)
	_, other := c.agree("lan", lanSubnet, now...)
	c.onlyGateways(other, c.hosts...)
}

// reach calls all containers from one container of each host.
func (c *Cluster) reach(all map[string]Held) {
	c.Helper()
	called := slices.Collect(maps.Values(all))
	for _, h := range c.hosts {
		lab.Check(c, h.pings(called))
	}
}
