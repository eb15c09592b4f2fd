//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// The addresses of ElasticHosts on ctl, beside those of the hosts and the etcd.
var (
	hostsPeer    = ctlAddress(50)  // outside
	hostsElastic = ctlAddress(200) // of either host
	hostsOwned   = ctlAddress(201)
)

// ElasticHosts are two hosts of a cluster, each with an edge. Containers on their network lan have elastic addresses.
// The edges announce these on ctl, where a peer without Berth is.
type ElasticHosts struct {
	*Cluster
	number int
	peer   string             // its namespace
	from   <-chan string      // its callers
	edges  map[*Host]*Process // the edge of each host
}

func elasticHosts(t *testing.T, number int) *ElasticHosts {
	t.Helper()
	e := &ElasticHosts{Cluster: cluster(t, 2, number), number: number, edges: map[*Host]*Process{}}
	e.peer = e.fabric.begin + "peer"
	t.Cleanup(func() {
		lab.Check(t, removeNamespace(e.peer))
	})
	lab.Must(t, e.fabric.station(e.peer, 50))
	e.from = callers(t, e.peer, hostsPeer)
	e.serve()
	e.hosts[0].planLAN()
	lab.Must(t, e.each((*Host).joinLAN))
	for _, h := range e.hosts {
		e.startEdge(t, h)
	}
	return e
}

// startEdge runs a host's edge until the end of a test.
func (e *ElasticHosts) startEdge(t *testing.T, h *Host) {
	t.Helper()
	e.edges[h] = edgeOf(t, h.engine, h.daemon, 10*e.number+slices.Index(e.hosts, h))
}

// dies ends a host's daemon, edge and engine as a crash does. The daemon goes first, so that it does not end the
// session of the edge. The host's kernel and containers continue.
func (e *ElasticHosts) dies(h *Host) {
	e.Helper()
	kill := func(p *Process) error { return p.Signal(syscall.SIGKILL, 10*time.Second) }
	lab.Must(e, h.daemon.Kill(), kill(e.edges[h]), h.engine.Kill())
}

// named returns a name for a host's container. Names must be unique across the cluster.
func (h *Host) named(name string) string { return h.prefix() + h.name + "-" + name }

// runsOn starts a container on lan that stays.
func (h *Host) runsOn(name string, options ...string) {
	h.Helper()
	h.docker(containerCommand(name, "lan", options...)...)
}

// known waits until each host's Berth knows a container by its name. hostsElastic must be allocated already.
func (e *ElasticHosts) known(container string) {
	e.Helper()
	err := lab.Eventually(5*time.Second, func() error {
		return e.each(func(h *Host) error {
			_, err := berth(h.Berth, "elastic", "associate", hostsElastic, container, "--dry-run")
			return err
		})
	})
	lab.Must(e, err)
}

// associates makes a host associate an address. It retries, because Berth may not know the container's name at once.
func (h *Host) associates(address, target string, flags ...string) {
	h.Helper()
	err := lab.Eventually(5*time.Second, func() error {
		out, err := berth(h.Berth, append([]string{"elastic", "associate", address, target}, flags...)...)
		if err == nil && out != address {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
	lab.Must(h, err)
}

// leads waits until the peer reaches a container by an address.
func (e *ElasticHosts) leads(address, container string, within time.Duration) {
	e.Helper()
	lab.Await(e, within, func() error {
		by, err := e.ask(address)
		if err == nil && by != container {
			err = fmt.Errorf("%s answers for %s, not %s", by, address, container)
		}
		return err
	})
}

// nobody waits until an address no longer answers.
func (e *ElasticHosts) nobody(when, address string) {
	e.Helper()
	err := lab.Eventually(5*time.Second, func() error {
		if by, err := e.ask(address); err == nil {
			return fmt.Errorf("%s answers for %s", by, address)
		}
		return nil
	})
	if err != nil {
		e.Errorf("%s: %v", when, err)
	}
}

// ask sends one packet from the peer to an address and returns the container that answers.
func (e *ElasticHosts) ask(address string) (by string, err error) {
	c, err := e.dials(address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b := make([]byte, 200)
	_, err = c.Write([]byte("0\n"))
	if err == nil {
		err = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	}
	if err != nil {
		return "", err
	}
	n, err := c.Read(b)
	by, _, _ = strings.Cut(string(b[:n]), " ")
	return by, err
}

func (e *ElasticHosts) dials(address string) (net.Conn, error) {
	return lab.In(lab.Namespace(e.peer), func() (net.Conn, error) { return net.Dial("udp", address+":7") })
}

// seenAs lets a container call the peer, which must see the given address.
func (e *ElasticHosts) seenAs(h *Host, container, want string) {
	e.Helper()
	h.docker("exec", container, "busybox", "nc", "-w", "2", hostsPeer, "7000")
	select {
	case got := <-e.from:
		if got != want {
			e.Errorf("%s on %v is seen as %s, not as %s", container, h, got, want)
		}
	case <-time.After(lab.Patient(5 * time.Second)):
		e.Errorf("%s on %v is not seen at all", container, h)
	}
}

// Answerer answers datagrams in a container with the container's name and records them.
type Answerer struct {
	socket net.PacketConn
	mu     sync.Mutex
	asked  []string
}

// answers starts an Answerer in a running container. It ends with the test or with a stop of the container.
func (e *ElasticHosts) answers(t *testing.T, h *Host, container string) *Answerer {
	t.Helper()
	c, err := h.Engine.inspect(container)
	lab.Must(t, err)
	a := &Answerer{}
	a.socket, err = lab.In(fmt.Sprintf("/proc/%d/ns/net", c.State.Pid), func() (net.PacketConn, error) {
		return net.ListenPacket("udp", ":7")
	})
	lab.Must(t, err)
	t.Cleanup(func() { _ = a.socket.Close() })
	go a.run(container)
	return a
}

func (a *Answerer) run(name string) {
	b := make([]byte, 200)
	for {
		n, from, err := a.socket.ReadFrom(b)
		if err != nil {
			return
		}
		a.mu.Lock()
		a.asked = append(a.asked, strings.TrimSpace(string(b[:n])))
		a.mu.Unlock()
		_, _ = a.socket.WriteTo([]byte(name+" "+string(b[:n])), from)
	}
}

// since counts the received packets that a probe has sent after a time.
func (a *Answerer) since(since time.Time) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range a.asked {
		if asked, ok := lab.Asked(number); ok && asked.After(since) {
			n++
		}
	}
	return n
}

// association is one end of an event, as events show it (CS-9).
type association struct{ Host, Instance string }

// elasticEvent is what the tests read of `berth events --format json`.
type elasticEvent struct {
	Verb, Address string
	Before, After association
}

// associated returns the association events of an address, the oldest first.
func (h *Host) associated(address string) (all []elasticEvent) {
	h.Helper()
	for line := range strings.Lines(h.berth("events", "--last", "10000", "--format", "json")) {
		var one elasticEvent
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			h.Fatalf("berth events --format json: %v: %s", err, line)
		}
		if one.Address == address && one.Verb == "elastic.associate" {
			all = append(all, one)
		}
	}
	return all
}
