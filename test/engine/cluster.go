//go:build engine

package engine

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// Cluster is a set of Docker hosts on one fabric. Their Berths share one etcd.
type Cluster struct {
	*testing.T
	fabric Fabric
	etcd   *Etcd
	hosts  []*Host
}

// Host is a host of a Cluster: a Harness with its own engine and Berth, in its own namespaces.
type Host struct {
	*Harness
	name    string // its name in Berth: a, b, c
	address string // on ctl
	engine  *PrivateEngine
	daemon  *Daemon // nil if Berth is a plugin
}

// cluster makes hosts, each with a scenario of the given number, and removes everything when the test ends. Their
// engines run and have the test image. The test chooses their Berths.
func cluster(t *testing.T, hosts, number int) *Cluster {
	t.Helper()
	c := &Cluster{T: t}
	t.Cleanup(func() {
		lab.Check(t, c.stop())
	})
	var err error
	if c.fabric, err = startFabric(number); err != nil {
		t.Fatal(err)
	}
	for i := range hosts {
		h, err := c.build(t, string(rune('a'+i)), i+1, number)
		lab.Must(t, err)
		c.hosts = append(c.hosts, h)
	}
	lab.Must(t, c.each(func(h *Host) error { return errors.Join(h.engine.Start(), importImage(h.Engine)) }))
	if c.etcd, err = startEtcd(c.fabric); err != nil {
		t.Fatal(err)
	}
	return c
}

// build makes a host's namespaces and joins them to the fabric.
func (c *Cluster) build(t *testing.T, name string, number, scenario int) (*Host, error) {
	ns := c.fabric.begin + name
	if err := c.fabric.station(ns, number); err != nil {
		return nil, err
	}
	if err := c.fabric.plug(ns, "lan"); err != nil {
		return nil, err
	}
	// The containers' bridge connects the host's port to the other hosts.
	if err := ip("-n "+ns+" link add brl2 type bridge", "-n "+ns+" link set lan0 master brl2", "-n "+ns+
		" link set brl2 up"); err != nil {
		return nil, err
	}
	e, err := privateEngine(ns, socketsOf(ns))
	if err != nil {
		return nil, err
	}
	return &Host{Harness: &Harness{T: t, Engine: e.Engine, number: scenario}, name: name, address: ctlAddress(number),
		engine: e}, nil
}

// serve starts a Berth on each host, with flags besides those of the cluster.
func (c *Cluster) serve(flags ...string) {
	c.Helper()
	lab.Must(c, c.each(func(h *Host) error {
		h.daemon = c.berthOf(h, h.name, flags...)
		h.Berth = h.daemon
		if err := h.daemon.start(); err != nil {
			return err
		}
		return h.reaches()
	}))
}

// berthOf returns a Berth in a host's namespaces, not started. It calls the host by a name.
func (c *Cluster) berthOf(h *Host, name string, flags ...string) *Daemon {
	flags = append([]string{"--store", "etcd", "--etcd-endpoints", etcdURL, "--host", name, "--docker-host",
		h.engine.URL()}, flags...)
	return &Daemon{Name: "berth", Binary: binary, Sockets: h.engine.Sockets,
		Dir:   filepath.Join(base, h.engine.name+"-berth"),
		Flags: flags, within: h.engine.within()}
}

// each does something on all hosts at the same time.
func (c *Cluster) each(do func(*Host) error) error { return atOnce(c.hosts, do) }

