//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// swarmHost is the address of the swarm's only node.
const swarmHost = "10.213.250.1"

// A swarm's overlay network on Berth: the manager asks in the global space, the node in the local one; and a manager that
// was killed and started asks for all of it again.
func TestSwarm(t *testing.T) {
	e, err := startPrivateEngine(prefix+"swarm", swarmHost+"/24")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the engine's log:\n%s", tail(e.dockerd.Log(), 60))
		}
	})
	d, err := startDaemon("berth", binary, e.Sockets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Berth's log:\n%s", tail(d.Log(), 200))
		}
		if err := d.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := importImage(e.Engine); err != nil {
		t.Fatal(err)
	}
	h := &House{T: t, Engine: e.Engine, Berth: d, number: 93}
	h.docker("swarm", "init", "--advertise-addr", swarmHost)
	n, service := h.name(), h.name()
	h.docker("network", "create", "--driver", "overlay", "--attachable", "--ipam-driver", d.Driver(), "--subnet", h.v4("0/24"), n)
	h.docker(append([]string{"service", "create", "--detach", "--name", service, "--replicas", "2", "--network", n,
		"--no-resolve-image", "--restart-delay", "1s", imageName}, sleepForever...)...)
	tasks := h.tasks(service, n, 2)
	before := h.leases(h.v4("0/24"))
	h.taskAddresses(tasks, n)

	if err := e.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	// The node's tasks died with the engine; the manager starts two afresh.
	tasks = h.tasks(service, n, 2)
	h.taskAddresses(tasks, n)
	h.docker("service", "scale", "--detach", service+"=3")
	tasks = h.tasks(service, n, 3)
	h.taskAddresses(tasks, n)
	after := h.leases(h.v4("0/24"))
	t.Logf("before the crash %d leases, with one task more after it %d", len(before), len(after))

	attached := h.container(n) // --attachable
	h.docker("exec", attached, "ping", "-c", "1", "-W", "5", h.ip(tasks[0], n))
	h.docker("rm", "-f", attached)
	h.docker("service", "rm", service)
	if err := eventually(time.Minute, func() error {
		_, err := h.Engine.Docker("network", "rm", n)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	h.docker("swarm", "leave", "--force")
	if left := h.leases(h.v4("0/24")); len(left) != 0 {
		t.Errorf("after the network is gone, Berth has %+v", left)
	}
}

// tasks waits until a service has exactly so many running containers on a network, and returns their names.
func (h *House) tasks(service, network string, want int) []string {
	h.Helper()
	var names []string
	err := eventually(2*time.Minute, func() error {
		out, err := h.Engine.Docker("ps", "--format", "{{.Names}}", "--filter", "label=com.docker.swarm.service.name="+service)
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
	if err != nil {
		h.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// taskAddresses checks that the tasks of a service have different addresses, that these are on record, that none of them is
// the service's own or the gateway, and that the tasks reach one another.
func (h *House) taskAddresses(tasks []string, network string) {
	h.Helper()
	taken := map[string]string{h.serviceAddress(tasks[0]): "the service"}
	for _, task := range tasks {
		a := h.ip(task, network)
		if other, ok := taken[a]; ok || a == "" {
			h.Errorf("%s and %s both have %q", other, task, a)
		}
		taken[a] = task
		if l := h.leases(a + "/32"); len(l) == 0 {
			h.Errorf("%s has %s, which is not on record", task, a)
		}
		if err := h.Engine.ShowsAddress(task, a+"/24"); err != nil {
			h.Error(err)
		}
	}
	for _, task := range tasks[1:] {
		h.docker("exec", tasks[0], "ping", "-c", "1", "-W", "5", h.ip(task, network))
	}
}

// serviceAddress is the virtual address of the service that a task belongs to.
func (h *House) serviceAddress(task string) string {
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
