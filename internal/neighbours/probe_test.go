package neighbours

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"

	"github.com/sirupsen/logrus"
	"go4.org/netipx"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// lan is a LAN with an edge and with machines that Berth does not know.
type lan struct {
	s       *service.Service
	mu      sync.Mutex // guards the fields below while a Prober runs
	here    map[netip.Addr]ipam.MAC
	asked   []ipam.LANAsk
	failure ipam.LANFailure
	before  func() // before the edge answers
}

func (l *lan) ask(_ context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, ask)
	if l.before != nil {
		l.before()
	}
	a := ipam.LANAnswer{Failure: l.failure, Error: string(l.failure)}
	for _, one := range ask.Addresses {
		if mac, ok := l.here[one]; ok && l.failure == "" {
			a.Answered = append(a.Answered, ipam.LANNeighbour{Address: one, MAC: mac})
		}
	}
	return a, nil
}

// change changes the LAN.
func (l *lan) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
}

func (l *lan) edit(t *testing.T, edits ...ipam.Edit) {
	t.Helper()
	if _, err := l.s.Edit(t.Context(), ipam.EditOptions{}, edits...); err != nil {
		t.Fatal(err)
	}
}

// excluded returns the network's exclusions with their notes.
func (l *lan) excluded(t *testing.T) (all []string) {
	t.Helper()
	n, err := l.s.Network(t.Context(), "home")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range n.Subnets {
		for _, x := range sub.Exclusions {
			all = append(all, x.Start.String()+" "+x.Note)
		}
	}
	return all
}

func newLAN(t *testing.T, probe string) *lan {
	t.Helper()
	s, err := service.Open(t.Context(), service.Config{Store: mem.New(), Host: "alpha"})
	if err != nil {
		t.Fatal(err)
	}
	l := &lan{s: s, here: map[netip.Addr]ipam.MAC{}}
	whole := netip.MustParsePrefix("192.0.2.0/24")
	l.edit(t, &ipam.CreateNetwork{Name: "home", Probe: probe, Subnets: []ipam.SubnetSpec{{CIDR: whole,
		Gateway: addr("192.0.2.1")}}}, &ipam.AddPool{Network: "home", Range: ipam.Range{IPRange: netipx.RangeOfPrefix(whole)}})
	return l
}

// run runs a Prober until the test ends. It returns when the Prober rests for the first time.
func (l *lan) run(t *testing.T) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	p := New(Config{Host: "alpha", ToProbe: l.s.ToProbe, Edit: l.s.Edit, Ask: l.ask, Log: logrus.NewEntry(quiet)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}

// TestProbe: an address that answers is excluded with its MAC before it is leased, and the stock is refilled.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "eth0")
		for _, one := range []string{"192.0.2.2", "192.0.2.3", "192.0.2.18", "192.0.2.20", "192.0.2.200"} {
			l.here[addr(one)] = ipam.MAC{2, 0, 0, 0, 0, addr(one).As4()[3]}
		}
		l.run(t)
		want := []string{"192.0.2.2 answered ARP from MAC 02:00:00:00:00:02 on 2000-01-01 (eth0 of host alpha)",
			"192.0.2.3 answered ARP from MAC 02:00:00:00:00:03 on 2000-01-01 (eth0 of host alpha)",
			"192.0.2.18 answered ARP from MAC 02:00:00:00:00:12 on 2000-01-01 (eth0 of host alpha)",
			"192.0.2.20 answered ARP from MAC 02:00:00:00:00:14 on 2000-01-01 (eth0 of host alpha)"}
		if got := l.excluded(t); !slices.Equal(got, want) {
			t.Errorf("excluded:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if n := len(l.asked); n != 4 || len(l.asked[0].Addresses) != stock || l.asked[0].Parent != "eth0" ||
			!slices.Equal(l.asked[1].Addresses, []netip.Addr{addr("192.0.2.18"), addr("192.0.2.19")}) {
			t.Errorf("asked %d times: %+v", n, l.asked)
		}
		next, err := l.s.NextFree(t.Context(), "home", ipam.FreeFilter{})
		if err != nil || len(next) != 1 || next[0].Start != addr("192.0.2.4") {
			t.Errorf("given next: %v, %v", next, err)
		}
		events, err := l.s.Events(t.Context(), ipam.EventFilter{Verbs: []ipam.Verb{ipam.AnswerFound}})
		if err != nil || len(events) != 4 {
			t.Fatalf("events: %v, %v", events, err)
		}
		if e := events[0]; e.Address != addr("192.0.2.2") || e.MAC != (ipam.MAC{2, 0, 0, 0, 0, 2}) || e.Actor != actor ||
			e.Network != "home" || !strings.Contains(e.Detail, "answered ARP") {
			t.Errorf("the event is %+v", e)
		}
	})
}

