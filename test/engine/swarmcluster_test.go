//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// managers makes a swarm of the cluster's hosts. Each is a manager with Berth as a managed plugin, because a swarm
// accepts no other kind.
func (c *Cluster) managers() {
	c.Helper()
	for _, h := range c.hosts {
		p := &Plugin{Name: prefix + "swarm:latest", Sockets: h.engine.Sockets, engine: h.Engine, binary: binary}
		h.Berth = p
		lab.Must(c, makePlugin(h.Engine, p.Name, binary))
		h.docker("plugin", "set", p.Name, "BERTH_STORE=etcd", "BERTH_ETCD_ENDPOINTS="+etcdURL, "BERTH_HOST="+
			h.name)
		lab.Must(c, p.Enable())
	}
	first := c.hosts[0]
	first.docker("swarm", "init", "--advertise-addr", first.address)
	token := first.docker("swarm", "join-token", "--quiet", "manager")
	for _, h := range c.hosts[1:] {
		h.docker("swarm", "join", "--advertise-addr", h.address, "--token", token, first.address+":2377")
	}
}

// crashSwarm kills a node's engine and its plugin. All its other processes continue.
func (h *Host) crashSwarm() error {
	if err := h.engine.Kill(); err != nil {
		return err
	}
	return h.Berth.Kill()
}

func (h *Host) backSwarm() error {
	if err := h.engine.Start(); err != nil {
		return err
	}
	return h.Berth.Revive()
}

// leader waits until the managers have a leader other than the given one and returns it.
func (c *Cluster) leader(not *Host) (leader *Host) {
	c.Helper()
	lab.Await(c, time.Minute, func() error {
		for _, h := range c.hosts {
			if h == not {
				continue
			}
			out, err := h.Engine.Docker("node", "inspect", "self", "--format", "{{.ManagerStatus.Leader}}")
			if err != nil {
				return err
			}
			if out == "true" {
				leader = h
				return nil
			}
		}
		return fmt.Errorf("the managers have no leader")
	})
	return leader
}

// service creates a service on a network and returns its name.
func (h *Host) service(network string, replicas int) string {
	h.Helper()
	name := h.Harness.name()
	h.docker(append([]string{"service", "create", "--detach", "--name", name, "--replicas", fmt.Sprint(replicas),
		"--network", network,
		"--no-resolve-image", "--restart-delay", "1s", imageName}, sleepForever...)...)
	return name
}

// tasks waits until want containers of a swarm's services run on a network, on the given hosts, and returns them.
func (c *Cluster) tasks(network string, want int, hosts ...*Host) (all map[string]Held) {
	c.Helper()
	some := *c
	some.hosts = hosts
	begun := time.Now()
	lab.Await(c, 3*time.Minute, func() (err error) {
		if all, err = some.holders(network); err != nil {
			return err
		}
		if len(all) != want {
			if time.Since(begun) > time.Minute {
				begun = time.Now()
				if err := hosts[0].reschedule(); err != nil {
					return err
				}
			}
			ps, _ := hosts[0].Engine.Docker("service", "ls")
			return fmt.Errorf("%d of %d tasks run:\n%s", len(all), want, ps)
		}
		return nil
	})
	return all
}

