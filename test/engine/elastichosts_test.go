//go:build engine

package engine

import (
	"encoding/csv"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

var (
	elasticMoves = flag.Int("elastic-moves", 0, "how often TestElasticHosts moves an address between its engines")
	elasticStops = flag.Int("elastic-stops", 0, "how often TestElasticHosts stops and starts a container with an address")
)

// Two engines, each with a daemon and an edge, share an etcd. An address leads to one container at a time, on either
// host. It moves between running hosts, away from a killed host, and with its owner. Events and usage include all of
// it (CS-3, CS-7 to CS-10, CS-15).
func TestElasticHosts(t *testing.T) {
	t.Parallel()
	e := elasticHosts(t, 114)
	a, b := e.hosts[0], e.hosts[1]
	e.run("system addresses of each host", e.systemOfEach)
	a.berth("elastic", "range", "add", hostsElastic+"+2", "--announce", "ctl0")
	a.berth("elastic", "allocate")
	b.berth("elastic", "allocate")
	webs := map[*Host]string{a: a.named("web"), b: b.named("web")}
	answer := map[*Host]*Answerer{}
	for _, h := range e.hosts {
		h.runsOn(webs[h])
		answer[h] = e.answers(t, h, webs[h])
		e.known(webs[h])
	}
	e.run("both ways", func() { e.bothWays(webs) })
	e.run("moves", func() { e.moves(webs, answer) })
	e.run("stop and start", func() { e.stopped(a, webs[a]) })
	answer[a] = e.answers(t, a, webs[a])
	e.run("host killed", func() { e.hostKilled(t, webs, answer) })
	e.run("owner elsewhere", e.ownerElsewhere)
	e.run("counted", e.counted)
}

// systemOfEach: on a network with auto the containers of each host have addresses of that host's range. These lead to
// them and are released when they end.
func (e *ElasticHosts) systemOfEach() {
	a, b := e.hosts[0], e.hosts[1]
	first := map[*Host]string{a: ctlAddress(210), b: ctlAddress(220)}
	for _, h := range e.hosts {
		a.berth("elastic", "range", "add", first[h]+"+2", "--host", h.name, "--announce", "ctl0")
	}
	a.berth("network", "modify", "lan", "--elastic", "auto")
	for _, h := range e.hosts {
		name := h.named("system")
		h.runsOn(name)
		e.answers(e.T, h, name)
		e.leads(first[h], name, 5*time.Second)
		e.seenAs(h, name, first[h])
	}
	for _, h := range e.hosts {
		h.docker("rm", "--force", h.named("system"))
		e.nobody("its container was removed", first[h])
	}
	a.berth("network", "modify", "lan", "--elastic", "on")
}

// bothWays: the address leads to a container of one host, and that container's calls come from the address. Calls of
// the other host's container come from that host.
func (e *ElasticHosts) bothWays(webs map[*Host]string) {
	a, b := e.hosts[0], e.hosts[1]
	b.associates(hostsElastic, webs[a])
	e.leads(hostsElastic, webs[a], time.Second)
	e.seenAs(a, webs[a], hostsElastic)
	e.seenAs(b, webs[b], b.address)
	for _, h := range e.hosts {
		if at := h.berth("elastic", "show", hostsElastic, "--format", "{{.Host}} {{.Applied.Host}}"); at != "a a" {
			e.Errorf("%v says that it is on host %s", h, at)
		}
		_, err := berth(h.Berth, "elastic", "associate", hostsElastic, webs[b])
		if err == nil || !strings.Contains(err.Error(), "is associated with") ||
			!strings.Contains(err.Error(), webs[a]) || !strings.Contains(err.Error(), "host a") {
			e.Errorf("%v associates it with another without --move: %v", h, err)
		}
	}
}

// moves: the address goes to and fro. After `associate` has returned, no new packet reaches the old container. The
// event of each move names both hosts.
func (e *ElasticHosts) moves(webs map[*Host]string, answer map[*Host]*Answerer) {
	var c net.Conn
	c, err := e.dials(hostsElastic)
	lab.Must(e, err)
	p := lab.NewProbe(c, 5*time.Millisecond)
	defer func() { _ = p.Stop() }()
	told := len(e.hosts[0].associated(hostsElastic))
	stray := 0
	moves := sample(*elasticMoves, 2, 10)
	for n := range moves {
		from, to := e.hosts[n%2], e.hosts[(n+1)%2]
		e.hosts[n/2%2].associates(hostsElastic, webs[to], "--move")
		returned := time.Now()
		e.reached(answer[to], webs[to], returned) // stray packets would show meanwhile
		stray += answer[from].since(returned)
		e.seenAs(to, webs[to], hostsElastic)
		e.seenAs(from, webs[from], from.address)
	}
	if stray > 0 {
		e.Errorf("%d packets reached the container of before", stray)
	}
	all := e.hosts[0].associated(hostsElastic)[told:]
	if len(all) != moves {
		e.Fatalf("%d moves are told as %d events", moves, len(all))
	}
	for n, one := range all {
		from, to := e.hosts[n%2], e.hosts[(n+1)%2]
		want := elasticEvent{"elastic.associate", hostsElastic, association{from.name, webs[from]},
			association{to.name, webs[to]}}
		if one != want {
			e.Errorf("move %d is told as %+v, not %+v", n, one, want)
		}
	}
}

// reached waits until a second's worth of the packets that were sent after a time have reached a container.
func (e *ElasticHosts) reached(answer *Answerer, container string, since time.Time) {
	e.Helper()
	lab.Await(e, 10*time.Second, func() error {
		if n := answer.since(since); n < 200 {
			return fmt.Errorf("%d packets have reached %s", n, container)
		}
		return nil
	})
}

// stopped: while its container is stopped, an address does not answer, but stays associated. With the next start it
// leads to the container again (CS-8), also on engines that draw a new MAC at each start.
func (e *ElasticHosts) stopped(h *Host, web string) {
	h.associates(hostsElastic, web, "--move")
	e.leads(hostsElastic, web, time.Second)
	h.docker("stop", "--time", "1", web)
	e.nobody("its container was stopped", hostsElastic)
	at := h.berth("elastic", "show", hostsElastic, "--format", "{{.State}} {{.Associated}} {{.Instance}}")
	if at != "allocated true "+web {
		e.Errorf("its container was stopped; it is %s", at)
	}
	var longest time.Duration
	stops := sample(*elasticStops, 3, 50)
	for round := range stops {
		if round > 0 {
			h.docker("stop", "--time", "0", web)
		}
		h.docker("start", web)
		e.answers(e.T, h, web)
		began := time.Now()
		e.leads(hostsElastic, web, 2*time.Second)
		longest = max(longest, time.Since(began))
	}
	e.Logf("stopped and started %d times; it answered at the latest %s after its container did", stops, longest)
	e.seenAs(h, web, hostsElastic)
}

// hostKilled: one host dies, and the other takes over its address, while the first one's kernel and containers
// continue. The address stays there when the first host is back.
func (e *ElasticHosts) hostKilled(outer *testing.T, webs map[*Host]string, answer map[*Host]*Answerer) {
	a, b := e.hosts[0], e.hosts[1]
	e.leads(hostsElastic, webs[a], time.Second)
	c, err := e.dials(hostsElastic)
	lab.Must(e, err)
	p := lab.NewProbe(c, 5*time.Millisecond)
	defer func() { _ = p.Stop() }()
	killed := time.Now()
	e.dies(a)
	b.associates(hostsElastic, webs[b], "--move")
	lab.Await(e, 10*time.Second, func() error {
		if answer[b].since(killed) == 0 {
			return fmt.Errorf("%s is not reached", webs[b])
		}
		return nil
	})
	taken := time.Now()
	lab.Must(e, a.back())
	e.startEdge(outer, a)
	lab.Must(e, a.reaches(), e.connected(a))
	e.reached(answer[b], webs[b], time.Now()) // stray packets would show meanwhile
	if n := answer[a].since(taken); n > 0 {
		e.Errorf("%d packets reached %s, of the host that had died", n, webs[a])
	}
	e.leads(hostsElastic, webs[b], time.Second)
	all := a.associated(hostsElastic)
	want := elasticEvent{"elastic.associate", hostsElastic, association{"a", webs[a]}, association{"b", webs[b]}}
	if last := all[len(all)-1]; last != want {
		e.Errorf("that is told as %+v, not %+v", last, want)
	}
}

// connected waits until a host's edge has received its mappings.
func (e *ElasticHosts) connected(h *Host) error {
	return lab.Eventually(10*time.Second, func() error {
		_, err := berth(h.Berth, "elastic", "check")
		return err
	})
}

// ownerElsewhere: the owner of a reserved address has an elastic one. Its host dies, and it is started on the other
// host with its name and its address. The elastic address leads there without a command (CS-8).
func (e *ElasticHosts) ownerElsewhere() {
	a, b := e.hosts[0], e.hosts[1]
	const guest = "10.77.0.50"
	owner := a.prefix() + "owner"
	a.berth("reservation", "add", "lan", "--owner", owner, "--ip", guest)
	a.runsOn(owner, "--ip", guest)
	e.answers(e.T, a, owner)
	b.associates(hostsOwned, owner)
	e.leads(hostsOwned, owner, time.Second)
	e.seenAs(a, owner, hostsOwned)

	e.dies(a)
	lab.Must(e, ip("-n "+a.engine.name+" link set lan0 down", "-n "+a.engine.name+" link set ctl0 down"))
	b.awaitsHost("a", "", false)
	b.berth("host", "rm", "--off", "--yes", "a")
	b.runsOn(owner, "--ip", guest)
	e.answers(e.T, b, owner)
	e.leads(hostsOwned, owner, 10*time.Second)
	e.seenAs(b, owner, hostsOwned)
	if at := b.berth("elastic", "show", hostsOwned, "--format", "{{.Host}} {{.Instance}} {{.Guest}}"); at !=
		"b "+owner+" "+guest {
		e.Errorf("it is shown at %s", at)
	}
}

// counted: events and usage include each allocation, its duration and each release, whichever host is asked and
// whatever happened to the address later (CS-10).
func (e *ElasticHosts) counted() {
	b := e.hosts[1]
	before := e.hours()
	for _, address := range []string{hostsElastic, hostsOwned} {
		b.berth("elastic", "disassociate", address)
		e.nobody("it is disassociated", address)
		b.berth("elastic", "release", address)
		lab.Check(e, lab.Eventually(5*time.Second, func() error {
			if state := b.berth("elastic", "show", address, "--format", "{{.State}}"); state != "free" {
				return fmt.Errorf("%s is %s after its release", address, state)
			}
			return nil
		}))
		for _, verb := range []string{"elastic.allocate", "elastic.release"} {
			out := b.berth("events", "--last", "10000", "--format", "{{.Verb}} {{.Address}} {{.Name}}")
			if !strings.Contains(out, verb+" "+address+" default") {
				e.Errorf("no event %s of %s:\n%s", verb, address, out)
			}
		}
	}
	if after := e.hours(); before <= 0 || after < before {
		e.Errorf("usage was %f hours, and is %f after the release", before, after)
	}
}

// hours returns the address hours of the account default.
func (e *ElasticHosts) hours() float64 {
	e.Helper()
	out := e.hosts[1].berth("elastic", "usage", "--format", "csv")
	lines, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	lab.Must(e, err)
	for _, line := range lines {
		if line[0] == "default" {
			h, err := strconv.ParseFloat(line[3], 64)
			lab.Must(e, err)
			return h
		}
	}
	e.Fatalf("usage of the account default is not told:\n%s", out)
	return 0
}