// TestProbeAgain: an address that is still free is probed again after a while, and not sooner. This finds a
// machine that came meanwhile.
func TestProbeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "eth0")
		l.run(t)
		time.Sleep(again - time.Second)
		synctest.Wait()
		if len(l.asked) != 1 {
			t.Errorf("asked %d times, and not once", len(l.asked))
		}
		l.change(func() { l.here[addr("192.0.2.2")] = ipam.MAC{2, 0, 0, 0, 0, 2} })
		time.Sleep(every + time.Second)
		synctest.Wait()
		if got := l.excluded(t); len(got) != 1 || !strings.HasPrefix(got[0], "192.0.2.2 ") {
			t.Errorf("excluded: %q", got)
		}
	})
}

// TestNotProbed: a network without a probe interface is not probed. Probing stops when the interface is removed.
func TestNotProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "")
		l.here[addr("192.0.2.2")] = ipam.MAC{2, 0, 0, 0, 0, 2}
		l.run(t)
		parent, none := "eth1", ""
		if len(l.asked) > 0 {
			t.Errorf("asked %+v", l.asked)
		}
		l.edit(t, &ipam.ModifyNetwork{Network: "home", Probe: &parent})
		time.Sleep(every)
		synctest.Wait()
		if len(l.asked) == 0 || l.asked[0].Parent != "eth1" || len(l.excluded(t)) != 1 {
			t.Errorf("asked %+v, excluded %q", l.asked, l.excluded(t))
		}
		l.edit(t, &ipam.ModifyNetwork{Network: "home", Probe: &none})
		before := len(l.asked)
		time.Sleep(3 * again)
		synctest.Wait()
		if len(l.asked) != before {
			t.Errorf("asked %d times more", len(l.asked)-before)
		}
	})
}

// TestGivenMeanwhile: if an address is leased during its probe, the answer is taken for the holder's, who keeps it.
func TestGivenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "eth0")
		l.here[addr("192.0.2.2")] = ipam.MAC{2, 0, 0, 0, 0, 2}
		l.before = func() {
			l.before = nil
			l.edit(t, &ipam.TakeAddress{Network: "home", Owner: "rtr", Interface: ipam.Interface{
				Wishes: []ipam.Wish{{Address: addr("192.0.2.2")}}}})
		}
		l.run(t)
		time.Sleep(3 * again)
		synctest.Wait()
		if got := l.excluded(t); len(got) > 0 {
			t.Errorf("excluded: %q", got)
		}
	})
}

// TestGivenBackMeanwhile: if an address is leased and released during its probe, the answer may be that holder's.
// Berth does not exclude the address for good because of its own container.
func TestGivenBackMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "eth0")
		pool, err := l.s.RequestPool(t.Context(), ipam.PoolRequest{Network: "home"})
		if err != nil {
			t.Fatal(err)
		}
		l.here[addr("192.0.2.2")] = ipam.MAC{2, 0, 0, 0, 0, 2}
		l.before = func() {
			l.before = nil
			got, err := l.s.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, Name: "job"})
			if err != nil || got.Addr() != addr("192.0.2.2") {
				t.Errorf("the container has %s: %v", got, err)
			}
			if err := l.s.ReleaseAddress(t.Context(), pool.ID, got.Addr()); err != nil {
				t.Error(err)
			}
		}
		l.run(t)
		time.Sleep(3 * again)
		synctest.Wait()
		if got := l.excluded(t); len(got) > 0 {
			t.Errorf("excluded: %q", got)
		}
	})
}

// TestNoEdge: without an edge nothing is excluded and nothing is lost. The probe follows once there is an edge.
func TestNoEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLAN(t, "eth0")
		l.here[addr("192.0.2.2")] = ipam.MAC{2, 0, 0, 0, 0, 2}
		l.failure = ipam.LANNoEdge
		l.run(t)
		time.Sleep(10 * every)
		synctest.Wait()
		if got := l.excluded(t); len(got) > 0 || len(l.asked) < 5 {
			t.Errorf("excluded: %q, asked %d times", got, len(l.asked))
		}
		l.change(func() { l.failure = "" })
		time.Sleep(every)
		synctest.Wait()
		if got := l.excluded(t); len(got) != 1 {
			t.Errorf("excluded: %q", got)
		}
	})
}
