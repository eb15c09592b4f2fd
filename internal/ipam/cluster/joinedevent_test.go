package cluster_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"berth/internal/ipam"
)

// follower records what a Tail yields.
type follower struct {
	t    testing.TB
	mu   sync.Mutex
	seen []string // the names that took an address
	next ipam.EventMark
	stop func()
}

func follow(t testing.TB, m *joinedHost, after ipam.EventMark) *follower {
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
			for _, e := range page.Events {
				if e.Verb == ipam.LeaseTaken {
					f.seen = append(f.seen, e.Name)
				}
			}
			f.next = page.Next
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

// has waits for the events of owners, and checks that each was seen once.
func (f *follower) has(owners string) {
	f.t.Helper()
	got := func() []string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return slices.Sorted(slices.Values(f.seen))
	}
	want := strings.Fields(owners)
	comesTo(f.t, "the events of "+owners+" are told", func() bool { return len(got()) >= len(want) })
	if slices.Sort(want); !slices.Equal(got(), want) {
		f.t.Errorf("told were the events of %q, want %q", got(), want)
	}
}

// A tail reports the events of both stores, each once, even if a host's clock is ahead of or behind those of the
// others.
func TestJoinedTail(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := newJoinedHosts(t)
	p.away("b", func() time.Time { return time.Now().Add(time.Hour) }).reach()
	p.plays(`
		b: network lan space=global subnet=10.77.0.0/24,pool
		network own subnet=10.1.0.0/24,pool
		take own before pool
		b: take lan before pool
	`)
	a := p.host("a")
	after, err := a.LastEvent(t.Context())
	fine(t, err)
	f := follow(t, a, after)
	p.plays(`
		take own own1 pool
		take lan lan1 pool
		b: take lan lan2 pool
	`)
	f.has("own1 lan1 lan2")
	p.plays("take own own2 pool")
	f.has("own1 lan1 lan2 own2")
	f.stop()
	p.plays(`
		take own own3 pool
		b: take lan lan3 pool
	`)
	on := follow(t, a, f.next)
	p.plays("take lan lan4 pool")
	on.has("own3 lan3 lan4")
	on.stop()

	// From the beginning the tail reports everything.
	whole := follow(t, a, ipam.EventMark{})
	whole.has("before before own1 lan1 lan2 own2 own3 lan3 lan4")
	whole.stop()

	theirs, err := p.host("b").LastEvent(t.Context())
	fine(t, err)
	refusedBy(t, "a mark of another host", lastError(a.TailPages(t.Context(), theirs)), ipam.ErrInvalid, "another host")
	_, err = a.EventsBehind(t.Context(), theirs, 1, nil)
	refusedBy(t, "the same, for a list", err, ipam.ErrInvalid, "another host")

	// The reader can end the tail.
	for range a.TailPages(t.Context(), ipam.EventMark{}) {
		break
	}
	for _, m := range p.hosts {
		m.stop()
	}
	// A store that cannot be read ends the tail with its error.
	fine(t, a.own.Close())
	if err := lastError(a.TailPages(t.Context(), ipam.EventMark{})); err == nil {
		t.Error("the tail has ended without a word")
	}
}

// The cluster's events begin when its store is reached. Earlier events are not new.
func TestJoinedTailOfLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newJoinedHosts(t)
		p.plays(`
			b: network lan space=global subnet=10.77.0.0/24,pool
			b: take lan before pool
		`)
		a := p.away("a", time.Now)
		p.plays(`
			network own subnet=10.1.0.0/24,pool
			take own before pool
		`)
		after, err := a.LastEvent(t.Context())
		fine(t, err)
		f := follow(t, a, after)
		p.plays("take own own1 pool")
		f.has("own1")
		p.plays(`
			b: take lan meanwhile pool
			reach
			take lan lan1 pool
			b: take lan lan2 pool
		`)
		f.has("own1 lan1 lan2")
		f.stop()
		on := follow(t, a, f.next)
		p.plays("take lan lan3 pool")
		on.has("lan3")
	})
}

// A hook's variables come from the store that has the event, even after the release.
func TestJoinedEventEnvironment(t *testing.T) {
	p, a := furnished(t)
	for _, name := range []string{"own", "lab", "lan", "dmz"} {
		p.plays(strings.ReplaceAll(`
			take NET x-NET pool
			release NET x-NET
		`, "NET", name))
		events, err := a.Events(t.Context(), ipam.EventFilter{})
		fine(t, err)
		events = slices.DeleteFunc(events, func(e ipam.Event) bool { return e.Name != "x-"+name })
		if len(events) != 2 {
			t.Errorf("%s has %d events", name, len(events))
		}
		for _, e := range events {
			env, err := a.EventEnvironment(t.Context(), &e)
			fine(t, err)
			for _, has := range []string{"BERTH_NETWORK=" + name, "BERTH_KIND=external", "BERTH_HOST=a",
				"INSTANCE_NIC0_NETWORK_NAME=" + name} {
				if !slices.Contains(env, has) {
					t.Errorf("%s of %s does not say %s: %q", e.Verb, name, has, env)
				}
			}
		}
	}
	_, err := a.EventEnvironment(t.Context(), &ipam.Event{ID: 1, Verb: ipam.LeaseTaken, Space: "nowhere"})
	if err != nil {
		refusedBy(t, "a space that is nowhere", err, ipam.ErrNotFound)
	}
}
