//go:build engine

package engine

import (
	"flag"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

var elasticStarts = flag.Int("elastic-starts", 0, "how often TestElastic starts its container")

const (
	elasticHost    = "10.213.249.1" // of the engine's host (engineOf)
	elasticPeer    = "10.213.249.9" // of the host outside
	elasticAddress = "10.213.253.10"
)

// outside makes a host that reaches elastic addresses through an engine's host. It returns the new host's namespace.
func outside(t *testing.T, e *PrivateEngine, number int) string {
	t.Helper()
	name := fmt.Sprintf("%so%d", prefix, number)
	err := ip("netns add "+name,
		"-n "+e.name+" link add out0 type veth peer name out1",
		"-n "+e.name+" link set out0 master host0 up",
		"-n "+e.name+" link set out1 netns "+name,
		"-n "+name+" address add "+elasticPeer+"/24 dev out1",
		"-n "+name+" link set out1 up",
		"-n "+name+" route add "+elasticAddress+"/32 via "+elasticHost)
	lab.Must(t, err)
	t.Cleanup(func() {
		lab.Check(t, removeNamespace(name))
	})
	return name
}

// callers sends the source address of each connection to an address.
func callers(t *testing.T, namespace, address string) <-chan string {
	t.Helper()
	l, err := lab.In(lab.Namespace(namespace), func() (net.Listener, error) {
		return net.Listen("tcp", address+":7000")
	})
	lab.Must(t, err)
	t.Cleanup(func() { l.Close() })
	from := make(chan string, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			from <- host
			c.Close()
		}
	}()
	return from
}

// reaches connects from a namespace to a port of the elastic address.
func reaches(namespace string) error {
	c, err := lab.In(lab.Namespace(namespace), func() (net.Conn, error) {
		return net.DialTimeout("tcp", elasticAddress+":8000", time.Second)
	})
	if err != nil {
		return err
	}
	return c.Close()
}

// edgeOf runs the edge of an engine's host until the end of the test.
func edgeOf(t *testing.T, e *PrivateEngine, d *Daemon, number int, flags ...string) *Process {
	t.Helper()
	args := append(slices.Clone(e.within()), binary, "edge", "--admin-socket", d.AdminSocket())
	edge, err := startProcess(fmt.Sprintf("%sedge%d", prefix, number), nil, args[0], append(args[1:], flags...)...)
	lab.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the edge's log:\n%s", edge.Log())
		}
		lab.Check(t, edge.Signal(syscall.SIGTERM, 10*time.Second))
	})
	return edge
}

// A container with a reserved address has an elastic address. From its first packet after each start on, others see it
// by that address and reach it there. A deleted table comes back. A disassociation ends the mapping (CS-3, CS-4,
// CS-8).
func TestElastic(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 74)
	d := witness(t, e.Engine, e.Sockets, 74)
	h := enter(t, e.Engine, d, 74)
	peer := outside(t, e, 74)
	from := callers(t, peer, elasticPeer)
	planned := h.plan("--subnet", h.v4("0/24")+",pool")
	n := h.on(planned, append(letsIn(), "--subnet", h.v4("0/24"))...)
	h.berth("network", "modify", planned, "--elastic", "on")
	name, guest := h.name(), h.v4("30")
	h.berth("reservation", "add", planned, "--owner", name, "--ip", guest)
	h.berth("elastic", "range", "add", elasticAddress)
	h.berth("elastic", "allocate")

	edgeOf(t, e, d, 74)
	lab.Await(t, 10*time.Second, func() error {
		out, err := berth(h.Berth, "elastic", "associate", elasticAddress, name)
		if err == nil && out != elasticAddress+"\n" && out != elasticAddress {
			err = fmt.Errorf("it says %q", out)
		}
		if err != nil {
			return err
		}
		out, err = berth(h.Berth, "elastic", "show", elasticAddress, "--format", "{{.Applied}}")
		if err == nil && out == "<nil>\n" {
			err = fmt.Errorf("no edge has mapped it")
		}
		return err
	})
	calls := func(want, when string) {
		t.Helper()
		h.docker("run", "--rm", "--name", name, "--network", n, "--ip", guest, imageName, "busybox", "nc", "-w", "2",
			elasticPeer,
			"7000")
		select {
		case got := <-from:
			if got != want {
				t.Errorf("%s it is seen as %s, not as %s", when, got, want)
			}
		case <-time.After(lab.Patient(10 * time.Second)):
			t.Errorf("%s it is not seen at all", when)
		}
	}
	for range sample(*elasticStarts, 2, 50) {
		calls(elasticAddress, "at its first packet")
	}
	h.docker("run", "--detach", "--name", name, "--network", n, "--ip", guest, imageName, "busybox", "nc", "-ll", "-p",
		"8000", "-e", "/bin/busybox")
	soon := func(what string, long time.Duration, fn func() error) {
		t.Helper()
		if err := lab.Eventually(long, fn); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	soon("it is reached by its elastic address", 5*time.Second, func() error { return reaches(peer) })
	if _, err := lab.Run(time.Minute, nil, "nsenter", "--net=/run/netns/"+e.name, "nft", "delete", "table", "ip",
		"berth"); err != nil {
		t.Fatal(err)
	}
	soon("it is reached again after its table was deleted", 5*time.Second, func() error { return reaches(peer) })
	h.docker("rm", "--force", name)
	soon("it is stopped, and not reached", 5*time.Second, func() error {
		if reaches(peer) == nil {
			return fmt.Errorf("somebody answers")
		}
		return nil
	})
	calls(elasticAddress, "started again")
	h.berth("elastic", "disassociate", elasticAddress)
	soon("nobody says that it is mapped", 5*time.Second, func() error {
		h.berth("elastic", "release", elasticAddress)
		out := h.berth("elastic", "show", elasticAddress, "--format", "{{.State}}")
		if out != "free\n" && out != "free" {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
	calls(elasticHost, "disassociated")
}
