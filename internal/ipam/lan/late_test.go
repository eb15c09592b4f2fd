package lan_test

import (
	"context"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/lan"
	"berth/store"
)

// meddled is a store that does something else before its next Update.
type meddled struct {
	store.Store
	before func()
}

func (m *meddled) Update(ctx context.Context, fn func(store.Tx) error) error {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.Store.Update(ctx, fn)
}

// TestLN15RenewedLate: Berth reads that a lease has expired. The lease is renewed before Berth writes that. It is
// not lost, and not forgotten if it is kept for an owner.
func TestLN15RenewedLate(t *testing.T) {
	for _, kept := range []bool{false, true} {
		h := newHarness(t)
		m := &meddled{Store: h.store}
		h.store = m
		h.start("h1")
		web, want := h.take("web", 1), "held bound"
		if kept {
			h.edit(&ipam.AddReservation{Network: h.net, Owner: "web"})
			h.back(web)
			want = "remembered bound"
		}
		h.wait(50 * time.Second)
		h.server.Fail(ipam.LANSilent)
		late := false
		m.before = func() { // nothing is written before it expires
			late = true
			h.server.Fail("")
			if err := lan.Of(h.s.Ledger).Schedule().Round(context.Background()); err != nil {
				t.Error(err)
			}
		}
		h.wait(90 * time.Second)
		if !late {
			t.Fatal("nothing was written")
		}
		h.is(web, want)
		if lost := h.told(ipam.LeaseLost); len(lost) > 0 {
			t.Errorf("it was lost: %v", lost)
		}
	}
}
