//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
)

// managers makes a swarm of the cluster's hosts, each a manager with Berth as a managed plugin, which is the only kind
// that a swarm takes.
func (c *Cluster) managers() {
	c.Helper()
	for _, h := range c.hosts {
		p := &Plugin{Name: prefix + "swarm:latest", Sockets: h.engine.Sockets, engine: h.Engine, binary: binary}
		h.Berth = p
		if err := makePlugin(h.Engine, p.Name, binary); err != nil {
			c.Fatal(err)
		}
		h.docker("plugin", "set", p.Name, "BERTH_STORE=etcd", "BERTH_ETCD_ENDPOINTS="+c.etcd.Endpoints(), "BERTH_HOST="+
			h.name)
		if err := p.Enable(); err != nil {
			c.Fatal(err)
		}
	}
	first := c.hosts[0]
	first.docker("swarm", "init", "--advertise-addr", first.address)
	token := first.docker("swarm", "join-token", "--quiet", "manager")
	for _, h := range c.hosts[1:] {
		h.docker("swarm", "join", "--advertise-addr", h.address, "--token", token, first.address+":2377")
	}
}

// crashSwarm kills a node's engine and its plugin. What else runs there runs on.
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

// leader waits until the managers have a leader other than one of them, and returns it.
func (c *Cluster) leader(not *Host) (leader *Host) {
	c.Helper()
	if err := ground.Eventually(time.Minute, func() error {
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
	}); err != nil {
		c.Fatal(err)
	}
	return leader
}

// service creates a service on a network and returns its name.
func (h *Host) service(network string, replicas int) string {
	h.Helper()
	name := h.House.name()
	h.docker(append([]string{"service", "create", "--detach", "--name", name, "--replicas", fmt.Sprint(replicas),
		"--network", network,
		"--no-resolve-image", "--restart-delay", "1s", imageName}, sleepForever...)...)
	return name
}

// tasks waits until so many containers of a swarm's services run on a network, on hosts that answer, and returns what
// they have.
func (c *Cluster) tasks(network string, want int, hosts ...*Host) (all map[string]Held) {
	c.Helper()
	some := *c
	some.hosts = hosts
	if err := ground.Eventually(3*time.Minute, func() (err error) {
		if all, err = some.holders(network); err != nil {
			return err
		}
		if len(all) != want {
			ps, _ := hosts[0].Engine.Docker("service", "ls")
			return fmt.Errorf("%d of %d tasks run:\n%s", len(all), want, ps)
		}
		return nil
	}); err != nil {
		c.Fatal(err)
	}
	return all
}

// virtual are the addresses of services on a network, each once.
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

// recorded waits until the cluster has on record, in the global space, what the swarm has: each task's address, the
// services' and the gateway, and one for each node that balances the load, nothing of it twice, and the same seen from
// each of the hosts.
func (c *Cluster) recorded(subnet string, tasks map[string]Held, virtual map[string]string, nodes int,
	hosts ...*Host) (global map[string]Lease) {
	c.Helper()
	for address, service := range virtual {
		if x, ok := tasks[address]; ok {
			c.Errorf("%s is %s's and %s's", address, service, x.Container)
		}
	}
	if err := ground.Eventually(90*time.Second, func() error {
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
	}); err != nil {
		c.Fatal(err)
	}
	return global
}

