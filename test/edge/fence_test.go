//go:build edge

package edge_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

// late is how long after Until a range may still answer: the time of a ticket, plus the machine's delay.
const late = 500*time.Millisecond + 300*time.Millisecond

// watch asks from the peer every 20 ms for an address, and keeps the answers.
type watch struct {
	*ears
	stop chan struct{}
	done chan struct{}
}

func watchAddress(t *testing.T, a netip.Addr) *watch {
	t.Helper()
	w := &watch{ears: listen(t, peer), stop: make(chan struct{}), done: make(chan struct{})}
	ask := solicitor(t, a)
	if a.Is4() {
		c := socketIn(t, peer)
		mac, err := net.ParseMAC(macOf(t, peer))
		lab.Must(t, err)
		ask = func() { sendARP(t, c, 1, mac, peer4, a) }
	}
	go func() {
		defer close(w.done)
		for {
			select {
			case <-w.stop:
				return
			case <-time.After(20 * time.Millisecond):
				ask()
			}
		}
	}()
	t.Cleanup(func() { close(w.stop); <-w.done })
	return w
}

// answers counts the answers of a MAC, in any form, after since.
func (w *watch) answers(a netip.Addr, mac string, since time.Time) int {
	n := 0
	for _, times := range w.of(a, mac, since) {
		n += times
	}
	return n
}

// last is the last time that a MAC answered for an address.
func (w *watch) last(a netip.Addr, mac string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range slices.Backward(w.all) {
		if one.address == a && one.mac == mac {
			return one.at
		}
	}
	return time.Time{}
}

// knows6 reports whether any host answers for an IPv6 address.
func knows6(t *testing.T, a netip.Addr) bool {
	t.Helper()
	run(t, "ip -n cl -6 neigh flush dev eth0")
	return ping(peer, a) == nil
}

// kept4 is in a range that continues when the host is cut off.
var kept4 = addr("10.9.0.112")

// isSilent expects no answer and no translation for the fenced addresses, while the kept address continues.
func isSilent(t *testing.T, w *watch, when string) {
	t.Helper()
	mac := macOf(t, "")
	begin := time.Now()
	time.Sleep(300 * time.Millisecond)
	if n := w.answers(elastic4, mac, begin); n > 0 {
		t.Errorf("%s: %d answers", when, n)
	}
	if knows6(t, elastic6) {
		t.Errorf("%s: IPv6 is answered", when)
	}
	// The peer knows this host's MAC already. The guest cannot send out, not even with another source address.
	run(t, "ip -n cl neigh replace 10.9.0.100 lladdr "+mac+" dev eth0")
	refused(t, peer, "tcp", elastic4)
	refused(t, guest, "tcp", peer4)
	refused(t, "", "tcp", elastic4)
	expect(t, next, "tcp", peer4, peer, kept4)
	expect(t, peer, "tcp", kept4, next, peer4)
}

// renewAgain renews for longer than the first permission, while flows continue. It returns the end of the last
// renewal.
func renewAgain(t *testing.T, p *nft.Provider, flows ...flow) time.Time {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < 4*time.Second { // longer than the first permission
		lab.Must(t, p.Renew(t.Context(), soon(t, 2*time.Second)))
		for _, f := range flows {
			if _, err := f.ask(); err != nil {
				t.Fatalf("%s after the first renewal: %v", time.Since(begin), err)
			}
		}
	}
	ends := time.Now().Add(2 * time.Second)
	within(t, 3*time.Second, "the end", func() error {
		if left := time.Until(ends.Add(late)); left > 0 {
			return fmt.Errorf("%s left", left)
		}
		return nil
	})
	return ends
}

