package view_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// writtenTail is a tail of a shared store. The test writes its events, as other hosts do: commits come in any
// order of ids.
type writtenTail struct {
	t     *testing.T
	other *mem.Store
	base  uint64 // a multiple of MaxHosts above all existing ids
	pages chan []uint64
}

func newWrittenTail(t *testing.T) *writtenTail {
	t.Helper()
	own := mem.New()
	s, err := service.Open(t.Context(),
		service.Config{Store: own, Host: "a", Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}})
	must(t, err)
	after, err := s.LastEvent(t.Context())
	must(t, err)
	h := &writtenTail{t: t, other: own.Join(),
		base:  (max(after.Own.After, slices.Max(after.Own.Told[:]))/ipam.MaxHosts + 1) * ipam.MaxHosts,
		pages: make(chan []uint64)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		for page, err := range s.TailPages(ctx, after) {
			if err != nil {
				ended <- err
				return
			}
			var ids []uint64
			for _, e := range page.Events {
				ids = append(ids, e.ID-h.base)
			}
			select {
			case h.pages <- ids: // as slowly as the test reads
			case <-ctx.Done():
			}
		}
		ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return h
}

// commit writes events in one transaction.
func (h *writtenTail) commit(ids ...uint64) {
	h.t.Helper()
	err := h.other.Update(h.t.Context(), func(tx store.Tx) error {
		for _, id := range ids {
			if err := tx.Put(ledger.EventKey(nil, h.base+id),
				ipam.EncodeEvent(nil, &ipam.Event{Verb: ipam.LeaseTaken, Host: "b"})); err != nil {
				return err
			}
		}
		return nil
	})
	must(h.t, err)
}

// hear takes n events.
func (h *writtenTail) hear(n int) (all []uint64) {
	h.t.Helper()
	late := time.After(30 * time.Second)
	for len(all) < n {
		select {
		case ids := <-h.pages:
			all = append(all, ids...)
		case <-late:
			h.t.Fatalf("%d of %d events were told", len(all), n)
		}
	}
	return all
}

// Hosts commit in any order what they have decided at the same time. So an event may have a lower id than one that
// was already reported. The tail reports it, too.
func TestTailOfHosts(t *testing.T) {
	h := newWrittenTail(t)
	const far = 1000 * ipam.MaxHosts // an id of a host whose clock is ahead
	h.commit(far + 1)
	if got := h.hear(1); got[0] != far+1 {
		t.Fatalf("told was %d", got)
	}
	for _, ids := range [][]uint64{{2}, {3, ipam.MaxHosts + 3}, {far + ipam.MaxHosts + 1}, {ipam.MaxHosts + 2},
		{4*ipam.MaxHosts + 200}} {
		h.commit(ids...)
		if got := h.hear(len(ids)); !slices.Equal(got, ids) {
			t.Errorf("told was %d, want %d", got, ids)
		}
	}
}

// A receiver that is slower than the commits gets each event once, from the records.
func TestTailFallsBehind(t *testing.T) {
	h := newWrittenTail(t)
	draw := rand.New(rand.NewPCG(1, 2))
	const hosts, each, rounds = 5, 300, 12 // 18,000 events: more than a watch keeps
	var want []uint64
	next := make([]uint64, hosts)
	for n := range next {
		next[n] = uint64(n) + uint64(n*n)*10_000*ipam.MaxHosts // each host has its own clock
	}
	for range rounds {
		for _, host := range draw.Perm(hosts) {
			var ids []uint64
			for range each {
				next[host] += ipam.MaxHosts * uint64(1+draw.IntN(3))
				ids = append(ids, next[host])
			}
			h.commit(ids...)
			want = append(want, ids...)
		}
	}
	h.commit(ipam.MaxHosts - 1) // the last one has the lowest id of all
	want = append(want, ipam.MaxHosts-1)
	got := h.hear(len(want))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d events were told, want %d", len(got), len(want))
	}
	h.commit(ipam.MaxHosts + ipam.MaxHosts - 1)
	if got := h.hear(1); got[0] != ipam.MaxHosts+ipam.MaxHosts-1 {
		t.Errorf("then %d was told", got)
	}
}

// A record that cannot be read ends the tail.
func TestTailOfDamage(t *testing.T) {
	own := mem.New()
	s, err := service.Open(t.Context(),
		service.Config{Store: own, Host: "a", Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID()}})
	must(t, err)
	err = own.Join().Update(t.Context(), func(tx store.Tx) error { return tx.Put(ledger.EventKey(nil, 1), []byte{99}) })
	must(t, err)
	for _, err = range s.TailPages(t.Context(), ipam.EventMark{}) {
	}
	if !errors.Is(err, ipam.ErrDamaged) {
		t.Errorf("it ended with %v", err)
	}
}

// A tail yields each event once and in order, whatever comes while it reads, and continues until it is canceled.
func TestTail(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`network net1 subnet=10.0.0.0/16,pool`)
	after, err := r.S.LastEvent(ctx)
	must(t, err)
	const before, during = 300, 30
	take := func(n int) {
		t.Helper()
		r.Edit(&ipam.TakeAddress{Network: "net1", Owner: fmt.Sprintf("o%d", n)})
	}
	for n := range before {
		take(n)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, last := 0, uint64(0)
	for page, err := range r.S.TailPages(ctx, after) {
		must(t, err)
		for _, e := range page.Events {
			if want := fmt.Sprintf("o%d", seen); e.Name != want || e.ID <= last {
				t.Fatalf("the event is %+v, want that of %s", e, want)
			}
			last = e.ID
			if seen++; seen == before+during {
				cancel()
			} else if seen >= before {
				take(seen)
			}
		}
	}
	if seen != before+during {
		t.Errorf("%d events, want %d", seen, before+during)
	}
}

// An unreadable store is an error. The tail yields it last.
func TestTailFails(t *testing.T) {
	r := ipamtest.New(t)
	must(t, r.Store.Close())
	var errs []error
	for _, err := range r.S.TailPages(ctx, ipam.EventMark{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || errs[0] == nil {
		t.Errorf("yielded %v", errs)
	}
	if _, err := r.S.LastEvent(ctx); err == nil {
		t.Error("the last event of a closed store")
	}
}
