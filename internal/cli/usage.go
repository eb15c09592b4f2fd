package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"berth/internal/advice"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is wrong usage: exit code 2, or another one where the command has 2 for something else.
type usageError struct {
	error
	code int
}

// usageCode is the annotation of commands whose wrong usage has an exit code of its own.
const usageCode = "usage-code"

// UsageCode gives the wrong usage of a command, and of those below it, an exit code.
func UsageCode(cmd *cobra.Command, code int) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[usageCode] = strconv.Itoa(code)
}

// codeOfUsage is the exit code of a command's wrong usage.
func codeOfUsage(cmd *cobra.Command) int {
	for ; cmd != nil; cmd = cmd.Parent() {
		if code, err := strconv.Atoi(cmd.Annotations[usageCode]); err == nil {
			return code
		}
	}
	return 2
}

// Unwrap is for errors.Is.
func (e *usageError) Unwrap() error { return e.error }

// Usage marks err as wrong usage of cmd, and says where the right one is written. What is marked already stays as it
// is.
func Usage(cmd *cobra.Command, err error) error {
	if IsUsage(err) {
		return err
	}
	return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath()), codeOfUsage(cmd)}
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

// flagError is that flags cannot be read: what stands before them may be the trouble, or another way be meant.
func flagError(cmd *cobra.Command, err error) error {
	missing := (*pflag.NotExistError)(nil)
	if !errors.As(err, &missing) {
		return Usage(cmd, err)
	}
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return cmd.Args(cmd, words)
	}
	if what := cmd.Annotations[insteadOf+missing.GetSpecifiedName()]; what != "" {
		err = fmt.Errorf("%w; %s", err, what)
	}
	return Usage(cmd, err)
}

// IsUsage tells whether an error is wrong usage.
func IsUsage(err error) bool {
	var u *usageError
	return errors.As(err, &u)
}

// codedError ends a command with an exit code of its own; nothing is said of it.
type codedError int

func (c codedError) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// Code is the end of a command that has done what it was asked, and says what came of it by its exit code alone.
func Code(code int) error { return codedError(code) }

// OneLine keeps an error, with what helps against it, to a line, whatever a library or a file name put into it.
func OneLine(err error) string {
	lines := strings.FieldsFunc(advice.Text(err), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines, "; ")
}