// TestFence: a range that is withdrawn on a cut answers while this is allowed, and no longer: ARP, neighbour
// discovery and translation, both ways. A kept range continues.
func TestFence(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	serve(t, peer)
	p := newProvider(t, nft.Config{})
	w, mac := watchAddress(t, elastic4), macOf(t, "")
	s := mapped(edge.Withdraw)
	s.Ranges = append(s.Ranges, edge.Range{From: kept4, To: kept4, Announce: "eth0", OnCut: edge.Keep})
	s.Mappings = append(s.Mappings, edge.Mapping{Elastic: kept4, Guest: next4, Subnet: subnet4})
	silent := func(when string) {
		t.Helper()
		isSilent(t, w, when)
	}
	set(t, p, s)
	silent("before anything is allowed")
	if err := p.Renew(t.Context(), soon(t, time.Minute)); !errors.Is(err, edge.ErrExpired) {
		t.Errorf("a renewal of what was never allowed: %v", err)
	}

	s.Until = soon(t, 2*time.Second)
	set(t, p, s)
	expect(t, peer, "tcp", elastic4, guest, peer4)
	expect(t, peer, "tcp", elastic6, guest, peer6)
	expect(t, guest, "tcp", peer4, peer, elastic4)
	in4, out4 := opened(t, peer, "udp", elastic4), opened(t, guest, "udp", peer4)
	ends := renewAgain(t, p, in4, out4)
	if over := w.last(elastic4, mac).Sub(ends); over > late {
		t.Errorf("the last answer came %s after Until", over)
	}
	silent("after Until")
	for _, f := range []flow{in4, out4} {
		if got, err := f.ask(); err == nil {
			t.Errorf("an open flow goes on: %s", got)
		}
	}
	if err := p.Renew(t.Context(), soon(t, time.Minute)); !errors.Is(err, edge.ErrExpired) {
		t.Errorf("a renewal that comes too late: %v", err)
	}
	if n := p.Counts().Expired; n != 2 {
		t.Errorf("%d late renewals were counted", n)
	}
	silent("after a late renewal")

	// The host was cut off and is back, and no host took over: it answers and announces again (MetalLB #584).
	begin := time.Now()
	s.Until = soon(t, time.Minute)
	set(t, p, s)
	within(t, time.Second, "an announcement after the return", func() error {
		if n := w.of(elastic4, mac, begin); n["request"] == 0 {
			return fmt.Errorf("heard %v", n)
		}
		return nil
	})
	expect(t, peer, "tcp", elastic4, guest, peer4)
	expect(t, peer, "tcp", elastic6, guest, peer6)
	within(t, time.Second, "the open flow", func() error { _, err := in4.ask(); return err })
}

// TestGateHoldsFrames: the device drops this program's frames about an address that must not be answered. So a
// process frozen right before the call does no harm when it continues.
func TestGateHoldsFrames(t *testing.T) {
	newLab(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Withdraw)
	set(t, p, s)
	e, c, ours := listen(t, peer), socketIn(t, ""), macOf(t, "")
	mac, err := net.ParseMAC(ours)
	lab.Must(t, err)
	begin := time.Now()
	send := func() {
		for _, form := range []byte{1, 2} {
			sendARP(t, c, form, mac, elastic4, elastic4)
		}
		sendARP(t, c, 1, mac, host4, peer4) // about the host's own address
	}
	send()
	within(t, time.Second, "the host's own frame", func() error {
		if e.of(host4, ours, begin)["request"] == 0 {
			return errors.New("not heard")
		}
		return nil
	})
	if n := e.of(elastic4, ours, begin); len(n) > 0 {
		t.Errorf("heard %v", n)
	}
	s.Until = soon(t, time.Minute)
	set(t, p, s)
	begin = time.Now()
	send()
	within(t, time.Second, "the frames that may go", func() error {
		if n := e.of(elastic4, ours, begin); n["request"] == 0 || n["reply"] == 0 {
			return fmt.Errorf("heard %v", n)
		}
		return nil
	})
}

// TestManyCycles: a range comes back after each end, however many expired intervals the kernel still keeps.
func TestManyCycles(t *testing.T) {
	newLab(t)
	p := newProvider(t, nft.Config{})
	s := mapped(edge.Withdraw)
	s.Ranges[0].To = addr("10.9.0.103")
	s.Ranges = append(s.Ranges, edge.Range{From: addr("10.9.0.104"), To: addr("10.9.0.111"), OnCut: edge.Withdraw,
		TTL: 40 * time.Millisecond}) // adjacent to the first range, and shorter
	for i := range 30 {
		s.Until = soon(t, 150*time.Millisecond)
		set(t, p, s)
		if i%3 == 0 {
			time.Sleep(250 * time.Millisecond)
			continue
		}
		time.Sleep(30 * time.Millisecond)
		if err := p.Renew(t.Context(), soon(t, 150*time.Millisecond)); err != nil && !errors.Is(err, edge.ErrExpired) {
			t.Fatal(err)
		}
	}
	s.Until = soon(t, time.Minute)
	s.Ranges[2].TTL = 0
	set(t, p, s)
	time.Sleep(1500 * time.Millisecond) // by now the kernel has collected the expired ones
	for _, family := range []string{"ip", "arp", "netdev"} {
		live := run(t, "nft list set "+family+" berth live")
		if n := countOf(live, "expires"); n != 2 {
			t.Errorf("%d live ranges, not 2: %s", n, live)
		}
	}
}

func countOf(text, word string) (n int) {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i:i+len(word)] == word {
			n++
		}
	}
	return n
}
