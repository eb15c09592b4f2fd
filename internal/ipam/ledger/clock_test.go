package ledger_test

import (
	"testing"
	"time"

	"berth/internal/ipam/ledger"
	"berth/store/storetest"
)

// The index keeps wall-clock times only, as the records do. So after a jump of the clock both have the same age.
func TestNoMonotonicTime(t *testing.T) {
	for name, now := range map[string]func() time.Time{"the clock": nil, "another": time.Now} {
		l := ledger.New(ledger.Config{Store: storetest.NewModel(), Now: now})
		if got := l.Now(); got != got.Round(0) {
			t.Errorf("%s says %s", name, got)
		}
	}
}