// Three managers of a swarm, which share a store: services are scaled, the leader is killed, they are scaled again, and
// the leader comes back. Each task and service has an address of its own at all times, and a change of the leader, who
// asks for all of it again, takes nothing twice (invariants 1 and 3).
func TestSwarmCluster(t *testing.T) {
	t.Parallel()
	c := cluster(t, 3, 113)
	c.managers()
	lap := c.laps()
	a := c.leader(nil)
	subnet := a.v4("0/24")
	n := a.House.name()
	a.docker("network", "create", "--driver", "overlay", "--attachable", "--ipam-driver", a.Berth.Driver(), "--subnet",
		subnet, n)
	webs, dbs := []int{3, 6, 8, 12}, []int{3, 3, 4, 6} // the services are scaled to
	if testing.Short() {
		webs, dbs = []int{2, 3, 4, 5}, []int{2, 2, 3, 4} // each node has some of them
	}
	web, db := a.service(n, webs[0]), a.service(n, dbs[0])
	tasks := c.tasks(n, webs[0]+dbs[0], c.hosts...)
	virtual := a.virtual(web, db)
	c.recorded(subnet, tasks, virtual, 3, c.hosts...)
	c.reach(tasks)
	scale := func(by *Host, to int, hosts ...*Host) map[string]Held {
		t.Helper()
		by.docker("service", "scale", "--detach", fmt.Sprintf("%s=%d", web, webs[to]), fmt.Sprintf("%s=%d", db, dbs[to]))
		return c.tasks(n, webs[to]+dbs[to], hosts...)
	}
	tasks = scale(a, 1, c.hosts...)
	before := c.recorded(subnet, tasks, virtual, 3, c.hosts...)
	lap("two services on three managers, one of them scaled")

	if err := a.crashSwarm(); err != nil {
		t.Fatal(err)
	}
	b := c.leader(a)
	rest := slices.DeleteFunc(slices.Clone(c.hosts), func(h *Host) bool { return h == a })
	now := scale(b, 2, rest...)
	c.apart(a, tasks, now)
	if again := b.virtual(web, db); !maps.Equal(again, virtual) {
		t.Errorf("the services had %v, and with another leader they have %v", virtual, again)
	}
	c.stay(b, subnet, before)
	lap("the leader was killed, and the services scaled")
	// What it held as the leader is the other one's by now: that it is taken out of the cluster ends nothing of the
	// swarm's.
	b.awaitsHost("a", "", false)
	b.berth("host", "rm", "--off", "--yes", "a")
	c.stay(b, subnet, before)

	if err := a.backSwarm(); err != nil {
		t.Fatal(err)
	}
	b.berth("host", "admit", "a")
	b.awaitsHost("a", "", true)
	tasks = scale(b, 3, c.hosts...)
	c.recorded(subnet, tasks, virtual, 3, c.hosts...)
	c.reach(tasks)
	lap("it is back, and the services are scaled again")

	b.docker("service", "rm", web, db)
	if err := ground.Eventually(2*time.Minute, func() error {
		_, err := b.Engine.Docker("network", "rm", n)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.recorded(subnet, nil, nil, -1, c.hosts...)
	c.nodesGiveBack(a, subnet, before)
	lap("services and network removed")
	c.nodeLocal()
	lap("node-local networks of one plan")
}

// apart checks that no task has what a task has that runs on, on a node whose engine is dead.
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

// stay checks that what was on record as the swarm's still is, by the same leases: another leader, who asks for all of
// it again, takes nothing anew.
func (c *Cluster) stay(h *Host, subnet string, before map[string]Lease) {
	c.Helper()
	all, err := leases(h.Berth, subnet)
	if err != nil {
		c.Fatal(err)
	}
	for address, l := range before {
		if !slices.ContainsFunc(all,
			func(x Lease) bool { return x.Address == address && x.Space == "global" && x.ID == l.ID }) {
			c.Errorf("%+v was on record, and is not with another leader", l)
		}
	}
}

// nodesGiveBack waits until the nodes have given back what they had in their own spaces. Only that whose engine was
// killed has something left, of before that: nobody ever gives it back.
func (c *Cluster) nodesGiveBack(killed *Host, subnet string, before map[string]Lease) {
	c.Helper()
	if err := ground.Eventually(time.Minute, func() error {
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
	}); err != nil {
		c.Error(err)
	}
}

// nodeLocal has the tasks of one service on networks of the nodes' own, whose bridges are all on one layer 2, out of
// one shared plan.
func (c *Cluster) nodeLocal() {
	a := c.leader(nil)
	const subnet = "10.77.0.0/22"
	a.planLAN()
	for _, h := range c.hosts {
		h.docker("network", "create", "--config-only", "--ipam-driver", h.Berth.Driver(), "--ipam-opt", "network=lan",
			"--subnet", lanSubnet, "--gateway", h.gateway(), "--opt", "com.docker.network.bridge.name=brl2",
			"lan-of-node")
	}
	a.docker("network", "create", "--driver", "bridge", "--scope", "swarm", "--config-from", "lan-of-node", "lan")
	count := sample(0, 3, 9)
	service := a.service("lan", count)
	tasks := c.tasks("lan", count, c.hosts...)
	nodes := map[string]int{}
	for _, x := range tasks {
		nodes[x.Host]++
	}
	if len(nodes) != 3 {
		c.Errorf("the tasks run on %v", nodes)
	}
	for _, h := range c.hosts {
		if _, err := recordsOf(h.Berth, subnet, tasks); err != nil {
			c.Errorf("%v: %v", h, err)
		}
	}
	c.reach(tasks)
	a.docker("service", "rm", service)
	if err := ground.Eventually(2*time.Minute, func() error {
		_, err := a.Engine.Docker("network", "rm", "lan")
		return err
	}); err != nil {
		c.Fatal(err)
	}
	if err := ground.Eventually(time.Minute, func() error {
		left, err := leases(a.Berth, lanSubnet)
		if err == nil && len(left) != 1 {
			err = fmt.Errorf("the network is gone; on record is %+v", left)
		}
		return err
	}); err != nil {
		c.Error(err)
	}
}
