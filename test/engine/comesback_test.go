//go:build engine

package engine

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

var (
	comesBackRounds  = flag.Int("comes-back.rounds", 0, "rounds of TestComesBack for each Berth; 0: its own number")
	comesBackDaemons = flag.Int("comes-back.daemons", 0, "Berths of TestComesBack, at most 14; 0: its own number")
	comesBackAlone   = flag.Bool("comes-back.alone", false, "nothing else starts containers on the engine, so that those "+
		"without a reservation keep their addresses on an engine without names, too")
)

// TestComesBack: Berth and its containers come and go at random. Whatever happened while Berth was away, each container
// gets its own address at its next start, none is refused, no address has two, and in the end the leases are what runs.
// One container each has its address by --ip, and by a reservation. On an engine without names, a reserved container
// may be put back first, and others may get another address if something else on the engine starts at that moment.
func TestComesBack(t *testing.T) {
	t.Parallel()
	for i := range sample(*comesBackDaemons, 1, 4) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			d := daemon(t, fmt.Sprint("back", i), pluginDir, comesBackFlags...)
			enter(t, machineEngine, d, 240+i).comesBack(goings{ends: []func() error{d.Stop, d.Kill}, back: d.Revive})
		})
	}
}

// comesBackFlags make leases that nobody has end soon.
var comesBackFlags = []string{"--check-grace", "1m", "--check-every", "20s"}

// TestPluginComesBack: the same for a managed plugin, which a person disables, and enables again. `berth witness` tells
// it what runs.
func TestPluginComesBack(t *testing.T) {
	t.Parallel()
	name := prefix + "back:latest"
	lab.Must(t, makePlugin(machineEngine, name, binary))
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	lab.Must(t, p.Enable())
	witnessBeside(t, p, "--docker-host", machineEngine.URL(), "--every", "1s")
	h := enter(t, machineEngine, p, 158)
	h.comesBack(goings{ends: []func() error{p.Disable}, back: func() error {
		if err := p.Enable(); err != nil {
			return err
		}
		return lab.Eventually(20*time.Second, func() error {
			if !h.witness().Live {
				return errors.New("berth witness is not there yet")
			}
			return nil
		})
	}})
}

// TestHostsComeBack: the same on two hosts at once, whose leases are in etcd.
func TestHostsComeBack(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 155)
	c.serve(comesBackFlags...)
	for i, host := range c.hosts {
		t.Run(host.name, func(t *testing.T) {
			t.Parallel()
			h := *host.Harness
			h.T, h.number = t, h.number+i // each has a subnet of its own
			h.comesBack(goings{ends: []func() error{host.daemon.Stop, host.daemon.Kill}, back: host.daemon.Revive,
				network: []string{"--ipam-opt", "space=global"}})
		})
	}
}

// TestMovesWhileOff: the Berth of host b is off while its containers end there, and go on on host a. Their addresses
// stay b's, because nobody knows what runs there; the refusals and `berth check` name b. When its Berth is back, they are
// free after the grace of b's checks, and the containers start.
func TestMovesWhileOff(t *testing.T) {
	t.Parallel()
	c := cluster(t, 2, 157)
	c.serve("--check-grace", "20s", "--check-every", "5s")
	a, b := c.hosts[0], c.hosts[1]
	a.planLAN()
	lab.Must(t, c.each((*Host).joinLAN))
	const reserved, fixed = "10.77.0.60", "10.77.0.50"
	a.berth("reservation", "add", "lan", "--owner", "db", "--ip", reserved)
	b.docker(containerCommand("db", "lan")...)
	b.docker(containerCommand("mail", "lan", "--ip", fixed)...)
	b.hasAddress("db", "lan", reserved)
	lab.Must(t, b.daemon.Stop())
	lab.Check(t, atOnce([]string{"db", "mail"}, func(name string) error { // Docker gives up the releases after a while
		_, err := b.Engine.Docker("rm", "--force", name)
		return err
	}))

	all := []string{"mail", "db"} // when mail starts, both leases have ended
	if names.there() {
		a.refused([]string{reserved, "db on host b"}, containerCommand("db", "lan")...)
	} else { // who asks is known only while it starts, so it gets another address for now
		a.docker(containerCommand("db", "lan")...)
		if got := a.at("db", "lan"); got == reserved {
			t.Errorf("db has %s on a, and b may still run with it", got)
		}
		a.docker("stop", "--time", "0", "db")
	}
	a.refused([]string{fixed, "mail on host b"}, containerCommand("mail", "lan", "--ip", fixed)...)
	a.berthRefuses([]string{fixed, "host b", "berth host"}, "lease", "release", fixed)
	if _, out, _ := check(a.daemon, "--docker-host", a.engine.URL()); !strings.Contains(out, `"absent":[{"host":"b"`) {
		t.Errorf("berth check on a: %s", out)
	}

	lab.Must(t, b.daemon.Revive())
	for _, name := range all {
		lab.Await(t, time.Minute, func() error {
			_, err := a.Engine.Docker("start", name)
			return err
		})
	}
	for name, want := range map[string]string{"db": reserved, "mail": fixed} {
		lab.Await(t, 20*time.Second, func() error { // an engine without names may need a move
			if got := a.at(name, "lan"); got != want {
				return fmt.Errorf("%s has %s, not %s", name, got, want)
			}
			return nil
		})
	}
}

