package mem

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"berth/store"
	"berth/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// BO-4: the store in memory keeps the promises that the one on the disk keeps.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return New() })
}

// The promises hold when functions are run again and when outcomes are unknown, as they do over any store.
func TestConformanceRunAgain(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store {
		f := storetest.NewFaulty(New())
		f.Each(func(n int) storetest.Fault { return storetest.Fault{Reruns: n % 3} })
		return f
	})
}

// They hold for each of several handles, and for one that lags behind the others.
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
