//go:build edge

package edge_test

import (
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var moves = flag.Int("moves", 10, "how often an address moves between two hosts")

// probe asks each 5 ms, without waiting for answers, and keeps which guest answered when.
type probe struct {
	mu  sync.Mutex
	all []answered
}

type answered struct {
	at time.Time
	by string
}

func newProbe(t *testing.T) *probe {
	t.Helper()
	f, err := open(peer, "udp", elastic4)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	p := &probe{}
	var both sync.WaitGroup
	both.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_, _ = f.Write([]byte("?\n"))
			}
		}
	})
	both.Go(func() {
		b := make([]byte, 200)
		for {
			_ = f.SetReadDeadline(time.Now().Add(time.Second))
			n, err := f.Read(b)
			if n > 0 {
				name, _, _ := strings.Cut(string(b[:n]), " ")
				p.mu.Lock()
				p.all = append(p.all, answered{time.Now(), name})
				p.mu.Unlock()
			}
			select {
			case <-stop:
				return
			default:
				_ = err // nobody answers at this moment
			}
		}
	})
	t.Cleanup(func() { close(stop); both.Wait(); _ = f.Close() })
	return p
}

// gap is the longest time without an answer since a time.
func (p *probe) gap(since time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := since
	for _, a := range p.all {
		if a.at.After(since) {
			longest, last = max(longest, a.at.Sub(last)), a.at
		}
	}
	return max(longest, time.Since(last))
}

// by counts the answers of a guest since a time.
func (p *probe) by(name string, since time.Time) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.all {
		if a.by == name && a.at.After(since) {
			n++
		}
	}
	return n
}

// TestMoves: an address moves between two hosts that are there, with a gap of 200 ms at most, and when `berth elastic
// associate` has returned nothing reaches the guest of before, not even what was on its way by a flow that was there.
func TestMoves(t *testing.T) {
	c := newCluster(t, "")
	guests := []guestOn{c.hosts[0].newGuest("g1"), c.hosts[1].newGuest("g2")}
	c.hosts[0].berth("elastic", "associate", elastic4.String(), guests[0].mac)
	c.reaches(elastic4, "g1", time.Second)
	p := newProbe(t)
	time.Sleep(1500 * time.Millisecond)
	var gaps []time.Duration
	stray := 0
	for n := range *moves {
		from, to := n%2, (n+1)%2
		begun := time.Now()
		c.hosts[n/2%2].berth("elastic", "associate", elastic4.String(), guests[to].mac, "--move")
		returned := time.Now()
		time.Sleep(1500 * time.Millisecond)
		gaps = append(gaps, p.gap(begun))
		stray += p.by(guests[from].ns, returned.Add(5*time.Millisecond)) // an answer on its way back
		if p.by(guests[to].ns, returned) == 0 {
			t.Fatalf("move %d: nothing reaches %s", n, guests[to].ns)
		}
	}
	slices.Sort(gaps)
	p99 := gaps[(len(gaps)*99+99)/100-1]
	t.Logf("%d moves: median gap %s, p99 %s, the longest %s; %d packets to the guest of before", *moves,
		gaps[len(gaps)/2], p99, gaps[len(gaps)-1], stray)
	if p99 > 200*time.Millisecond {
		t.Errorf("the p99 of the gap is %s", p99)
	}
	if stray > 0 {
		t.Errorf("%d packets reached the guest of before", stray)
	}
}
