package neighbours

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	"go4.org/netipx"
	"pgregory.net/rapid"
)

// lanRig is a LAN with machines that come and go, containers, a person, and an edge that may be away.
type lanRig struct {
	*lan
	t     *testing.T
	pool  ipam.ID
	ever  map[netip.Addr]bool // the addresses that machines ever had
	taken map[netip.Addr]bool // the addresses that containers have now
}

// some draws one of the first few dozen addresses, from which Berth leases.
func some(t *rapid.T) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(2, 50).Draw(t, "address"))})
}

// TestProbeModel: machines and containers come and go in any order. Berth never excludes an address that has a
// holder in the records, or one that no machine answered for. After an edge was up for a while, the next address
// to be leased is never a machine's.
func TestProbeModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// not a *testing.T, because the bubble's clock has nothing to do with the deadline of the tests
		rapid.Check(struct{ rapid.TB }{t}, func(r *rapid.T) {
			l := newLAN(t, "eth0")
			grant, err := l.s.RequestPool(t.Context(), ipam.PoolRequest{Network: "home"})
			if err != nil {
				r.Fatal(err)
			}
			w := &lanRig{lan: l, t: t, pool: grant.ID, ever: map[netip.Addr]bool{}, taken: map[netip.Addr]bool{}}
			quiet := logrus.New()
			quiet.SetOutput(io.Discard)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			p := New(Config{Host: "alpha", ToProbe: l.s.ToProbe, Edit: l.s.Edit, Ask: l.ask, Log: logrus.NewEntry(quiet)})
			go func() { ended <- p.Run(ctx) }()
			defer func() {
				cancel()
				if err := <-ended; err != nil {
					r.Error(err)
				}
			}()
			r.Repeat(map[string]func(*rapid.T){"comes": w.comes, "goes": w.goes, "starts": w.starts, "stops": w.stops,
				"edge": w.turnEdge, "allows": w.allows, "rests": w.rests, "passes": w.passes,
				"comes again": w.comes, "starts again": w.starts, "stops again": w.stops, "starts more": w.starts, "": w.holds})
		})
	})
}

// comes adds a machine with an address that no container has.
func (w *lanRig) comes(t *rapid.T) {
	at := some(t)
	if w.taken[at] {
		t.Skip("a container has it")
	}
	w.change(func() { w.here[at] = ipam.MAC{2, 0, 0, 0, 0, at.As4()[3]} })
	w.ever[at] = true
}

func (w *lanRig) goes(t *rapid.T) {
	at := some(t)
	w.change(func() { delete(w.here, at) })
}

// starts leases the next address to a container.
func (w *lanRig) starts(t *rapid.T) {
	p, err := w.s.RequestAddress(w.t.Context(), ipam.AddressRequest{Pool: w.pool,
		MAC: ipam.MAC{6, 0, 0, 0, 0, byte(rapid.IntRange(0, 255).Draw(t, "mac"))}})
	if err == nil {
		w.taken[p.Addr()] = true
	}
}

func (w *lanRig) stops(t *rapid.T) {
	at := some(t)
	if !w.taken[at] {
		t.Skip("no container has it")
	}
	if err := w.s.ReleaseAddress(w.t.Context(), w.pool, at); err != nil {
		t.Fatal(err)
	}
	delete(w.taken, at)
}

func (w *lanRig) turnEdge(*rapid.T) {
	w.change(func() {
		if w.failure == "" {
			w.failure = ipam.LANNoEdge
		} else {
			w.failure = ""
		}
	})
}

// allows removes an exclusion, as a person does.
func (w *lanRig) allows(t *rapid.T) {
	all := w.excluded(w.t)
	if len(all) == 0 {
		t.Skip("nothing is excluded")
	}
	text, _, _ := strings.Cut(rapid.SampledFrom(all).Draw(t, "exclusion"), " ")
	one := addr(text)
	w.edit(w.t, &ipam.RemoveExclusion{Network: "home", Range: ipam.Range{IPRange: netipx.IPRangeFrom(one, one)}})
}

// passes lets some time pass.
func (w *lanRig) passes(t *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
}

// rests waits with an edge until all addresses were probed again. Then none that is leased next is a machine's.
func (w *lanRig) rests(t *rapid.T) {
	w.change(func() { w.failure = "" })
	time.Sleep(again + 2*every)
	synctest.Wait()
	all, err := w.s.ToProbe(w.t.Context(), stock)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		for _, next := range n.Addresses {
			if mac, there := w.here[next]; there {
				t.Fatalf("%s is given next, which the machine %s has", next, mac)
			}
		}
	}
}

// holds checks what must hold at all times.
func (w *lanRig) holds(t *rapid.T) {
	synctest.Wait()
	for _, text := range w.excluded(w.t) {
		at, note, _ := strings.Cut(text, " ")
		if one := addr(at); w.taken[one] || !w.ever[one] || !strings.HasPrefix(note, "answered ARP from MAC ") {
			t.Fatalf("excluded is %s: %q; containers have %v, and machines had %v", at, note, w.taken, w.ever)
		}
	}
}
