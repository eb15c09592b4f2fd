package cli

import (
	"errors"
	"fmt"
	"strings"

	"berth/internal/advice"

	"github.com/spf13/cobra"
)

// usageError is wrong usage of a command.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage marks err as wrong usage of cmd, and adds where the help is. A marked error stays unchanged.
func Usage(cmd *cobra.Command, err error) error {
	if IsUsage(err) {
		return err
	}
	return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}

// insteadOf is the prefix of annotations with the replacement for a missing flag.
const insteadOf = "instead-of-"

// instead returns such annotations.
func instead(of map[string]string) map[string]string {
	notes := make(map[string]string, len(of))
	for flag, what := range of {
		notes[insteadOf+flag] = what
	}
	return notes
}

// IsUsage reports whether an error is wrong usage.
func IsUsage(err error) bool { return errors.As(err, new(usageError)) }

// OneLine returns an error and its advice as one line, whatever a library or a file name contains.
func OneLine(err error) string {
	lines := strings.FieldsFunc(advice.Text(err), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
