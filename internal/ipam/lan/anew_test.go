package lan_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/lan"
	"berth/internal/ipam/service"
)

// once restarts the daemon. It runs fn before the server hears the next question of a verb while armed is true.
func (h *harness) once(verb ipam.LANVerb, armed *atomic.Bool, fn func(ipam.LANAsk)) {
	h.t.Helper()
	var err error
	h.s, err = service.Open(context.Background(), service.Config{Store: h.store, Host: "h1", Now: h.clock.Now,
		AskLAN: func(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
			if ask.Verb == verb && armed.CompareAndSwap(true, false) {
				fn(ask)
			}
			return h.server.Ask(ctx, ask)
		}})
	fine(h.t, err)
	h.keeper = lan.Of(h.s.Ledger).Schedule()
}

// TestLN15AnewBesideStart: a container gets a new address while Berth asks for its old one. The server gives the
// new one instead of the old one, too. Berth does not give it back.
func TestLN15AnewBesideStart(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.server.Forget(true)
	h.server.Give(web, "a printer")
	h.wait(70 * time.Second)
	h.is(web, "held lost")
	var armed atomic.Bool
	var got netip.Addr
	armed.Store(true)
	h.once(ipam.LANConfirm, &armed, func(ipam.LANAsk) {
		h.back(web)
		got = h.take("web", 2)
	})
	h.wait(40 * time.Second)
	if !got.IsValid() || got == web {
		t.Fatalf("it got %s, and had %s", got, web)
	}
	h.is(got, "held bound")
	if h.server.Has(got) == "" {
		t.Errorf("%s is free at the server", got)
	}
}

// TestLN15AnewAnother: if the server gives another address instead of a lost one, Berth gives it back.
func TestLN15AnewAnother(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.server.Forget(true)
	h.server.Give(web, "a printer")
	h.wait(5 * time.Minute)
	h.is(web, "held lost")
	if got := h.server.Has(web.Next()); got != "" {
		t.Errorf("the server has it for %q", got)
	}
	given := 0
	for _, ask := range h.server.Asked() {
		if ask.Verb == ipam.LANRelease && ask.Address == web.Next() && ask.Server == h.server.Server {
			given++
		}
	}
	if given == 0 {
		t.Error("it was not given back")
	}
}

// TestLN15AskedNoMore: a round does not ask for a due address whose container restarted since the round began.
func TestLN15AskedNoMore(t *testing.T) {
	h := newHarness(t)
	web, db := h.take("web", 1), h.take("db", 2)
	var armed atomic.Bool
	var other netip.Addr
	h.once(ipam.LANConfirm, &armed, func(ask ipam.LANAsk) {
		name := "web"
		if other = web; ask.Address == web {
			name, other = "db", db
		}
		h.server.Fail("")
		h.server.Forget(true)
		h.server.Give(web, "a printer")
		h.server.Give(db, "a printer")
		h.back(other)
		if again := h.take(name, 3); again == other {
			t.Errorf("the server gave %s, which is a printer's", again)
		}
		h.server.Asked()
	})
	h.server.Fail(ipam.LANSilent) // Berth asks for one after the other
	h.wait(3 * time.Minute)
	h.is(web, "held lost")
	h.is(db, "held lost")
	armed.Store(true)
	h.wait(time.Minute)
	if armed.Load() {
		t.Fatal("nothing was asked")
	}
	for _, ask := range h.server.Asked() {
		if ask.Address == other {
			t.Errorf("asked for %s, which nobody has: %+v", other, ask)
		}
	}
}
