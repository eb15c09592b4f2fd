package ipam

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth/store"
	"berth/store/mem"
)

// herald is a tail of a shared store whose events the test writes itself, as other hosts do: in the order in which they are
// committed, whatever their ids.
type herald struct {
	t     *testing.T
	other *mem.Store
	base  uint64 // a multiple of maxHosts behind all ids that there are
	pages chan []uint64
}

func newHerald(t *testing.T) *herald {
	t.Helper()
	own := mem.New()
	s, err := Open(t.Context(), Config{Store: own, Host: "a", Member: &Member{Host: NewID(), Session: NewID()}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := s.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &herald{t: t, other: own.Join(), base: (after.own/maxHosts + 1) * maxHosts, pages: make(chan []uint64)}
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
			case h.pages <- ids: // as slowly as the test wants
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
func (h *herald) commit(ids ...uint64) {
	h.t.Helper()
	err := h.other.Update(h.t.Context(), func(tx store.Tx) error {
		for _, id := range ids {
			if err := tx.Put(eventKey(nil, h.base+id), encodeEvent(nil, &Event{Verb: LeaseTaken, Host: "b"})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// hear takes so many events.
func (h *herald) hear(n int) (all []uint64) {
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

// Hosts commit what they have decided at the same time in any order, so that an event may come that has a lower id than one that
// was told. It is told, too.
func TestTailOfHosts(t *testing.T) {
	h := newHerald(t)
	const far = 1000 * maxHosts // of a host whose clock is ahead
	h.commit(far + 1)
	if got := h.hear(1); got[0] != far+1 {
		t.Fatalf("told was %d", got)
	}
	for _, ids := range [][]uint64{{2}, {3, maxHosts + 3}, {far + maxHosts + 1}, {maxHosts + 2}, {4*maxHosts + 200}} {
		h.commit(ids...)
		if got := h.hear(len(ids)); !slices.Equal(got, ids) {
			t.Errorf("told was %d, want %d", got, ids)
		}
	}
}

// A receiver that is too slow for what is committed gets it out of the records, each event once.
func TestTailFallsBehind(t *testing.T) {
	h := newHerald(t)
	draw := rand.New(rand.NewPCG(1, 2))
	const hosts, each, rounds = 5, 300, 12 // 18,000 events: more than a watch keeps
	var want []uint64
	next := make([]uint64, hosts)
	for n := range next {
		next[n] = uint64(n) + uint64(n*n)*10_000*maxHosts // each with a clock of its own
	}
	for range rounds {
		for _, host := range draw.Perm(hosts) {
			var ids []uint64
			for range each {
				next[host] += maxHosts * uint64(1+draw.IntN(3))
				ids = append(ids, next[host])
			}
			h.commit(ids...)
			want = append(want, ids...)
		}
	}
	h.commit(maxHosts - 1) // the last one has the lowest id of all
	want = append(want, maxHosts-1)
	got := h.hear(len(want))
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d events were told, want %d", len(got), len(want))
	}
	h.commit(maxHosts + maxHosts - 1)
	if got := h.hear(1); got[0] != maxHosts+maxHosts-1 {
		t.Errorf("then %d was told", got)
	}
}

// What is read again after falling behind is less than all of it, and nothing that may come yet is left out.
func TestTailReadsAgain(t *testing.T) {
	var s sharedTail
	begun := time.Now()
	for i, step := range []struct {
		after time.Duration
		id    uint64
		from  uint64
	}{
		{0, 100, 0},
		{lateCommit, 500, 0},
		{lateCommit + time.Second, 600, 100},
		{2 * lateCommit, 700, 100},
		{2*lateCommit + time.Second, 800, 500},
		{9 * lateCommit, 900, 800},
	} {
		s.caughtUpTo(begun.Add(step.after), step.id)
		if s.after != step.from {
			t.Errorf("step %d: it reads from %d, want %d", i, s.after, step.from)
		}
	}
	if s.fresh(800) || !s.fresh(900) || s.fresh(900) || !s.fresh(901) {
		t.Error("what was told is told again, or what was not is not")
	}
}

// A record that cannot be read ends the tail.
func TestTailOfDamage(t *testing.T) {
	own := mem.New()
	s, err := Open(t.Context(), Config{Store: own, Host: "a", Member: &Member{Host: NewID(), Session: NewID()}})
	if err != nil {
		t.Fatal(err)
	}
	err = own.Join().Update(t.Context(), func(tx store.Tx) error { return tx.Put(eventKey(nil, 1), []byte{99}) })
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range s.TailPages(t.Context(), EventMark{}) {
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("it ended with %v", err)
	}
}
