package cli

import (
	"context"
	"errors"
)

// Exit codes of all commands. An empty list or search is success; a missing object that the command names is failure. A
// check that could not look has failed, too.
const (
	exitDone        = 0
	exitFailed      = 1 // or refused
	exitDifference  = 2
	exitUsage       = 64  // EX_USAGE of sysexits.h
	exitInterrupted = 130 // as a shell reports SIGINT
)

// exitCodes explains the exit codes in the help.
const exitCodes = `Exit codes: 0 done; 1 refused or failed, with the reason on standard error; 2 there is a
difference (plan diff, deploy plan, a check with findings); 64 wrong usage; 130 interrupted.`

// Difference ends a command that worked but found a difference. The text is printed unless it is empty.
type Difference string

// Error implements error.
func (d Difference) Error() string { return string(d) }

// ErrInterrupted means that a signal ended a command while it waited.
var ErrInterrupted = errors.New("interrupted")

// exitCode is the exit code for an error. understood reports whether the command line was valid.
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
