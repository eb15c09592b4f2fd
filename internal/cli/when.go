package cli

import (
	"fmt"
	"time"

	"berth/internal/humantime"
)

// WhenText lists the forms of a time, for the help of a flag.
const WhenText = humantime.Forms

// WhenFlag parses a flag's time. Its error is wrong usage. A date alone means its first moment, and an empty value the
// zero time.
func WhenFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, _, err := humantime.Parse(text, now)
	if err != nil {
		return t, fmt.Errorf("--%s is %q and %w", flag, text, err)
	}
	return t, nil
}

// Period parses --since and --until. The second must be later.
func Period(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = WhenFlag("since", since, now); err != nil {
		return from, to, err
	}
	if to, err = WhenFlag("until", until, now); err != nil {
		return from, to, err
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from, to, fmt.Errorf("--until is %q and must be after --since %q", until, since)
	}
	return from, to, nil
}