// atOnce does something with all of them at the same time. Its error names those that failed, with the reason.
func atOnce[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() {
			if err := do(one); err != nil {
				errs[i] = fmt.Errorf("%v: %w", one, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (h *Host) String() string { return "host " + h.name }

// stop destroys the cluster without an orderly shutdown. A test must check the final state before that.
func (c *Cluster) stop() error {
	errs := []error{c.each((*Host).stop)}
	if c.etcd != nil {
		if c.Failed() {
			c.Logf("etcd's log:\n%s", tail(c.etcd.Log(), 20))
		}
		errs = append(errs, c.etcd.Stop())
	}
	if c.fabric.name != "" {
		errs = append(errs, removeNamespace(c.fabric.name))
	}
	return errors.Join(errs...)
}

func (h *Host) stop() error {
	var errs []error
	if h.daemon != nil && h.daemon.process != nil {
		if h.Failed() {
			h.Logf("%v: Berth's log:\n%s", h, tail(h.daemon.Log(), 40))
		}
		errs = append(errs, h.daemon.Stop(), os.RemoveAll(h.daemon.Dir), os.Remove(h.daemon.process.logPath()))
	}
	if h.engine.dockerd != nil {
		if h.Failed() {
			h.Logf("%v: the engine's log:\n%s", h, tail(h.engine.complaints(), 40))
		}
		errs = append(errs, h.engine.Kill(), os.Remove(h.engine.dockerd.logPath()))
	}
	errs = append(errs, h.engine.holder.Signal(syscall.SIGKILL, 10*time.Second), removeNamespace(h.engine.name))
	return errors.Join(append(errs, lab.UnmountUnder(h.engine.path("")), os.RemoveAll(h.engine.path("")))...)
}

// crash ends a host's engine and its Berth as a power cut does. The processes of its containers live on. back starts
// both again.
func (h *Host) crash() error { return errors.Join(h.engine.Kill(), h.daemon.Kill()) }

func (h *Host) back() error { return errors.Join(h.daemon.Revive(), h.engine.Start()) }

// startMany runs containers on a network, all at once, each from its own caller. It uses the engine's API, because the
// docker command takes more of the machine than the engine.
func (h *Host) startMany(network string, count int) error {
	names := make([]string, count)
	for i := range names {
		names[i] = h.Harness.name()
	}
	return atOnce(names, func(name string) error {
		if err := h.Engine.post("/containers/create?name="+name, map[string]any{
			"Image":      imageName,
			"Cmd":        []string{"sleep", "1000000"},
			"HostConfig": map[string]any{"NetworkMode": network},
		}); err != nil {
			return err
		}
		_, err := h.Engine.api(http.MethodPost, "/containers/"+name+"/start", nil)
		return err
	})
}

// Held is an address that a container has.
type Held struct {
	Host, Container, Address, MAC string
	pid                           string // of a process in its network namespace
}

// held returns what a host's containers have on a network. Docker and the containers' devices must agree.
func (h *Host) held(network string) ([]Held, error) {
	ids, err := h.Engine.Docker("ps", "--quiet", "--no-trunc", "--filter", "network="+network)
	if err != nil {
		return nil, err
	}
	if ids == "" {
		return nil, nil
	}
	format := `{{.Name}} {{.State.Pid}} {{with index .NetworkSettings.Networks "` + network +
		`"}}{{.IPAddress}}/{{.IPPrefixLen}} {{.MacAddress}}{{end}}`
	out, err := h.Engine.Docker(append([]string{"inspect", "--format", format}, strings.Fields(ids)...)...)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(out, "\n")
	all := make([]Held, len(lines))
	for i, line := range lines {
		f := strings.Fields(line)
		if len(f) != 4 {
			return nil, fmt.Errorf("%v: docker inspect says %q", h, line)
		}
		shown, err := showsNow(f[1])
		if err != nil {
			return nil, err
		}
		if !strings.Contains(shown, " "+f[2]+" ") {
			return nil, fmt.Errorf("%v: %s has %s, as Docker says; its own ip addr: %s", h, f[0], f[2], shown)
		}
		address, _, _ := strings.Cut(f[2], "/")
		all[i] = Held{Host: h.name, Container: strings.TrimPrefix(f[0], "/"), Address: address, MAC: f[3], pid: f[1]}
	}
	return all, nil
}

// pings calls all addresses from one of the host's containers and reports those that do not answer. It calls these
// again for a while: all namespaces of a machine share the kernel's neighbour table, which may be full for a moment.
func (h *Host) pings(all []Held) error {
	at := slices.IndexFunc(all, func(x Held) bool { return x.Host == h.name })
	if at < 0 {
		return fmt.Errorf("%v has no container to call from", h)
	}
	var silent, pids []string
	for _, x := range all {
		silent, pids = append(silent, x.Address), append(pids, x.pid)
	}
	err := lab.Eventually(time.Minute, func() error {
		script := "for a in " + strings.Join(silent, " ") + "; do ping -q -c 1 -W 1 $a >/dev/null || echo $a; done"
		out, err := h.Engine.Docker("exec", all[at].Container, "sh", "-c", script)
		if silent = strings.Fields(out); err == nil && len(silent) > 0 {
			err = fmt.Errorf("from %s on %v these do not answer: %v", all[at].Container, h, silent)
		}
		return err
	})
	return errors.Join(err, forgetNeighbours(pids))
}
