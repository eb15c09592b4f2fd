package edge

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Moment is a time on the host's own clock. The clock begins with the host's start, runs during sleep, and cannot be
// set. All processes of the host read the same clock, so they can exchange Moments.
type Moment int64

// Now returns the current Moment.
func Now() (Moment, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	if err != nil {
		return 0, fmt.Errorf("cannot read the host's clock: %w", err)
	}
	return Moment(t.Nano()), nil
}

// Add returns the Moment d later.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Sub returns the time from n to m.
func (m Moment) Sub(n Moment) time.Duration { return time.Duration(m - n) }
