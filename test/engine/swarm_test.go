//go:build engine

package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// swarmHost is the address of the swarm's only node.
const swarmHost = "10.213.250.1"

// swarm creates a swarm of one node, with Berth as a managed plugin in it. The number is that of its scenario and
// appears in its engine's name.
func swarm(t *testing.T, number int) (*PrivateEngine, *Harness) {
	t.Helper()
	e := ownEngine(t, fmt.Sprintf("%se%d", prefix, number), swarmHost)
	t.Cleanup(func() {
		_, err := e.Docker("swarm", "leave", "--force")
		lab.Check(t, err)
	})
	// A swarm refuses legacy plugins: "legacy plugin berth of type IpamDriver is not supported in swarm mode".
	p := &Plugin{Name: prefix + "swarm:latest", Sockets: e.Sockets, engine: e.Engine, binary: binary}
	lab.Must(t, makePlugin(e.Engine, p.Name, binary), p.Enable())
	h := &Harness{T: t, Engine: e.Engine, Berth: p, number: number}
	h.docker("swarm", "init", "--advertise-addr", swarmHost)
	return e, h
}

// overlay creates an overlay network and a service of two tasks on it.
func (h *Harness) overlay(options ...string) (network, service string) {
	h.Helper()
	network, service = h.name(), h.name()
	create := append([]string{"network", "create", "--driver", "overlay", "--attachable", "--ipam-driver",
		h.Berth.Driver()}, options...)
	h.docker(append(create, network)...)
	h.docker(append([]string{"service", "create", "--detach", "--name", service, "--replicas", "2", "--network",
		network,
		"--no-resolve-image", "--restart-delay", "1s", imageName}, sleepForever...)...)
	h.taskAddresses(h.tasks(service, network, 2), network)
	return network, service
}

// A swarm's overlay network on Berth: the manager requests addresses in the global space, the node in the local space.
// After a crash the manager requests everything again (invariant 3).
func TestSwarm(t *testing.T) {
	t.Parallel()
	e, h := swarm(t, 93)
	n, service := h.overlay("--subnet", h.v4("0/24"))
	global, local := h.bySpace()
	if out, err := e.Find(binary, "lease", "ls", "-q", "--space", "local"); err != nil ||
		len(strings.Fields(out)) != len(local) {
		t.Errorf("berth lease ls, which finds the plugin by itself: %s (%v); the node has %v", out, err, local)
	}

	lab.Must(t, e.Kill(), e.Start(), h.Berth.Revive())
	// The node's tasks died with the engine. The manager starts two new ones and releases the addresses of the dead
	// ones.
	h.taskAddresses(h.tasks(service, n, 2), n)
	h.settles(func(now, _ map[string]string) bool { return len(now) == len(global) },
		"before the crash the manager had %v", global)
	h.docker("service", "scale", "--detach", service+"=3")
	tasks := h.tasks(service, n, 3)
	h.taskAddresses(tasks, n)
	if now, _ := h.bySpace(); len(now) != len(global)+1 {
		t.Errorf("before the crash the manager had %v, with one task more %v", global, now)
	}
	attached := h.container(n) // possible because of --attachable
	h.calls(attached, h.at(tasks[0], n))
	h.docker("rm", "-f", attached)
	h.removeOverlay(n, service)
	// What the node held when it was killed is never released. It releases the rest in its own time.
	h.settles(func(now, stale map[string]string) bool { return len(now) == 0 && subset(stale, local) },
		"the network is gone; when it was killed, the node had %v", local)

	// The user must release these before using the same subnet again. Otherwise the manager could give the node one
	// of these addresses as its own, and the node could not have the network.
	lab.Await(t, time.Minute, func() error {
		_, left := h.bySpace()
		delete(left, h.v4("1"))
		if len(left) == 0 {
			return nil
		}
		_, err := e.Find(binary, append([]string{"lease", "release", "--docker-host", h.Engine.URL()},
			slices.Sorted(maps.Keys(left))...)...)
		return cmp.Or(err, errors.New("there may be more"))
	})
	n, service = h.overlay("--subnet", h.v4("0/24"))
	h.removeOverlay(n, service)
	h.settles(func(now, left map[string]string) bool { return len(now) == 0 && len(left) <= 1 },
		"the second network is gone")
}

