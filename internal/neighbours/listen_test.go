package neighbours

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	logs "github.com/sirupsen/logrus/hooks/test"
)

var own, foreign = ipam.MAC{2, 0x42, 0, 0, 0, 1}, ipam.MAC{0x9c, 0xb6, 0, 0, 0, 9}

// listener is a LAN with machines that claim addresses, and a daemon that listens.
type listener struct {
	*lan
	t    *testing.T
	pool ipam.ID
	says []ipam.LANNeighbour
	seen map[netip.Addr]ipam.MAC
	log  *logs.Hook
	l    *Listener
}

// ask answers near the end of the time limit, as an edge that listens does.
func (l *listener) ask(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	if ask.Verb != ipam.LANHear || ask.Parent != "eth0" || ask.Subnet != netip.MustParsePrefix("192.0.2.0/24") {
		l.t.Errorf("asked: %+v", ask)
	}
	select {
	case <-time.After(time.Duration(ask.Within) - time.Second):
	case <-ctx.Done():
		return ipam.LANAnswer{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return ipam.LANAnswer{Answered: l.says, Failure: l.failure}, nil
}

func (l *listener) seenBy(_ string, addr netip.Addr, _ uint64) *ipam.SeenBy {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mac, ok := l.seen[addr]; ok {
		return &ipam.SeenBy{Container: "seen", MAC: mac}
	}
	return nil
}

func (l *listener) take(name string, mac ipam.MAC) netip.Addr {
	l.t.Helper()
	p, err := l.s.RequestAddress(l.t.Context(), ipam.AddressRequest{Pool: l.pool, Name: name, MAC: mac})
	if err != nil {
		l.t.Fatal(err)
	}
	return p.Addr()
}

// newListener starts a Listener for a probed network that has a Docker network.
func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{lan: newLAN(t, "eth0"), t: t, seen: map[netip.Addr]ipam.MAC{}}
	grant, err := l.s.RequestPool(t.Context(), ipam.PoolRequest{Network: "home"})
	if err != nil {
		t.Fatal(err)
	}
	l.pool = grant.ID
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	l.log = logs.NewLocal(quiet)
	l.l = NewListener(ListenConfig{Host: "alpha", Networks: l.s.Networks, Network: l.s.Network,
		Leases: l.s.Leases, SeenBy: l.seenBy, Ask: l.ask,
		Log: logrus.NewEntry(quiet)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// hears waits for two rounds of listening, and checks that the findings are exactly those of the given addresses.
func (l *listener) hears(want ...netip.Addr) []ipam.Finding {
	l.t.Helper()
	time.Sleep(2*window + time.Second)
	found := l.l.Findings()
	if len(found) != len(want) {
		l.t.Fatalf("found %+v, not %v", found, want)
	}
	for i, f := range found {
		if f.Kind != ipam.ForeignAnswer || f.Address != want[i] || f.MAC != foreign {
			l.t.Errorf("found %+v, not %s", f, want[i])
		}
	}
	return found
}

// TestListen: a machine that claims a container's address is found with its MAC, and logged once. Claims by the
// container itself, or to the gateway's or an unleased address, are not findings. A finding ends some time after
// the last claim.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListener(t)
		web := l.take("web", own)
		time.Sleep(window)
		others := []ipam.LANNeighbour{{Address: web, MAC: own}, {Address: addr("192.0.2.1"), MAC: foreign},
			{Address: addr("192.0.2.99"), MAC: foreign}}
		l.change(func() { l.says = others })
		l.hears()
		l.change(func() { l.says = append(slices.Clone(others), ipam.LANNeighbour{Address: web, MAC: foreign}) })
		first := l.hears(web)
		for _, part := range []string{foreign.String(), own.String(), "eth0", "web of host alpha", web.String()} {
			if !strings.Contains(first[0].Detail, part) {
				t.Errorf("it does not say %q: %s", part, first[0].Detail)
			}
		}
		if later := l.hears(web); !later[0].Seen.Equal(first[0].Seen) || len(l.log.AllEntries()) != 1 {
			t.Errorf("found again %+v, said %d times", later, len(l.log.AllEntries()))
		}
		l.change(func() { l.says = others })
		l.hears(web)
		time.Sleep(silence)
		l.hears()
	})
}

// TestListenKnows: if the container's own MAC is unknown, no claim is a finding. The witness's MAC is enough. A
// claim from the round in which a container started is not a finding. A container's findings end with it.
func TestListenKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListener(t)
		web := l.take("web", ipam.MAC{})
		l.change(func() { l.says = []ipam.LANNeighbour{{Address: web, MAC: foreign}} })
		l.hears()
		l.change(func() { l.seen[web] = foreign })
		l.hears()
		l.change(func() { l.seen[web] = own })
		l.hears(web)
		if err := l.s.ReleaseAddress(t.Context(), l.pool, web); err != nil {
			t.Fatal(err)
		}
		l.hears()

		l.change(func() { clear(l.seen) })
		time.Sleep(window / 2)
		again := l.take("web", own)
		l.change(func() { l.says = []ipam.LANNeighbour{{Address: again, MAC: foreign}} })
		time.Sleep(window / 2)
		if found := l.l.Findings(); len(found) > 0 {
			t.Errorf("said before it came, and found: %+v", found)
		}
	})
}

// TestListenDeaf: if nobody can listen on the LAN of a network to be probed, this is a finding after two such
// rounds. It ends with the first answer. On a host that probes nothing it is not a finding.
func TestListenDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListener(t)
		l.hears()
		l.change(func() { l.failure = ipam.LANNoEdge })
		time.Sleep(window)
		if found := l.l.Findings(); len(found) > 0 {
			t.Errorf("an edge that is exchanged is a finding: %+v", found)
		}
		time.Sleep(window + time.Second)
		found := l.l.Findings()
		if len(found) != 1 || found[0].Kind != ipam.UnprobedNetwork || found[0].Network != "home" || found[0].Host != "alpha" ||
			!strings.Contains(found[0].Detail, "eth0 of host alpha") || !strings.Contains(found[0].Detail, "no_edge") {
			t.Fatalf("found %+v", found)
		}
		l.change(func() { l.failure = "" })
		l.hears()
		l.change(func() { l.failure = ipam.LANNoEdge })
		time.Sleep(2*window + time.Second)
		l.edit(t, &ipam.ModifyNetwork{Network: "home", Probe: new("beta=eth0")})
		l.hears()
		l.edit(t, &ipam.ModifyNetwork{Network: "home", Probe: new("alpha=eth0,beta=eno1")})
		time.Sleep(3*window + time.Second)
		if found := l.l.Findings(); len(found) != 1 || !strings.Contains(found[0].Detail, "eth0 of host alpha") {
			t.Errorf("found %+v", found)
		}
	})
}
