package cli

import (
	"context"
	"fmt"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Run is one run of a command: its context and arguments, the program with its output, and the daemon's client once Ask
// has found the daemon.
type Run struct {
	context.Context
	*Program
	*client.Client
	Cmd  *cobra.Command
	Args []string
}

// Ask finds the daemon. The client is closed when the command ends.
func (r *Run) Ask() (err error) {
	r.Client, err = r.Connect(r)
	return err
}

// With returns the run with another context. A run never changes its own, because that may derive from the run.
func (r *Run) With(ctx context.Context) *Run {
	with := *r
	with.Context = ctx
	return &with
}

// First is the argument of a verb with an optional one, or empty.
func (r *Run) First() string {
	if len(r.Args) == 0 {
		return ""
	}
	return r.Args[0]
}

// Given reports whether the command line has a flag.
func (r *Run) Given(flag string) bool { return r.Cmd.Flags().Changed(flag) }

// Usagef is wrong usage of the command.
func (r *Run) Usagef(format string, args ...any) error {
	return Usage(r.Cmd, fmt.Errorf(format, args...))
}
