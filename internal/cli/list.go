package cli

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"

	"berth/internal/admin/client"

	"github.com/spf13/cobra"
)

// Listing is a command that lists the daemon's objects of one kind, in any format. A wrong format is reported before
// the daemon is searched for.
type Listing[T any] struct {
	Verb
	// Keys are the keys of --filter, as in the function Keys.
	Keys Fields
	// Columns are the columns, as in the function Columns.
	Columns Fields
	// ColumnsOf replaces Columns if they depend on flags.
	ColumnsOf func(Output) Fields
	// Fetch reads all rows.
	Fetch func(*Run) ([]T, error)
	// Names reads only the names of the rows, for --quiet on very long lists. If it is nil or returns nil, the names
	// come from the rows.
	Names func(*Run) iter.Seq2[string, error]
	// Bare reports whether the default is --quiet instead of a table. It may be nil.
	Bare func() bool
	// Once refuses --watch for what must not be done repeatedly; its error is wrong usage. It may be nil.
	Once func() error
	// Said is set if Fetch itself reports an empty list. There is no header then.
	Said bool
}

// Command returns the command.
func (l Listing[T]) Command(p *Program) *cobra.Command {
	var out Output
	filter := NewFilter(Keys[T](l.Keys...))
	l.Flags = slices.Concat(l.Flags, out.Flags(p), filter.Flags())
	columns := Columns[T](l.Columns...) // a wrong one shows at the start of the program
	l.Run = func(r *Run) error {
		err := filter.Read()
		if err == nil && out.watch && l.Once != nil {
			err = l.Once()
		}
		if err != nil {
			return Usage(r.Cmd, err)
		}
		if l.Bare != nil && l.Bare() && !r.Given("format") {
			out.Quiet = true
		}
		if l.ColumnsOf != nil {
			columns = Columns[T](l.ColumnsOf(out)...)
		}
		if _, err = NewTable(r, out, columns); err == nil {
			err = r.Ask()
		}
		if err == nil {
			err = filter.Ask(r)
		}
		if err != nil {
			return err
		}
		return out.Show(r, func(r *Run, w io.Writer) error {
			if out.Quiet && l.Names != nil && !filter.Given() && out.sort == "" {
				if names := l.Names(r); names != nil {
					return writeNames(w, names)
				}
			}
			all, err := l.Fetch(r)
			if err != nil {
				return err
			}
			table, err := NewTable(r, out, columns) // again, because the rows decide its columns
			if err != nil {
				return err
			}
			said := l.Said && len(all) == 0
			table.W, all = w, filter.Rows(all)
			if len(all) == 0 && table.format == "table" && !out.watch {
				if said {
					return nil
				}
				r.Warnf("no %s found", noun(r.Cmd))
			}
			return table.Rows(all)
		})
	}
	return l.Verb.Command(p)
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
	JSON  string // explains its JSON, if that needs an explanation
	Fetch func(*Run) (T, error)
	// Each replaces Fetch if the arguments may match several objects, which are shown one after another.
	Each func(*Run) ([]T, error)
	Text func(io.Writer, *T) error // writes the text form
	Then func(*Run, *T) error      // how the command ends after the object was shown; nil: as done
}

// Command returns the command.
func (s Showing[T]) Command(p *Program) *cobra.Command {
	var format string
	s.Flags = append(s.Flags, FormatFlag(&format, s.JSON))
	if s.Each == nil {
		s.Each = func(r *Run) ([]T, error) {
			one, err := s.Fetch(r)
			return []T{one}, err
		}
	}
	s.Run = func(r *Run) error {
		show, err := NewObject[T](r, format)
		if err == nil {
			err = r.Ask()
		}
		if err != nil {
			return err
		}
		all, err := s.Each(r)
		for i := range all {
			if err != nil {
				return err
			}
			err = show.Object(&all[i], func(w io.Writer) error {
				if i > 0 {
					_, _ = io.WriteString(w, "\n")
				}
				return s.Text(w, &all[i])
			})
		}
		if err == nil && s.Then != nil {
			err = s.Then(r, &all[0])
		}
		return err
	}
	return s.Verb.Command(p)
}

// All fetches all objects of a kind, whatever the arguments.
func All[T any](list func(*client.Client, context.Context) ([]T, error)) func(*Run) ([]T, error) {
	return func(r *Run) ([]T, error) { return list(r.Client, r) }
}
