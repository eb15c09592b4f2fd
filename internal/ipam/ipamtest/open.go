package ipamtest

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"
	"berth/store/mem"
	"berth/store/storetest"
)

// Memories is how many remembered addresses the services of these tests keep in a subnet.
const Memories = 6

// Clock is a time that only the test moves.
type Clock struct{ Time time.Time }

// NewClock returns a clock that begins at the same moment in every run.
func NewClock() *Clock { return &Clock{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

// Now is the time that the test has set.
func (c *Clock) Now() time.Time { return c.Time }

// OpenStore opens the file at path, or a store in memory if path is empty.
func OpenStore(t rapid.TB, path string) store.Store {
	t.Helper()
	switch {
	case path == "":
		return mem.New()
	case *OverEtcd != "":
		return openEtcd(t, path)
	}
	st, err := bolt.Open(context.Background(), bolt.Config{Path: path, NoSync: true})
	fine(t, err)
	return st
}

// OpenService opens a service of the host h1 over a store.
func OpenService(t rapid.TB, st store.Store, now func() time.Time) *service.Service {
	t.Helper()
	s, err := service.Open(context.Background(),
		onShared(t, service.Config{Store: st, Host: "h1", Now: now, Memories: Memories}))
	fine(t, err)
	return s
}

// NewService returns a service over its own store.
func NewService(t testing.TB, now func() time.Time) *service.Service {
	t.Helper()
	st := OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	return OpenService(t, st, now)
}

// EachStore checks a property over its own file, and over a store in memory, which has no path (BO-4).
func EachStore(t *testing.T, name string, check func(t *rapid.T, path string)) {
	t.Run("bolt", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			dir, err := os.MkdirTemp("", name)
			fine(t, err)
			defer os.RemoveAll(dir)
			check(t, filepath.Join(dir, "berth.db"))
		})
	})
	t.Run("mem", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { check(t, "") })
	})
}

// Reopen closes the file of a store and opens it again. A store in memory just continues.
func Reopen(t rapid.TB, st store.Store, path string) store.Store {
	t.Helper()
	if path == "" {
		return st
	}
	fine(t, st.Close())
	return Rerunning(OpenStore(t, path))
}

// Rerunning returns a store that runs every third function twice, as one with optimistic transactions may.
func Rerunning(st store.Store) store.Store {
	faulty := storetest.NewFaulty(st)
	faulty.Each(EveryThirdTwice)
	return faulty
}

// EveryThirdTwice runs every third function twice.
func EveryThirdTwice(n int) storetest.Fault {
	if n%3 == 0 {
		return storetest.Fault{Reruns: 1}
	}
	return storetest.Fault{}
}

// Prefixes reads CIDRs.
func Prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Forgetful returns a stage whose store forgets, just after a start of its daemon.
func Forgetful(t *testing.T) *Stage {
	t.Helper()
	r := &Stage{T: t, Clock: NewClock(), Host: "h1", Pools: map[string]ipam.ID{}}
	st := mem.New()
	t.Cleanup(func() { st.Close() })
	s, err := service.Open(ctx, service.Config{Store: st, Host: r.Host, Now: r.Clock.Now, Forgets: true})
	fine(t, err)
	r.S = s
	return r
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
