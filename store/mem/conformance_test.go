package mem

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"berth/store"
	"berth/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BO-4: the store in memory keeps the same promises as the store on disk.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return New() })
}

// The promises hold when functions are run again and when outcomes are unknown, as on any store.
func TestConformanceRunAgain(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store {
		f := storetest.NewFaulty(New())
		f.Each(func(n int) storetest.Fault { return storetest.Fault{Reruns: n % 3} })
		return f
	})
}

// The promises hold for each of several handles, and for one that lags behind the others.
func TestConformanceOfHandles(t *testing.T) {
	for _, lags := range []bool{false, true} {
		t.Run(fmt.Sprintf("lags=%t", lags), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) store.Store {
				s := joined(t, 2)[1]
				s.Lag(lags)
				return s
			})
		})
	}
}

// GA-22: several handles on one state keep the promises of a store that several hosts share, even when some of
// them take in others' commits late, and run functions again.
func TestConformanceShared(t *testing.T) {
	for _, lags := range []bool{false, true} {
		t.Run(fmt.Sprintf("lags=%t", lags), func(t *testing.T) {
			storetest.RunShared(t, func(*testing.T) func() store.Shared {
				first, n := New(), 0
				return func() store.Shared {
					s := first.Join()
					s.Lag(lags && n%2 == 0)
					n++
					return s
				}
			})
		})
	}
}

// The handles keep these promises under faults, too.
func TestConformanceSharedRunAgain(t *testing.T) {
	storetest.RunShared(t, func(*testing.T) func() store.Shared {
		first := New()
		return func() store.Shared {
			f := storetest.NewFaultyShared(first.Join())
			f.Each(func(n int) storetest.Fault { return storetest.Fault{Reruns: n % 3} })
			return f
		}
	})
}