// goings is how a Berth goes away, and how it comes back.
type goings struct {
	ends    []func() error
	back    func() error
	network []string // options of the network
}

// comer is a container that comes and goes.
type comer struct {
	name, address string
	options       []string
	reserved      bool
}

// comesBack plays rounds in which a Berth and its containers come and go.
func (h *Harness) comesBack(berth goings) {
	seed := rand.Uint64()
	h.Logf("the seed is %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	n := h.network(append(berth.network, "--subnet", h.v4("0/24"))...)
	var all []*comer
	for i := range 6 {
		c := &comer{name: h.name()}
		switch i {
		case 0:
			c.options = []string{"--ip", h.v4("50")}
		case 1:
			c.reserved = true
			h.berth("reservation", "add", n, "--owner", c.name, "--ip", h.v4("60"))
		}
		h.docker(containerCommand(c.name, n, c.options...)...)
		if c.address = h.address(c.name, n); c.reserved {
			c.address = h.v4("60") // on an engine without names it may be put back to it first
		}
		all = append(all, c)
	}
	changed := 0
	defer func() { h.Logf("%d changed", changed) }()
	for round := range sample(*comesBackRounds, 2, 30) {
		lab.Must(h, berth.ends[r.IntN(len(berth.ends))]())
		var happening sync.WaitGroup
		var story []string
		for _, c := range all {
			what, do := h.happens(c, n, r)
			story = append(story, what)
			happening.Go(do)
		}
		if r.IntN(2) == 0 { // Berth comes back while Docker still tries to release, or after that
			happening.Wait()
		}
		lab.Must(h, berth.back())
		happening.Wait()
		for _, i := range r.Perm(len(all)) {
			if _, err := h.Engine.Docker("start", all[i].name); err != nil {
				h.Errorf("round %d: %s (%s): %v", round, all[i].name, story[i], err)
			}
		}
		has := map[string]string{}
		for i, c := range all {
			var got string
			look := func() error {
				out, err := h.Engine.Docker("inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", c.name)
				got = strings.TrimSpace(out)
				if err == nil && got != c.address {
					err = fmt.Errorf("round %d: %s (%s) had %s, and has %q", round, c.name, story[i], c.address, got)
				}
				return err
			}
			err := look()
			if err != nil && c.reserved && !names.there() {
				err = lab.Eventually(10*time.Second, look)
			}
			if err != nil {
				changed++
				if c.reserved || c.options != nil || names.there() || *comesBackAlone {
					h.Error(err)
				}
			}
			if other := has[got]; got != "" && other != "" {
				h.Errorf("round %d: %s and %s have %s", round, other, c.name, got)
			}
			has[got] = c.name
			if got != "" && !c.reserved && c.options == nil {
				c.address = got
			}
		}
	}
	var containers []string
	for _, c := range all {
		containers = append(containers, c.name)
	}
	h.leasesAreWhatRuns(n, containers)
}

// happens returns something that may happen to a container while Berth is away. A start fails then.
func (h *Harness) happens(c *comer, network string, r *rand.Rand) (what string, do func()) {
	docker := func(args ...string) {
		if _, err := h.Engine.Docker(args...); err != nil && !strings.Contains(err.Error(), "is not running") {
			h.Logf("%s: %v", c.name, err)
		}
	}
	switch r.IntN(7) {
	case 0:
		return "stopped", func() { docker("stop", "--time", "0", c.name) }
	case 1:
		return "killed", func() { docker("kill", c.name) }
	case 2:
		return "paused for a moment", func() { docker("pause", c.name); docker("unpause", c.name) }
	case 3:
		return "removed and recreated", func() {
			docker("rm", "--force", c.name)
			args := append([]string{"create"}, containerCommand(c.name, network, c.options...)[2:]...)
			docker(args...)
		}
	case 4:
		return "renamed, and back", func() {
			docker("rename", c.name, c.name+"-x")
			docker("rename", c.name+"-x", c.name)
		}
	case 5:
		return "disconnected, and connected", func() {
			docker("stop", "--time", "0", c.name)
			docker("network", "disconnect", network, c.name)
			args := []string{"network", "connect"}
			args = append(append(args, c.options...), network, c.name)
			docker(args...)
		}
	}
	return "left alone", func() {}
}
