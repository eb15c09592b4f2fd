package cluster_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"berth/internal/ipam"
)

// follower takes down what a Tail yields.
type follower struct {
	t    testing.TB
	mu   sync.Mutex
	seen []ipam.Event
	next ipam.EventMark
	stop func()
}

func follow(t testing.TB, m *manor, after ipam.EventMark) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &follower{t: t}
	ended := make(chan error, 1)
	go func() {
		for page, err := range m.TailPages(ctx, after) {
			if err != nil {
				ended <- err
				return
			}
			f.mu.Lock()
			f.seen, f.next = append(f.seen, page.Events...), page.Next
			f.mu.Unlock()
		}
		ended <- nil
	}()
	f.stop = sync.OnceFunc(func() {
		cancel()
		fine(t, <-ended)
	})
	t.Cleanup(f.stop)
	return f
}

// has waits for the events of owners, and tells all of those that were seen of each once.
func (f *follower) has(owners ...string) {
	f.t.Helper()
	got := func() (all []string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.seen {
			if e.Verb == ipam.LeaseTaken {
				all = append(all, e.Name)
			}
		}
		slices.Sort(all)
		return all
	}
	slices.Sort(owners)
	comesTo(f.t, "the events of "+strings.Join(owners, ", ")+" are told",
		func() bool { return len(got()) >= len(owners) })
	equal(f.t, "told were the events", got(), owners...)
}

// A tail tells what becomes of both stores, each once, also of a host whose clock goes before or behind those of
// others.
func TestJoinedTail(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := newParish(t)
	ahead := p.away("b", func() time.Time { return time.Now().Add(time.Hour) })
	ahead.reach()
	ahead.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	a := p.host("a")
	a.must(planned("own", "", "10.1.0.0/24"))
	a.must(&ipam.TakeAddress{Network: "own", Owner: "before"})
	ahead.must(&ipam.TakeAddress{Network: "lan", Owner: "before"})
	comesTo(t, "host a sees what b has taken",
		func() bool { return len(listed(t, a.Taken(t.Context(), ipam.AddressFilter{}))) == 2 })
	after, err := a.LastEvent(t.Context())
	fine(t, err)
	f := follow(t, a, after)
	a.must(&ipam.TakeAddress{Network: "own", Owner: "own1"})
	a.must(&ipam.TakeAddress{Network: "lan", Owner: "lan1"})
	ahead.must(&ipam.TakeAddress{Network: "lan", Owner: "lan2"})
	f.has("own1", "lan1", "lan2")
	a.must(&ipam.TakeAddress{Network: "own", Owner: "own2"})
	f.has("own1", "lan1", "lan2", "own2")
	f.stop()
	a.must(&ipam.TakeAddress{Network: "own", Owner: "own3"})
	ahead.must(&ipam.TakeAddress{Network: "lan", Owner: "lan3"})
	on := follow(t, a, f.next)
	a.must(&ipam.TakeAddress{Network: "lan", Owner: "lan4"})
	on.has("own3", "lan3", "lan4")
	on.stop()

	// From the beginning all is told.
	whole := follow(t, a, ipam.EventMark{})
	whole.has("before", "before", "own1", "lan1", "lan2", "own2", "own3", "lan3", "lan4")
	whole.stop()

	// Whoever has enough ends it.
	for range a.TailPages(t.Context(), ipam.EventMark{}) {
		break
	}
	for _, m := range []*manor{a, ahead} {
		m.stop()
	}
}

// The cluster's events begin when its store is reached; what was before that is not new.
func TestJoinedTailOfLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParish(t)
		b := p.host("b")
		b.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
		b.must(&ipam.TakeAddress{Network: "lan", Owner: "before"})
		a := p.away("a", time.Now)
		a.must(planned("own", "", "10.1.0.0/24"))
		a.must(&ipam.TakeAddress{Network: "own", Owner: "before"})
		after, err := a.LastEvent(t.Context())
		fine(t, err)
		f := follow(t, a, after)
		a.must(&ipam.TakeAddress{Network: "own", Owner: "own1"})
		f.has("own1")
		b.must(&ipam.TakeAddress{Network: "lan", Owner: "meanwhile"})
		a.reach()
		a.must(&ipam.TakeAddress{Network: "lan", Owner: "lan1"})
		b.must(&ipam.TakeAddress{Network: "lan", Owner: "lan2"})
		f.has("own1", "lan1", "lan2")
		f.stop()
		on := follow(t, a, f.next)
		a.must(&ipam.TakeAddress{Network: "lan", Owner: "lan3"})
		on.has("lan3")
	})
}

// A store that cannot be read ends the tail with its error.
func TestJoinedTailFails(t *testing.T) {
	a := newParish(t).host("a")
	fine(t, a.own.Close())
	if err := lastError(a.TailPages(t.Context(), ipam.EventMark{})); err == nil {
		t.Error("the tail has ended without a word")
	}
}

// A hook's variables are those of the store that has the event, also after the release.
func TestJoinedEventEnvironment(t *testing.T) {
	_, a := furnished(t)
	for _, name := range []string{"own", "lab", "lan", "dmz"} {
		a.must(&ipam.TakeAddress{Network: name, Owner: "x-" + name})
		a.must(&ipam.ReleaseAddress{Network: name, Owner: "x-" + name})
		events, err := a.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		told := 0
		for _, e := range events {
			if e.Name != "x-"+name {
				continue
			}
			told++
			env, err := a.EventEnvironment(t.Context(), &e)
			fine(t, err)
			for _, has := range []string{"BERTH_NETWORK=" + name, "BERTH_KIND=external", "BERTH_HOST=a",
				"INSTANCE_NIC0_NETWORK_NAME=" + name} {
				if !slices.Contains(env, has) {
					t.Errorf("%s of %s does not say %s: %q", e.Verb, name, has, env)
				}
			}
		}
		if told != 2 {
			t.Errorf("%s has %d events", name, told)
		}
	}
	if _, err := a.EventEnvironment(t.Context(),
		&ipam.Event{ID: 1, Verb: ipam.LeaseTaken, Space: "nowhere"}); err != nil && !errors.Is(err, ipam.ErrNotFound) {
		t.Error(err)
	}
}
