package cli

import (
	"testing"
	"time"
)

func TestPeriod(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	from, to, err := Period("2026-01-30", "1h", now)
	if err != nil || from.Day() != 30 || !to.Equal(now.Add(-time.Hour)) {
		t.Errorf("%v to %v, %v", from, to, err)
	}
	for _, wrong := range [][2]string{{"1h", "2h"}, {"1h", "1h"}, {"soon", ""}, {"", "soon"}} {
		if _, _, err := Period(wrong[0], wrong[1], now); err == nil {
			t.Errorf("%q is a period", wrong)
		}
	}
	if from, to, err := Period("", "", now); err != nil || !from.IsZero() || !to.IsZero() {
		t.Errorf("nothing is %v to %v, %v", from, to, err)
	}
}
