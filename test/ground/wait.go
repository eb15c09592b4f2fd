package ground

import (
	"errors"
	"fmt"
	"time"
)

// Patient is how long a thing is waited for that is over within d on a machine that does nothing else: this one, or the
// one below it, may have four times as much to do as it can. Only what fails takes so long.
func Patient(d time.Duration) time.Duration { return 8 * d }

type final struct{ error }

// Final marks an error that is not going to change.
func Final(err error) error { return final{err} }

// Eventually calls check until it answers nil, at short intervals. On an idle machine it does so within the given time;
// its last error is the answer when it was waited for patiently, and a final one at once.
func Eventually(within time.Duration, check func() error) error {
	deadline := time.Now().Add(Patient(within))
	for {
		err := check()
		if err == nil {
			return nil
		}
		if last := (final{}); errors.As(err, &last) {
			return last.error
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", Patient(within), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
