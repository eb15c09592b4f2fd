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

// Listing is a command that lists the daemon's objects of one kind, in any format. A wrong format is reported before
// the daemon is searched for.
type Listing[T any] struct {
	Verb
	// Check checks flags and arguments; its error is wrong usage. It may be nil.
	Check func(args []string) error
	// Keys are the keys of --filter.
	Keys []Key[T]
	// Columns is called after the flags were parsed.
	Columns func(Output) []Column[T]
	// Fetch reads all rows.
	Fetch func(ctx context.Context, c *client.Client, args []string) ([]T, error)
	// Names reads only the names of the rows, for --quiet on very long lists. If it is nil or returns nil, the names
	// come from the rows.
	Names func(ctx context.Context, c *client.Client, args []string) iter.Seq2[string, error]
	// Bare reports whether the default is --quiet instead of a table. It may be nil.
	Bare func() bool
	// Said is set if Fetch itself reports an empty list.
	Said bool
}

// Command returns the command. The caller may add flags.
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
				table, err := NewTable(w, cmd, out, l.Columns(out)) // again, because the rows decide its columns
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

// noun is the plural of what a list lists, from its group.
func noun(cmd *cobra.Command) string {
	if group := cmd.Parent(); cmd.Name() == "ls" && len(group.Aliases) > 0 {
		return group.Aliases[0]
	}
	return "rows"
}

// writeNames writes one name per line, after all have arrived: a broken list must not look complete.
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

// Showing is a command that shows one object, as text or in another format.
type Showing[T any] struct {
	Verb
	Fetch func(ctx context.Context, c *client.Client, args []string) (T, error)
	// Each replaces Fetch if the arguments may match several objects, which are shown one after another.
	Each func(ctx context.Context, c *client.Client, args []string) ([]T, error)
	Text func(io.Writer, *T) error // writes the text form
}

// Command returns the command.
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

// Ask finds the daemon and calls fn with its client.
func (p *Program) Ask(cmd *cobra.Command, fn func(context.Context, *client.Client) error) error {
	c, err := p.Find(cmd.Context())
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(cmd.Context(), c)
}
