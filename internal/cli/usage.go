package cli

import (
	"errors"
	"fmt"
	"strings"

	"berth/internal/advice"

	"github.com/spf13/cobra"
)

// usageError is wrong usage.
type usageError struct{ error }

// Unwrap is for errors.Is.
func (e usageError) Unwrap() error { return e.error }

// Usage marks err as wrong usage of cmd, and says where the right one is written. What is marked already stays as it
// is.
func Usage(cmd *cobra.Command, err error) error {
	if IsUsage(err) {
		return err
	}
	return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// insteadOf begins the annotations that say what to write instead of a flag that a command does not have.
const insteadOf = "instead-of-"

// instead is such annotations.
func instead(of map[string]string) map[string]string {
	notes := make(map[string]string, len(of))
	for flag, what := range of {
		notes[insteadOf+flag] = what
	}
	return notes
}

// IsUsage tells whether an error is wrong usage.
func IsUsage(err error) bool { return errors.As(err, new(usageError)) }

// OneLine keeps an error, with what helps against it, to a line, whatever a library or a file name put into it.
func OneLine(err error) string {
	lines := strings.FieldsFunc(advice.Text(err), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
