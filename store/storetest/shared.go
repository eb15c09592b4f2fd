package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"berth/store"
)

// RunShared runs the tests of the promises that a store.Shared makes to several handles on one state. fresh creates an
// empty state and returns a function that opens another handle on it; the suite closes the handles. A handle must be
// patient enough for hundreds of updates that all read the same keys. An update that returns anything but its
// function's error fails the test. No outcome may get lost. The backend's package checks for leaked goroutines after
// its tests (goleak.VerifyTestMain).
//
//	storetest.RunShared(t, func(t *testing.T) func() store.Shared {
//		first := mem.New()
//		return func() store.Shared { return first.Join() }
//	})
func RunShared(t *testing.T, fresh func(t *testing.T) (open func() store.Shared)) {
	tests := []struct {
		name string
		test func(*testing.T, *handles)
	}{
		{"Counters", testSharedCounters},
		{"Skews", testSharedSkews},
		{"Phantoms", testSharedPhantoms},
		{"PhantomsOfDeletions", testSharedDeletions},
		{"History", testSharedHistory},
		{"DecidedLate", testDecidedLate},
		{"Hooks", testSharedHooks},
		{"Follow", testFollow},
		{"FollowOnce", testFollowOnce},
		{"FollowQuiet", testFollowQuiet},
		{"FollowOwn", testFollowOwn},
		{"FollowBlind", testFollowBlind},
		{"FollowWholeAndInOrder", testFollowWhole},
		{"FollowJoinsUnderLoad", testFollowJoins},
		{"FollowUnderLoad", testFollowUnderLoad},
		{"Large", testLarge},
		{"LargeUnderLoad", testLargeUnderLoad},
		{"Watch", testSharedWatch},
		{"Present", testPresent},
		{"Sessions", testSessions},
		{"Reach", testReach},
		{"CloseOne", testCloseOne},
		{"Ends", testHandlesEnd},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			h := &handles{t: t, fresh: fresh(t)}
			t.Cleanup(h.close)
			c.test(t, h)
		})
	}
}

// handles opens the handles of one test.
type handles struct {
	t     *testing.T
	fresh func() store.Shared

	mu   sync.Mutex
	open []store.Shared
}

func (h *handles) one() store.Shared {
	s := h.fresh()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, s)
	return s
}

func (h *handles) three() []store.Shared { return []store.Shared{h.one(), h.one(), h.one()} }

func (h *handles) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.open {
		if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
			h.t.Errorf("Close: %v", err)
		}
	}
}

// callers is the number of concurrent callers per handle.
const callers = 3

// shifts returns the number of updates of each caller.
func shifts() int { return few(20) }

// concurrently runs fn in callers goroutines for each of the stores, shifts times each. n counts the runs of one
// goroutine.
func concurrently(all []store.Shared, fn func(handle, worker, n int)) {
	each(len(all), callers, shifts(), fn)
}

// each runs fn in some goroutines for each of so many stores, several rounds each.
func each(stores, callers, rounds int, fn func(handle, worker, n int)) {
	var wg sync.WaitGroup
	for i := range stores {
		for w := range callers {
			wg.Go(func() {
				for n := range rounds {
					fn(i, w, n)
				}
			})
		}
	}
	wg.Wait()
}

// try runs an update that must succeed. It may be called from any goroutine.
func try(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Errorf("Update: %v", err)
	}
}

// settle returns when s has all commits that were acknowledged before: an empty update sees a state no older than its
// call.
func settle(t *testing.T, s store.Store) {
	t.Helper()
	try(t, s, func(store.Tx) error { return nil })
}

// eventually waits for something that happens by itself.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}
