package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"berth/store"
)

// RunShared runs the suite of those promises that a store.Shared makes to several handles on one state. fresh makes an
// empty state, and returns what opens another handle on it; the suite closes the handles. A handle must have patience
// enough for hundreds of updates that all read the same (an update that is answered with anything but its function's
// error fails the test), and outcomes must not get lost. The package of the
// backend looks for goroutines that are left when all its tests are over (goleak.VerifyTestMain).
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

// crew is how many callers each handle has.
const crew = 3

// shifts is how many updates each of them makes.
func shifts() int { return few(20) }

// crewOf runs fn in crew goroutines for each of the stores, shifts times each. n counts the runs of one goroutine.
func crewOf(all []store.Shared, fn func(handle, worker, n int)) {
	var wg sync.WaitGroup
	for i := range all {
		for w := range crew {
			wg.Go(func() {
				for n := range shifts() {
					fn(i, w, n)
				}
			})
		}
	}
	wg.Wait()
}

// try runs an update that must succeed. It is for goroutines that are not the test's.
func try(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Errorf("Update: %v", err)
	}
}

// settle returns when s has heard of everything that was answered before: an update that writes nothing is decided on a
// state no older than its call.
func settle(t *testing.T, s store.Store) {
	t.Helper()
	try(t, s, func(store.Tx) error { return nil })
}

// eventually waits for something that comes by itself.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
	}
}
