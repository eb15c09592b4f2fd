package cli

import (
	"context"
	"io"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Listing is a verb that lists what the daemon has of one kind, in the format that is asked for. A wrong format is told
// before the daemon is looked for.
type Listing[T any] struct {
	Verb
	// Check reads flags and arguments; its error is wrong usage. It may be nil.
	Check func(args []string) error
	// Columns are asked for when the flags are read.
	Columns func(Output) []Column[T]
	// Fetch asks for all rows.
	Fetch func(ctx context.Context, c *client.Client, args []string) ([]T, error)
}

// Command is the command; flags of its own are added to it.
func (l Listing[T]) Command(p *Program) *cobra.Command {
	var out Output
	cmd := l.Verb.Command(p)
	out.Flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if l.Check != nil {
			if err := l.Check(args); err != nil {
				return Usage(cmd, err)
			}
		}
		show, err := NewTable(p.Out, cmd, out, l.Columns(out))
		if err != nil {
			return err
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			all, err := l.Fetch(ctx, c, args)
			if err != nil {
				return err
			}
			return show.Rows(all)
		})
	}
	return cmd
}

// Showing is a verb that shows one thing: as text, or in the format that is asked for.
type Showing[T any] struct {
	Verb
	Fetch func(ctx context.Context, c *client.Client, args []string) (T, error)
	Text  func(io.Writer, *T) error // for a person
}

// Command is the command.
func (s Showing[T]) Command(p *Program) *cobra.Command {
	var format string
	cmd := s.Verb.Command(p)
	FormatFlag(cmd, &format, "one object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show, err := NewObject[T](p.Out, cmd, format)
		if err != nil {
			return err
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			one, err := s.Fetch(ctx, c, args)
			if err != nil {
				return err
			}
			return ShowObject(show, &one, func(w io.Writer) error { return s.Text(w, &one) })
		})
	}
	return cmd
}

// Ask finds the daemon and has fn ask it.
func (p *Program) Ask(cmd *cobra.Command, fn func(context.Context, *client.Client) error) error {
	c, err := p.Find(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(cmd.Context(), c)
}
