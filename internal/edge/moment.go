package edge

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Moment is a time on this host's own clock, which begins with its start, goes on while it sleeps, and is set by
// nobody. All processes of the host read the same, so that one can tell another until when something holds.
type Moment int64

// Now is the moment of the call.
func Now() (Moment, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	if err != nil {
		return 0, fmt.Errorf("cannot read the host's clock: %w", err)
	}
	return Moment(t.Nano()), nil
}

// Add is the moment that is d later.
func (m Moment) Add(d time.Duration) Moment { return m + Moment(d) }

// Sub is how much later m is than n.
func (m Moment) Sub(n Moment) time.Duration { return time.Duration(m - n) }