// reschedule replaces the tasks that wait for a node, as a person would: it scales their services down and up again.
// After a change of leader a scheduler of Docker 20.10 can leave such a task waiting for good, although all nodes are
// ready.
func (h *Host) reschedule() error {
	services, err := h.Engine.Docker("service", "ls", "--format", "{{.Name}}")
	if err != nil {
		return err
	}
	for service := range strings.FieldsSeq(services) {
		states, err := h.Engine.Docker("service", "ps", "--filter", "desired-state=running", "--format",
			"{{.CurrentState}}", service)
		if err != nil {
			return err
		}
		waiting := strings.Count(states, "Pending")
		if waiting == 0 {
			continue
		}
		text, err := h.Engine.Docker("service", "inspect", "--format", "{{.Spec.Mode.Replicated.Replicas}}", service)
		if err != nil {
			return err
		}
		want, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		for _, n := range []int{want - waiting, want} {
			err := lab.Eventually(20*time.Second, func() error { // refused while the swarm updates the service itself
				_, err := h.Engine.Docker("service", "scale", "--detach", fmt.Sprintf("%s=%d", service, n))
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// virtual returns the addresses of services on a network, and checks that no two services share one.
func (h *Host) virtual(services ...string) map[string]string {
	h.Helper()
	all := map[string]string{}
	for _, service := range services {
		var got []struct{ Addr string }
		out := h.docker("service", "inspect", "--format", "{{json .Endpoint.VirtualIPs}}", service)
		if err := json.Unmarshal([]byte(out), &got); err != nil || len(got) != 1 {
			h.Fatalf("the addresses of %s are %s (%v)", service, out, err)
		}
		address, _, _ := strings.Cut(got[0].Addr, "/")
		if other, ok := all[address]; ok {
			h.Errorf("%s and %s both have %s", other, service, address)
		}
		all[address] = service
	}
	return all
}

// recorded waits until every host shows the swarm's addresses in the global space, and no others: each task's and each
// service's address, the gateway, and one for each node that balances the load. No address may be there twice.
func (c *Cluster) recorded(subnet string, tasks map[string]Held, virtual map[string]string, nodes int,
	hosts ...*Host) (global map[string]Lease) {
	c.Helper()
	for address, service := range virtual {
		if x, ok := tasks[address]; ok {
			c.Errorf("%s is %s's and %s's", address, service, x.Container)
		}
	}
	lab.Await(c, 90*time.Second, func() error {
		for _, h := range hosts {
			all, err := leases(h.Berth, subnet)
			if err != nil {
				return err
			}
			global = map[string]Lease{}
			local := map[string]Lease{}
			for _, l := range all {
				space := map[string]map[string]Lease{"global": global, "local": local}[l.Space]
				if other, twice := space[l.Address]; twice || space == nil {
					c.Fatalf("%v: %+v beside %+v", h, l, other)
				}
				space[l.Address] = l
			}
			for _, wanted := range [][]string{slices.Collect(maps.Keys(tasks)), slices.Collect(maps.Keys(virtual))} {
				for _, address := range wanted {
					if _, ok := global[address]; !ok {
						return fmt.Errorf("%v: %s is not on record: %v", h, address, global)
					}
				}
			}
			if want := 1 + len(tasks) + len(virtual) + nodes; len(global) != want {
				return fmt.Errorf("%v has %d addresses on record, not %d: %+v; tasks %v; services %v", h, len(global),
					want, global, tasks, virtual)
			}
		}
		return nil
	})
	return global
}

// Three managers of a swarm share a store. Services are scaled, the leader is killed, they are scaled again, and the
// leader comes back. Each task and each service keeps its own address throughout. A new leader requests all addresses
// again and takes none twice (invariants 1 and 3).
func TestSwarmCluster(t *testing.T) {
	t.Parallel()
	c := cluster(t, 3, 113)
	c.managers()
	a := c.leader(nil)
	subnet := a.v4("0/24")
	n := a.Harness.name()
	a.docker("network", "create", "--driver", "overlay", "--attachable", "--ipam-driver", a.Berth.Driver(), "--subnet",
		subnet, n)
	webs, dbs := []int{3, 6, 8, 12}, []int{3, 3, 4, 6} // the services are scaled to these numbers
	if testing.Short() {
		webs, dbs = []int{2, 3, 4, 5}, []int{2, 2, 3, 4} // enough for some on each node
	}
	web, db := a.service(n, webs[0]), a.service(n, dbs[0])
	tasks := c.tasks(n, webs[0]+dbs[0], c.hosts...)
	virtual := a.virtual(web, db)
	c.recorded(subnet, tasks, virtual, 3, c.hosts...)
	c.reach(tasks)
	scale := func(by *Host, to int, hosts ...*Host) map[string]Held {
		t.Helper()
		lab.Await(t, 20*time.Second, func() error { // the swarm refuses it while it updates a service itself
			_, err := by.Engine.Docker("service", "scale", "--detach", fmt.Sprintf("%s=%d", web, webs[to]),
				fmt.Sprintf("%s=%d", db, dbs[to]))
			return err
		})
		return c.tasks(n, webs[to]+dbs[to], hosts...)
	}
	tasks = scale(a, 1, c.hosts...)
	before := c.recorded(subnet, tasks, virtual, 3, c.hosts...)

	lab.Must(t, a.crashSwarm())
	b := c.leader(a)
	rest := slices.DeleteFunc(slices.Clone(c.hosts), func(h *Host) bool { return h == a })
	now := scale(b, 2, rest...)
	c.apart(a, tasks, now)
	if again := b.virtual(web, db); !maps.Equal(again, virtual) {
		t.Errorf("the services had %v, and with another leader they have %v", virtual, again)
	}
	c.stay(b, subnet, before)
	// The old leader's leases belong to the new leader now. Removing the old one from the cluster ends no lease of
	// the swarm.
	b.awaitsHost("a", "", false)
	b.berth("host", "rm", "--off", "--yes", "a")
	c.stay(b, subnet, before)

	lab.Must(t, a.backSwarm())
	b.berth("host", "admit", "a")
	b.awaitsHost("a", "", true)
	tasks = scale(b, 3, c.hosts...)
	c.recorded(subnet, tasks, virtual, 3, c.hosts...)
	c.reach(tasks)

	b.docker("service", "rm", web, db)
	lab.Await(t, 2*time.Minute, func() error {
		_, err := b.Engine.Docker("network", "rm", n)
		return err
	})
	c.recorded(subnet, nil, nil, -1, c.hosts...)
	c.nodesGiveBack(a, subnet, before)
}

// apart checks that no task has an address of a task that still runs on the node whose engine is dead.
func (c *Cluster) apart(dead *Host, before, now map[string]Held) {
	c.Helper()
	ran := 0
	for address, x := range before {
		if x.Host != dead.name {
			continue
		}
		if _, err := showsNow(x.pid); err != nil {
			continue
		}
		ran++
		if y, ok := now[address]; ok {
			c.Errorf("%s of %s on %v, which runs on, was given to %s on host %s", address, x.Container, dead,
				y.Container, y.Host)
		}
	}
	c.Logf("%d tasks run on where the engine is dead", ran)
}

// stay checks that the swarm's leases are still the same ones: another leader requests them all again and takes
// nothing again.
func (c *Cluster) stay(h *Host, subnet string, before map[string]Lease) {
	c.Helper()
	all, err := leases(h.Berth, subnet)
	lab.Must(c, err)
	for address, l := range before {
		if !slices.ContainsFunc(all,
			func(x Lease) bool { return x.Address == address && x.Space == "global" && x.ID == l.ID }) {
			c.Errorf("%+v was on record, and is not with another leader", l)
		}
	}
}

// nodesGiveBack waits until the nodes have released everything in their own spaces. Only the node whose engine was
// killed may keep old addresses: they are never released.
func (c *Cluster) nodesGiveBack(killed *Host, subnet string, before map[string]Lease) {
	c.Helper()
	lab.Check(c, lab.Eventually(time.Minute, func() error {
		for _, h := range c.hosts {
			all, err := leases(h.Berth, subnet)
			if err != nil {
				return err
			}
			for _, l := range all {
				if _, old := before[l.Address]; h != killed || !old {
					return fmt.Errorf("the network is gone; %v has %+v", h, l)
				}
			}
		}
		return nil
	}))
}
