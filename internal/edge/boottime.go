package edge

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is a time on the host's own clock. The clock begins with the host's start, runs during sleep, and cannot be
// set. All processes of the host read the same clock, so they can exchange Moments.
type BootTime int64

// Now returns the current BootTime.
func Now() (BootTime, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	if err != nil {
		return 0, fmt.Errorf("cannot read the host's clock: %w", err)
	}
	return BootTime(t.Nano()), nil
}

// Add returns the BootTime d later.
func (m BootTime) Add(d time.Duration) BootTime { return m + BootTime(d) }

// Sub returns the time from n to m.
func (m BootTime) Sub(n BootTime) time.Duration { return time.Duration(m - n) }
