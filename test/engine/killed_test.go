//go:build engine

package engine

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

// withMAC runs a container with its own MAC and a restart policy.
func (h *Harness) withMAC(network, mac string) string {
	h.Helper()
	name := h.name()
	lab.Must(h, h.Engine.create(name, network, mac))
	h.docker("update", "--restart", "always", name)
	h.docker("start", name)
	return name
}

// If a check cannot see the engine, it reports that and ends no lease, however long the engine is stopped, killed or
// frozen. A daemon that repairs by itself ends none, either.
func TestKilledHides(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 56)
	h := enter(t, e.Engine,
		byMAC{witness(t, e.Engine, e.Sockets, 56, "--check-every", "300ms", "--check-repair")}, 56)
	n := h.network("--subnet", h.v4("0/24"))
	all := []string{h.withMAC(n, "02:62:74:00:56:01"), h.withMAC(n, "02:62:74:00:56:02"),
		h.container(n, "--restart", "always", "--ip", h.v4("99"))}
	h.docker("stop", h.container(n))
	at := map[string]string{}
	for _, c := range all {
		at[c] = h.address(c, n)
	}
	// A check that sees a container stop may lease its address again, until the next ones see that it has ended.
	lab.Await(t, 20*time.Second, func() error {
		if left := h.check().left(); len(left) > 0 {
			return fmt.Errorf("berth check finds %v", left)
		}
		return nil
	})
	before := h.leases(h.v4("0/24"))
	stay := func(when string) {
		t.Helper()
		if now := h.leases(h.v4("0/24")); !slices.EqualFunc(now, before,
			func(a, b Lease) bool { return a.ID == b.ID && a.Address == b.Address }) {
			t.Errorf("%s: Berth had %+v and has %+v", when, before, now)
		}
	}
	blind := func(when string) {
		t.Helper()
		r, out, err := check(h.Berth, "--repair")
		if err == nil || r.Engine != "unreachable" || r.Trouble == "" || len(r.Findings) != 0 || r.Repaired != 0 {
			t.Errorf("%s: berth check --repair: %s (%v)", when, out, err)
		}
		stay(when)
	}
	back := func(when string) {
		t.Helper()
		h.allRun(all)
		for c, a := range at {
			h.hasAddress(c, n, a)
		}
		h.finds()
	}

	lab.Must(t, e.Kill())
	for killed := time.Now(); time.Since(killed) < 3*time.Second; { // three times the grace
		blind("the engine was killed")
	}
	if out, err := berth(h.Berth, "check"); err == nil || !strings.Contains(err.Error(), "the engine did not answer") {
		t.Errorf("berth check: %s (%v)", out, err)
	}
	lab.Must(t, e.Start())
	back("started again")

	before = h.leases(h.v4("0/24")) // the engine has released its addresses and requested them again
	lab.Must(t, e.Freeze())
	t.Cleanup(func() {
		lab.Check(t, e.Thaw())
	})
	blind("the engine hangs")
	lab.Must(t, e.Thaw())
	back("the engine goes on")
	stay("the engine goes on")

	if err := e.StopEngine(); err != nil { // SIGTERM: the engine releases its addresses
		t.Fatal(err)
	}
	before = slices.DeleteFunc(before, func(l Lease) bool { return l.Kind != "gateway" })
	blind("the engine was stopped")
	lab.Must(t, e.Start())
	back("started again in order")
}

var killedRounds = flag.Int("killed.rounds", 0, "how often the engine is killed in the midst of docker run")

// The engine is killed during docker run, repeatedly: before Berth is asked, before the engine hears the answer, and
// at other moments. After a repair each lease has a user, each user has a lease, and no address is given twice.
func TestKilledInTheMidst(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 57)
	h, r := relayed(t, e.Engine, e.Sockets, 57)
	n := h.network("--subnet", h.v4("0/24"))
	always := []string{h.withMAC(n, "02:62:74:00:57:01"), h.container(n, "--restart", "always")}
	before := h.address(always[0], n)
	cut, rounds := 0, sample(*killedRounds, 5, 15)
	for round := range rounds {
		name := h.name()
		policy := "no"
		if round%7 == 6 || round == rounds-1 {
			policy = "always"
		}
		if h.killedAt(e, r, round, rounds, containerCommand(name, n, "--restart", policy)) {
			cut++
		}
		lab.Must(t, e.Start())
		h.allRun(always)
		if policy == "always" && e.run(name) == nil {
			always = append(always, name)
		} else {
			_, _ = e.Docker("rm", "-f", name) // it may not exist
		}
	}
	h.allRun(always)
	found := h.check()
	t.Logf("%d of %d commands were cut off; %d leases were without a user, %d containers restart by themselves", cut,
		rounds, found.Counts["unused_lease"], len(always))
	if cut < rounds*2/5 || found.Counts["unused_lease"] < rounds*3/10 {
		t.Errorf("%d commands were cut off, and %d leases without a user: the faults were not in force", cut,
			found.Counts["unused_lease"])
	}
	h.heals(found.left()...)
	leases, users := h.covered(n)
	if !maps.Equal(leases, users) {
		t.Errorf("Berth has %v, and %v run", leases, users)
	}
	if len(users) != len(always) || users[before] != "02:62:74:00:57:01" {
		t.Errorf("%v run, and have %v; the one that had %s has a MAC of its own", always, users, before)
	}
	for _, c := range always {
		h.address(c, n)
	}
	h.address(h.container(n), n)
}

// run starts a container, which may run already.
func (e *PrivateEngine) run(container string) error {
	_, err := e.Docker("start", container)
	return err
}

// covered returns address and MAC of Berth's leases of a network, without its gateway, and of the running containers,
// as the engine shows them. It checks that no address is listed twice.
func (h *Harness) covered(network string) (leases, users map[string]string) {
	h.Helper()
	leases, users = map[string]string{}, map[string]string{}
	add := func(all map[string]string, address, mac string) {
		if other, twice := all[address]; twice {
			h.Errorf("%s is that of %s and of %s", address, other, mac)
		}
		all[address] = mac
	}
	for _, l := range h.leases(h.v4("0/24")) {
		if l.Kind != "gateway" {
			add(leases, l.Address, l.MAC)
		}
	}
	for id := range strings.FieldsSeq(h.docker("ps", "-q", "--filter", "network="+network)) {
		ep := h.endpoint(id, network)
		add(users, ep.IPAddress, ep.MacAddress)
	}
	return leases, users
}

// killedAt runs a docker command and kills the engine meanwhile, in each round at another moment. It reports whether
// the command failed because of that.
func (h *Harness) killedAt(e *PrivateEngine, r *Relay, round, rounds int, command []string) (cut bool) {
	h.Helper()
	now, dead := make(chan struct{}), make(chan struct{})
	var once sync.Once
	switch round % 5 {
	case 0, 1: // 0: Berth was not asked yet; 1: Berth has answered, the engine does not know yet
		r.Stop(func(answered bool) {
			if answered == (round%5 == 1) {
				once.Do(func() { close(now) })
				<-dead
			}
		})
	default: // after a time that grows with the round
		time.AfterFunc(time.Duration(round)*600*time.Millisecond/time.Duration(rounds), func() { close(now) })
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.Engine.Docker(command...)
		ended <- err
	}()
	select {
	case <-now:
	case <-time.After(lab.Patient(30 * time.Second)):
		h.Errorf("round %d: the engine has asked for no address", round)
	}
	err := e.Kill()
	r.Stop(nil)
	close(dead)
	lab.Must(h, err)
	return <-ended != nil
}
