// Package humantime parses the times that people write. The command line and the page accept the same forms. It does
// not read the clock, and does not depend on the command line.
package humantime

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Forms lists the accepted forms, for the help of a flag.
const Forms = `2h, 7d, 2026-11-17, "2026-11-17 10:00" or RFC 3339`

// errForm names all accepted forms.
var errForm = errors.New(`must be an age, such as 2h, 7d or 1d12h; a time in this machine's zone, such as ` +
	`2026-11-17 or "2026-11-17 10:00"; or a time with its zone, such as 2026-11-17T10:00:00Z (RFC 3339)`)

// maxDays is more than the age of any event, and fits a time.Duration.
const maxDays = 100_000

// Parse reads an age (in weeks, days, or as time.ParseDuration takes it) or a time (in the zone of now unless it has
// its own). first and last are equal, except for a day without a time, which they enclose.
func Parse(text string, now time.Time) (first, last time.Time, err error) {
	if d, ok := ago(text); ok {
		return now.Add(-d), now.Add(-d), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, day.AddDate(0, 0, 1).Add(-1), nil
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05",
		time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, t, nil
		}
	}
	return time.Time{}, time.Time{}, errForm
}

// ago parses an age: 2w, 7d, 1d12h, 2h30m.
func ago(text string) (time.Duration, bool) {
	unit, days := "d", uint64(1)
	if strings.Contains(text, "w") {
		unit, days = "w", 7
	}
	many, rest, is := strings.Cut(text, unit)
	if !is {
		d, err := time.ParseDuration(text)
		return d.Abs(), err == nil
	}
	n, err := strconv.ParseUint(many, 10, 64)
	if err != nil || n > maxDays/days {
		return 0, false
	}
	whole := time.Duration(n*days) * 24 * time.Hour
	if rest == "" {
		return whole, true
	}
	if unit == "w" {
		less, ok := ago(rest)
		return whole + less, ok && less < 7*24*time.Hour && rest[0] != '-'
	}
	d, err := time.ParseDuration(rest)
	return whole + d, err == nil && d >= 0 && d < 24*time.Hour
}
