package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Listing is a verb that lists what the daemon has of one kind, in the format that is asked for. A wrong format is told
// before the daemon is looked for.
type Listing[T any] struct {
	Verb
	// Check reads flags and arguments; its error is wrong usage. It may be nil.
	Check func(args []string) error
	// Keys are those of --filter.
	Keys []Key[T]
	// Columns are asked for when the flags are read.
	Columns func(Output) []Column[T]
	// Fetch asks for all rows.
	Fetch func(ctx context.Context, c *client.Client, args []string) ([]T, error)
	// Names asks for what identifies the rows alone, where that is all that is shown and there may be very many of them;
	// nil, or answering nil: the rows tell.
	Names func(ctx context.Context, c *client.Client, args []string) iter.Seq2[string, error]
	// Bare tells whether the rows are shown as with --quiet unless a format is given. It may be nil.
	Bare func() bool
	// Said is set where Fetch says itself that it has found nothing.
	Said bool
}

// Command is the command; flags of its own are added to it.
func (l Listing[T]) Command(p *Program) *cobra.Command {
	var out Output
	cmd := l.Verb.Command(p)
	out.TableFlags(p, cmd)
	filter := NewFilter(p, cmd, l.Keys)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if l.Check != nil {
			if err := l.Check(args); err != nil {
				return Usage(cmd, err)
			}
		}
		if err := filter.Read(); err != nil {
			return Usage(cmd, err)
		}
		if l.Bare != nil && l.Bare() && !cmd.Flags().Changed("format") {
			out.Quiet = true
		}
		if _, err := NewTable(p.Out, cmd, out, l.Columns(out)); err != nil {
			return err
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			if err := filter.Ask(ctx, c); err != nil {
				return err
			}
			return out.Show(ctx, p, func(ctx context.Context, w io.Writer) error {
				if out.Quiet && l.Names != nil && !filter.Given() && out.sort == "" {
					if names := l.Names(ctx, c, args); names != nil {
						return writeNames(w, names)
					}
				}
				all, err := l.Fetch(ctx, c, args)
				if err != nil {
					return err
				}
				table, err := NewTable(w, cmd, out, l.Columns(out)) // anew: rows decide on its columns
				if err != nil {
					return err
				}
				all = filter.Rows(all)
				if len(all) == 0 && !l.Said && table.format == "table" && !out.watch {
					fmt.Fprintf(p.Err, "berth: no %s found\n", noun(cmd))
				}
				return table.Rows(all)
			})
		})
	}
	return cmd
}

// noun is what a list lists: the plural of its group.
func noun(cmd *cobra.Command) string {
	if group := cmd.Parent(); cmd.Name() == "ls" && len(group.Aliases) > 0 {
		return group.Aliases[0]
	}
	return "rows"
}

// writeNames writes a line for each, once all are there: a list that breaks off is not taken for a whole one.
func writeNames(w io.Writer, names iter.Seq2[string, error]) error {
	var text bytes.Buffer
	for name, err := range names {
		if err != nil {
			return err
		}
		text.WriteString(name)
		text.WriteByte('\n')
	}
	_, err := text.WriteTo(w)
	return err
}

// Showing is a verb that shows one thing: as text, or in the format that is asked for.
type Showing[T any] struct {
	Verb
	Fetch func(ctx context.Context, c *client.Client, args []string) (T, error)
	// Each is instead of Fetch, where arguments can mean several things of a kind: they are shown one after the other.
	Each func(ctx context.Context, c *client.Client, args []string) ([]T, error)
	Text func(io.Writer, *T) error // for a person
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
			all, err := s.fetch(ctx, c, args)
			if err != nil {
				return err
			}
			for i := range all {
				err = ShowObject(show, &all[i], func(w io.Writer) error {
					if i > 0 {
						_, _ = io.WriteString(w, "\n")
					}
					return s.Text(w, &all[i])
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

func (s Showing[T]) fetch(ctx context.Context, c *client.Client, args []string) ([]T, error) {
	if s.Each != nil {
		return s.Each(ctx, c, args)
	}
	one, err := s.Fetch(ctx, c, args)
	return []T{one}, err
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
