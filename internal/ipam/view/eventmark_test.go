package view_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// poller polls the events after its mark, which it keeps as text.
type poller struct {
	t    *testing.T
	s    *service.Service
	mark []byte
	told []uint64
}

func (p *poller) poll(n int) (more bool) {
	p.t.Helper()
	var mark ipam.EventMark
	if p.mark != nil {
		must(p.t, mark.UnmarshalText(p.mark))
	}
	page, err := p.s.EventsBehind(p.t.Context(), mark, n, func(e *ipam.Event) bool { return e.Host != "a" })
	if err != nil || len(page.Events) > n {
		p.t.Fatalf("%d events of %d: %v", len(page.Events), n, err)
	}
	for _, e := range page.Events {
		p.told = append(p.told, e.ID)
	}
	p.mark, _ = page.Next.MarshalText()
	return page.More
}

func allEvents(t *testing.T, s *service.Service) []ipam.Event {
	t.Helper()
	all, err := s.Events(t.Context(), ipam.EventFilter{})
	must(t, err)
	return all
}

// Polls from mark to mark report each event once, though hosts commit them in any order, pages end anywhere, and
// the daemon restarts in between. What a poll reads does not grow with the number of all events.
func TestEventsBehindMissesNone(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 0))
			st := mem.New()
			member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}
			open := func() *service.Service {
				s, err := service.Open(t.Context(), service.Config{Store: st, Host: "a", Member: member})
				must(t, err)
				return s
			}
			p := &poller{t: t, s: open()}
			others := st.Join()
			const hosts = 5
			greatest := func() (id uint64) {
				for _, e := range allEvents(t, p.s) {
					id = max(id, e.ID)
				}
				return id
			}
			var want []uint64
			lately := greatest() // every host has seen events up to this id
			for range 300 {
				host := 1 + draw.Uint64N(hosts)
				id := (lately/ipam.MaxHosts+1+draw.Uint64N(100_000))*ipam.MaxHosts + host
				for _, w := range want {
					if w%ipam.MaxHosts == host && w >= id {
						id = w + ipam.MaxHosts
					}
				}
				want = append(want, id)
				err := others.Update(t.Context(), func(tx store.Tx) error {
					return tx.Put(ledger.EventKey(nil, id),
						ipam.EncodeEvent(nil, &ipam.Event{Verb: ipam.LeaseTaken, Host: "b"}))
				})
				must(t, err)
				switch draw.IntN(12) {
				case 0:
					time.Sleep(2 * ledger.LateCommit)
					lately = greatest()
				case 1:
					_ = st.Close()
					st = others.Join()
					p.s = open()
				case 2, 3, 4:
					p.poll(draw.IntN(9))
				}
			}
			for p.poll(1 + draw.IntN(40)) {
			}
			slices.Sort(want)
			if slices.Sort(p.told); !slices.Equal(p.told, want) {
				t.Fatalf("seed %d: %d events were told, want %d", seed, len(p.told), len(want))
			}
			time.Sleep(2 * ledger.LateCommit)
			p.poll(1)
			time.Sleep(2 * ledger.LateCommit)
			p.poll(1)
			var mark ipam.EventMark
			if err := mark.UnmarshalText(p.mark); err != nil || mark.Own.After < greatest() || len(p.mark) > 40 {
				t.Fatalf("seed %d: the mark %q reads from %d on, and there is nothing behind %d: %v",
					seed, p.mark, mark.Own.After, greatest(), err)
			}
			_, _ = st.Close(), others.Close()
		})
	}
}

// The events before a mark and after it are all events, though new ones come while both are read.
func TestEventsUntilMark(t *testing.T) {
	h := newWrittenTail(t)
	member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}
	s, err := service.Open(t.Context(), service.Config{Store: h.other.Join(), Host: "c", Member: member})
	must(t, err)
	h.commit(1000*ipam.MaxHosts + 1)
	mark, err := s.LastEvent(t.Context())
	must(t, err)
	h.commit(2) // with a lower id
	h.hear(2)
	before, err := s.Events(t.Context(), ipam.EventFilter{Last: 1, Until: &mark})
	if err != nil || len(before) != 1 || before[0].ID-h.base != 1000*ipam.MaxHosts+1 {
		t.Fatalf("before the mark %+v, %v", before, err)
	}
	page, err := s.EventsBehind(t.Context(), mark, 5, func(*ipam.Event) bool { return true })
	if err != nil || len(page.Events) != 1 || page.Events[0].ID-h.base != 2 {
		t.Fatalf("behind it %+v, %v", page.Events, err)
	}
}

// A text that is no mark is refused. A mark keeps its meaning when it is written and read again.
func FuzzEventMark(f *testing.F) {
	whole := ipam.EventMark{Host: ipam.HostMark("a"), Own: ipam.StoreMark{After: 7},
		Shared: ipam.StoreMark{After: 1 << 60, AtReach: true}}
	whole.Shared.Told[3], whole.Shared.Told[255] = 1<<60+3, 1<<61
	for _, m := range []ipam.EventMark{{}, whole} {
		text, _ := m.MarshalText()
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m, again ipam.EventMark
		if err := m.UnmarshalText(text); err != nil {
			if !errors.Is(err, ipam.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		got, err := m.MarshalText()
		if err != nil || !bytes.Equal(got, text) || again.UnmarshalText(got) != nil || again != m {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
	})
}
