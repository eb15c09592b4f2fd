package lab

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// Patient is how long a thing is waited for that is over within d on a machine that does nothing else: this one, or the
// one below it, may have four times as much to do as it can. Only what fails takes so long.
func Patient(d time.Duration) time.Duration { return 8 * d }

type final struct{ error }

// Final marks an error that is not going to change.
func Final(err error) error { return final{err} }

// The shortest and the longest pause between two checks of Eventually. In between it is an eighth of the time waited so
// far: checks often are programs, and many tests that wait side by side would leave the machine no time for the work.
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

// Await waits as Eventually does, and ends the test with the error.
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
