package lab

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patient is how long to wait for something that takes d on an idle machine: this machine, or the one below it,
// may have four times as much work as it can do. Only a failure takes this long.
func Patient(d time.Duration) time.Duration { return 8 * d }

type final struct{ error }

// Final marks an error that will not change.
func Final(err error) error { return final{err} }

// The shortest and the longest pause between two checks of Eventually. In between it is an eighth of the time
// waited so far: checks are often programs, and many parallel waits would leave no time for the work.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// Eventually calls check until it returns nil. On an idle machine that takes at most the given time. It returns the
// last error when the patient time is over, and a Final one at once.
func Eventually(within time.Duration, check func() error) error {
	begun := time.Now()
	deadline := begun.Add(Patient(within))
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
		time.Sleep(min(max(time.Since(begun)/8, shortestPause), longestPause))
	}
}

// Await waits like Eventually, and ends the test on an error.
func Await(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	Must(t, Eventually(within, check))
}

// Must ends the test if there is an error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Check fails the test if there is an error, and continues.
func Check(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