// settles waits until the holdings of the manager and the node are as the test wants them.
func (h *Harness) settles(want func(global, local map[string]string) bool, format string, args ...any) {
	h.Helper()
	lab.Await(h, time.Minute, func() error {
		global, local := h.bySpace()
		if !want(global, local) {
			return fmt.Errorf(format+"; now the manager has %v and the node %v", append(args, global, local)...)
		}
		return nil
	})
}

// removeOverlay removes a service, and its network as soon as the service's tasks have ended.
func (h *Harness) removeOverlay(network, service string) {
	h.Helper()
	h.docker("service", "rm", service)
	lab.Await(h, time.Minute, func() error {
		_, err := h.Engine.Docker("network", "rm", network)
		return err
	})
}

// bySpace returns the manager's (global space) and the node's (local space) addresses and MACs, each address once.
func (h *Harness) bySpace() (global, local map[string]string) {
	h.Helper()
	spaces := map[string]map[string]string{"global": {}, "local": {}}
	for _, l := range h.leases(h.v4("0/24")) {
		space := spaces[l.Space]
		if _, twice := space[l.Address]; twice || space == nil {
			h.Fatalf("%s is on record twice in space %s", l.Address, l.Space)
		}
		space[l.Address] = l.MAC
	}
	return spaces["global"], spaces["local"]
}

// subset reports whether all of a is in b.
func subset(a, b map[string]string) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// tasks waits until a service has exactly want running containers on a network and returns their names.
func (h *Harness) tasks(service, network string, want int) []string {
	h.Helper()
	var names []string
	err := lab.Eventually(2*time.Minute, func() error {
		out, err := h.Engine.Docker("ps", "--format", "{{.Names}}", "--filter", "label=com.docker.swarm.service.name="+
			service)
		if err != nil {
			return err
		}
		names = strings.Fields(out)
		if len(names) != want {
			ps, _ := h.Engine.Docker("service", "ps", "--no-trunc", service)
			return fmt.Errorf("%d of %d tasks run:\n%s", len(names), want, ps)
		}
		return nil
	})
	lab.Must(h, err)
	slices.Sort(names)
	return names
}

// taskAddresses checks that the tasks of a service have different addresses, that these are on record, that none is
// the service's own or the gateway, and that the tasks reach one another.
func (h *Harness) taskAddresses(tasks []string, network string) {
	h.Helper()
	taken := map[string]string{h.serviceAddress(tasks[0]): "the service"}
	for _, task := range tasks {
		ep := h.endpoint(task, network)
		a := ep.IPAddress
		if other, ok := taken[a]; ok || a == "" {
			h.Errorf("%s and %s both have %q", other, task, a)
		}
		taken[a] = task
		if l := h.leases(a + "/32"); len(l) == 0 {
			h.Errorf("%s has %s, which is not on record", task, a)
		}
		lab.Check(h, h.Engine.ShowsAddress(task, fmt.Sprintf("%s/%d", a, ep.IPPrefixLen)))
	}
	for _, task := range tasks[1:] {
		h.calls(tasks[0], h.at(task, network))
	}
}

// serviceAddress returns the virtual address of a task's service.
func (h *Harness) serviceAddress(task string) string {
	h.Helper()
	service := h.docker("inspect", "-f", `{{index .Config.Labels "com.docker.swarm.service.name"}}`, task)
	out := h.docker("service", "inspect", "-f", "{{json .Endpoint.VirtualIPs}}", service)
	var all []struct{ Addr string }
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) == 0 {
		h.Fatalf("the service's addresses are %s (%v)", out, err)
	}
	address, _, _ := strings.Cut(all[0].Addr, "/")
	return address
}
