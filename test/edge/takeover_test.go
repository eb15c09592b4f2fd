//go:build edge

package edge_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// first is the first time after since that a MAC answered for an address.
func (w *watch) first(a netip.Addr, mac string, since time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.address == a && one.mac == mac && one.at.After(since) {
			return one.at
		}
	}
	return time.Time{}
}

// TestHostKilled: another host takes over the addresses of a killed one within ten seconds (kube-vip #996, keepalived
// #166).
func TestHostKilled(t *testing.T) {
	c := newCluster(t, "")
	h1, h2 := c.hosts[0], c.hosts[1]
	g1, g2 := h1.newGuest("g1"), h2.newGuest("g2")
	for _, a := range both {
		h1.berth("elastic", "associate", a.String(), g1.mac)
		c.reaches(a, "g1", time.Second)
	}
	h1.daemon.Kill()
	h1.edge.Kill()
	for _, a := range both {
		h2.berth("elastic", "associate", a.String(), g2.mac, "--move")
	}
	for _, a := range both {
		c.reaches(a, "g2", 10*time.Second)
	}
}

// fault is a failure of a host: how it begins and how it ends.
type fault struct {
	name       string
	begin, end func(*clusterHost)
}

func stopped(of func(*clusterHost) []*lab.Process) (begin, end func(*clusterHost)) {
	signal := func(s syscall.Signal) func(*clusterHost) {
		return func(h *clusterHost) {
			for _, p := range of(h) {
				p.Signal(h.t, s)
			}
		}
	}
	return signal(syscall.SIGSTOP), signal(syscall.SIGCONT)
}

// faults are all faults under test.
func faults() []fault {
	edge := func(h *clusterHost) []*lab.Process { return []*lab.Process{h.edge} }
	daemon := func(h *clusterHost) []*lab.Process { return []*lab.Process{h.daemon} }
	both := func(h *clusterHost) []*lab.Process { return []*lab.Process{h.daemon, h.edge} }
	all := []fault{
		{"the edge is killed", func(h *clusterHost) { h.edge.Kill() }, (*clusterHost).startEdge},
		{"the daemon is killed", func(h *clusterHost) { h.daemon.Kill() }, (*clusterHost).startDaemon},
		{"both are killed", func(h *clusterHost) { h.daemon.Kill(); h.edge.Kill() },
			func(h *clusterHost) { h.startDaemon(); h.startEdge() }},
		{"cut from the store", (*clusterHost).cutOff, (*clusterHost).heal},
		{"cut from the store, and the edge is frozen", func(h *clusterHost) { h.edge.Signal(h.t, syscall.SIGSTOP); h.cutOff() },
			func(h *clusterHost) { h.heal(); h.edge.Signal(h.t, syscall.SIGCONT) }},
	}
	for name, of := range map[string]func(*clusterHost) []*lab.Process{"the edge": edge, "the daemon": daemon, "both": both} {
		begin, end := stopped(of)
		all = append(all, fault{name + " frozen", begin, end})
	}
	return all
}

// TestTakeOverUnderFaults: whatever happens to a host's edge and daemon, another host takes over the address. Two
// hosts never answer, not even when the first continues with old orders (MetalLB #589, #740; kube-vip #996;
// keepalived #166). Only the kernel can silence a host that is frozen, killed or cut off.
func TestTakeOverUnderFaults(t *testing.T) {
	all, options, most := faults(), "", *rounds
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if testing.Short() { // some of the faults, with the shortest possible waits
		options, most = "--ttl 3s", min(most, 3)
	}
	c := newCluster(t, options)
	guests := []guestOn{c.hosts[0].newGuest("g1"), c.hosts[1].newGuest("g2")}
	macs := []string{macOf(t, "h1"), macOf(t, "h2")}
	watches := map[netip.Addr]*watch{}
	for _, a := range both {
		c.hosts[0].berth("elastic", "associate", a.String(), guests[0].mac)
		watches[a] = watchAddress(t, a)
	}
	for round := range most {
		holder, taker := round%2, (round+1)%2
		f := all[round%len(all)]
		what := fmt.Sprintf("round %d, %s", round, f.name)
		for a, w := range watches {
			w.hears(t, what+": the holder", a, macs[holder], time.Now().Add(-100*time.Millisecond), 5*time.Second)
		}
		time.Sleep(time.Duration(rand.IntN(1200)) * time.Millisecond)
		begun := time.Now()
		f.begin(c.hosts[holder])
		for _, a := range both {
			c.hosts[taker].berth("elastic", "associate", a.String(), guests[taker].mac, "--move")
		}
		took := map[netip.Addr]time.Time{}
		for a, w := range watches {
			took[a] = w.hears(t, what+": the taker", a, macs[taker], begun, 14*time.Second)
		}
		time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
		f.end(c.hosts[holder])
		time.Sleep(1500 * time.Millisecond)
		for a, w := range watches {
			if n := w.answers(a, macs[holder], took[a]); n > 0 {
				t.Errorf("%s: the old host answered %d times for %s after the new one did", what, n, a)
			}
			if w.answers(a, macs[taker], time.Now().Add(-300*time.Millisecond)) == 0 {
				t.Errorf("%s: the new host answers no more for %s", what, a)
			}
		}
	}
}

// hears waits until a MAC answers for an address, and returns the first time after since.
func (w *watch) hears(t *testing.T, who string, a netip.Addr, mac string, since time.Time,
	long time.Duration) time.Time {
	t.Helper()
	within(t, long, who+" answers for "+a.String(), func() error {
		if w.first(a, mac, since).IsZero() {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	return w.first(a, mac, since)
}
