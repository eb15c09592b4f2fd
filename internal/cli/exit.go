package cli

import (
	"context"
	"errors"
)

// The exit codes of all verbs. A list or a search that finds nothing is done; one thing that is asked for by its name,
// and is not there, has failed. A check that could not look has failed, too.
const (
	exitDone        = 0
	exitFailed      = 1 // or refused
	exitDifference  = 2
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitInterrupted = 130 // as a shell reports SIGINT
)

// ExitCodes is the rule as the help states it.
const ExitCodes = `Exit codes: 0 done; 1 refused or failed, with the reason on standard error; 2 there is a
difference (plan diff, deploy plan, a check with findings); 64 wrong usage; 130 interrupted.`

// Difference ends a command that has done its work, and found what is not as it should be. It is printed unless it is
// empty.
type Difference string

// Error implements error.
func (d Difference) Error() string { return string(d) }

// ErrInterrupted is of a command that a signal ended while it waited for something.
var ErrInterrupted = errors.New("interrupted")

// exitCode is that of a command that ended with an error; understood: its command line was one.
func exitCode(err error, understood bool) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case IsUsage(err) || !understood:
		return exitUsage
	case errors.As(err, new(Difference)):
		return exitDifference
	}
	return exitFailed
}
