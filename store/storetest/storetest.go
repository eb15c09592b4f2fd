// Package storetest is the conformance suite for all backends of store.Store. A backend that passes Run keeps the
// promises of package store: atomic and serializable updates, reads, hooks, contexts, watches and Close. Faulty wraps a
// store and makes it fail like a disk or a cluster, for tests of code above the store.
//
// Run gives each test its own store. Some tests check sums, and some compare with the simple Model. Others search for a
// serial order of a concurrent history (porcupine). A backend joins with a test function:
//
//	storetest.Run(t, func(t *testing.T) store.Store { return mustOpen(t, t.TempDir()) })
//
// The backend's package checks for leaked goroutines after its tests (goleak.VerifyTestMain). With -short, the
// concurrent tests run a quarter of their rounds.
package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth/store"
)

// Run runs the suite. fresh returns an open, empty store; the suite closes it.
func Run(t *testing.T, fresh func(t *testing.T) store.Store) {
	tests := []struct {
		name string
		test func(*testing.T, store.Store)
	}{
		{"Values", testValues},
		{"ReadYourWrites", testReadYourWrites},
		{"Scan", testScan},
		{"ScanOverWrites", testScanOverWrites},
		{"ScanBesideWrites", testScanBesideWrites},
		{"Reuse", testReuse},
		{"ReadOnly", testReadOnly},
		{"Refusals", testRefusals},
		{"MaxWrites", testMaxWrites},
		{"MaxValue", testMaxValue},
		{"OverAfterReturn", testOver},
		{"Model", testModel},
		{"Failing", testFailing},
		{"Panicking", testPanicking},
		{"ViewPanicking", testViewPanicking},
		{"OnAbort", testOnAbort},
		{"Atomicity", testAtomicity},
		{"Counters", testCounters},
		{"Skews", testSkews},
		{"Phantoms", testPhantoms},
		{"UpdateInView", testUpdateInView},
		{"ViewIsOneState", testViewIsOneState},
		{"History", testHistory},
		{"Context", testContext},
		{"Watch", testWatch},
		{"WatchOrder", testWatchOrder},
		{"WatchEnds", testWatchEnds},
		{"WatchLag", testWatchLag},
		{"Close", testClose},
		{"CloseWaits", testCloseWaits},
		{"Ends", testEnds},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			s := fresh(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil && !errors.Is(err, store.ErrClosed) {
					t.Errorf("Close: %v", err)
				}
			})
			c.test(t, s)
		})
	}
}

func update(t testing.TB, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t testing.TB, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.View(context.Background(), fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// puts returns a function that puts the records "key=value".
func puts(records ...string) func(store.Tx) error {
	return func(tx store.Tx) error {
		for _, r := range records {
			key, value, _ := strings.Cut(r, "=")
			if err := tx.Put([]byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}
}

// list reads a range as "key=value", joined by spaces.
func list(tx store.Tx, r store.Range) (string, error) {
	var out []string
	for rec, err := range tx.Scan(r) {
		if err != nil {
			return "", err
		}
		out = append(out, string(rec.Key)+"="+string(rec.Value))
	}
	return strings.Join(out, " "), nil
}

func wantList(t testing.TB, tx store.Tx, r store.Range, want string) {
	t.Helper()
	got, err := list(tx, r)
	if err != nil {
		t.Fatalf("Scan(%q..%q): %v", r.From, r.To, err)
	}
	if got != want {
		t.Fatalf("Scan(%q..%q reverse=%t limit=%d)\n got %q\nwant %q", r.From, r.To, r.Reverse, r.Limit, got, want)
	}
}

func wantAll(t testing.TB, s store.Store, want string) {
	t.Helper()
	view(t, s, func(tx store.Tx) error { wantList(t, tx, store.Range{}, want); return nil })
}
