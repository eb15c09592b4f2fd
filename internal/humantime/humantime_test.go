package humantime

import (
	"strings"
	"testing"
	"time"
)

// TestParse: each form is read in its zone, and anything else is refused with the list of forms.
func TestParse(t *testing.T) {
	zone := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, zone)
	const day = 24 * time.Hour
	for in, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "-90m": now.Add(-90 * time.Minute), "0s": now,
		"7d": now.Add(-7 * day), "1d12h": now.Add(-36 * time.Hour), "0d": now, "2w": now.Add(-14 * day),
		"1w1d2h":                    now.Add(-8*day - 2*time.Hour),
		"2026-01-30T08:00:00Z":      time.Date(2026, 1, 30, 8, 0, 0, 0, time.UTC),
		"2026-01-30T08:00:00+05:00": time.Date(2026, 1, 30, 3, 0, 0, 0, time.UTC),
		"2026-01-30 10:00":          time.Date(2026, 1, 30, 10, 0, 0, 0, zone),
		"2026-01-30 10:00:07":       time.Date(2026, 1, 30, 10, 0, 7, 0, zone),
		"2026-01-30T10:00":          time.Date(2026, 1, 30, 10, 0, 0, 0, zone),
	} {
		if got, last, err := Parse(in, now); err != nil || !got.Equal(want) || !last.Equal(want) {
			t.Errorf("%q is %v to %v, %v; want %v", in, got, last, err, want)
		}
	}
	begins := time.Date(2026, 1, 30, 0, 0, 0, 0, zone)
	first, last, err := Parse("2026-01-30", now)
	if err != nil || !first.Equal(begins) || !last.Equal(begins.Add(day-1)) {
		t.Errorf("the day is %v to %v, %v", first, last, err)
	}
	for _, in := range []string{"", "yesterday", "2h30", "d", "w", "7 d", "-7d", "1d25h", "1d-2h", "1w-2h", "1w7d", "1d1w",
		"99999999999d", "99999999999w", "2026-02-30", "2026-1-2", "30.1.2026", "10:00", "2026-01-30 25:00"} {
		if got, _, err := Parse(in, now); err == nil {
			t.Errorf("%q is %v", in, got)
		} else if !strings.Contains(err.Error(), "7d") || !strings.Contains(err.Error(), "RFC 3339") {
			t.Errorf("%q is refused without the forms: %v", in, err)
		}
	}
}
