package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"

	"github.com/spf13/cobra"
)

// Output holds the flags of everything that lists.
type Output struct {
	Format  string
	Quiet   bool
	NoTrunc bool

	sort      string
	noHeaders bool
	watch     bool
	program   *Program
}

// Flags adds those of what goes on row by row.
func (o *Output) Flags(p *Program, cmd *cobra.Command) {
	o.program = p
	f := cmd.Flags()
	f.StringVar(&o.Format, "format", "table", "`form` of the output: table, wide (all columns), json (one array; "+
		"events: an object per line), yaml (one sequence of the same objects), a Go template for each row, or "+
		"\"table TEMPLATE\"")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "only the identifier of each row, for other commands")
	f.BoolVar(&o.NoTrunc, "no-trunc", false, "do not shorten ids and notes")
	Completes(cmd, "format", Words("table", "wide", "json", "yaml"))
}

// TableFlags adds those of a table.
func (o *Output) TableFlags(p *Program, cmd *cobra.Command) {
	o.Flags(p, cmd)
	cmd.Flags().StringVar(&o.sort, "sort", "", "sort by `COLUMN`, such as name; use: the fullest first; -COLUMN reverses")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "no header line")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "refresh every 3 seconds on a terminal; q ends it")
}

// Show has fn write the rows: once, or with --watch again and again.
func (o *Output) Show(ctx context.Context, p *Program, fn func(context.Context, io.Writer) error) error {
	if o.watch {
		return p.Watch(ctx, fn)
	}
	return fn(ctx, p.Out)
}

// Watched tells whether the rows are written again and again.
func (o *Output) Watched() bool { return o.watch }

// Wide tells whether all columns are shown.
func (o *Output) Wide() bool { return o.Format == wide }

// SortUnless sorts the rows by a column unless --sort names one.
func (o *Output) SortUnless(by string) {
	if o.sort == "" {
		o.sort = by
	}
}

// IsSorted tells whether --sort is given.
func (o *Output) IsSorted() bool { return o.sort != "" }

// Sorted tells whether the rows are sorted by a column.
func (o *Output) Sorted(by string) bool { return strings.TrimPrefix(o.sort, "-") == by }

const wide = "wide"

// Column is one column of the table that --format table shows.
type Column[T any] struct {
	title string
	value func(*T) string
	when  func([]T) bool // whether it is there; nil: always
	alarm func(*T) Alarm // how it stands out; nil: never
	large bool           // sorted by it, the largest comes first
	names bool           // what is in it identifies a row
	wide  bool           // it is there with --format wide only
	also  bool           // it is there with --format wide, whatever when says
	most  int            // so many characters of it are shown without --format wide; 0: all
}

// Col is a column. The columns that are always there fit into 80 characters together, where names have 15.
func Col[T any](title string, value func(*T) string) Column[T] {
	return Column[T]{title: title, value: value}
}

// WideCol is a column that is there with --format wide only.
func WideCol[T any](title string, value func(*T) string) Column[T] {
	return Col(title, value).Wide()
}

// Wide is the column as one that is there with --format wide only.
func (c Column[T]) Wide() Column[T] {
	c.wide = true
	return c
}

// RefCol is what identifies a row for the verbs of its noun (--quiet), where no column shows that.
func RefCol[T any](value func(*T) string) Column[T] {
	return Column[T]{value: value, names: true, when: func([]T) bool { return false }}
}

// Names is the column as that which identifies a row (--quiet); it is the first one where none is.
func (c Column[T]) Names() Column[T] {
	c.names = true
	return c
}

// Stands is the column as one whose cells stand out on a terminal where alarm says so.
func (c Column[T]) Stands(alarm func(*T) Alarm) Column[T] {
	c.alarm = alarm
	return c
}

// AtMost is the column as one of which only so many characters are shown without --format wide, or more where the others
// leave room for it.
func (c Column[T]) AtMost(n int) Column[T] {
	c.most = n
	return c
}

// When is the column as one that is only there for some lists.
func (c Column[T]) When(when func([]T) bool) Column[T] {
	c.when = when
	return c
}

// IfAny is the column as one that is only there where a row has something in it.
func (c Column[T]) IfAny() Column[T] {
	return c.When(func(rows []T) bool {
		for i := range rows {
			if c.value(&rows[i]) != "" {
				return true
			}
		}
		return false
	})
}

// OrWide is the column as one that is there for some lists, and always with --format wide.
func (c Column[T]) OrWide(when func([]T) bool) Column[T] {
	c.also = true
	return c.When(when)
}

// cell is what a table shows of a row.
func (c *Column[T]) cell(row *T, whole bool) string {
	text := []rune(Printable(c.value(row)))
	if most := c.most; most > 0 && !whole && len(text) > most {
		return strings.TrimRight(string(text[:most-len(cut)]), " ") + cut
	}
	return string(text)
}

// cut ends what is not shown whole.
const cut = "..."

// Table shows rows of T in the format that was asked for.
type Table[T any] struct {
	W       io.Writer
	Line    func(*T) string // instead of columns, for what comes row by row
	columns []Column[T]
	format  string // table, json, yaml, quiet, or empty: by rows
	row     *template.Template
	titled  bool // "table TEMPLATE": aligned, with titles
	wide    bool // with all columns
	whole   bool // nothing is shortened
	bare    bool // without titles
	colour  bool
	sort    func(a, b *T) int // nil: as they come
}

// NewTable reads the format; a template that cannot be read is wrong usage.
func NewTable[T any](w io.Writer, cmd *cobra.Command, o Output, columns []Column[T]) (*Table[T], error) {
	t := &Table[T]{W: w, columns: columns, format: o.Format, wide: o.Wide(), whole: o.Wide() || o.NoTrunc,
		bare: o.noHeaders, colour: o.program != nil && o.program.colours()}
	if err := t.sortBy(o.sort); err != nil {
		return nil, Usage(cmd, err)
	}
	if o.Quiet && cmd.Flags().Changed("format") {
		return nil, Usage(cmd, errors.New("--format and --quiet are two ways to show: give one of them"))
	}
	if o.Quiet {
		t.format = "quiet"
	}
	switch {
	case t.wide && o.program != nil:
		t.format = "table"
		return t, nil
	case slices.Contains([]string{"table", "json", "yaml", "quiet"}, t.format):
		return t, nil
	}
	text := o.Format
	if rest, ok := strings.CutPrefix(text, "table "); ok {
		text, t.titled = rest, true
	}
	if !strings.Contains(text, "{{") {
		words := "table, wide, json, yaml"
		if o.program == nil { // of one object
			words = "text, json, yaml"
		}
		return nil, Usage(cmd, fmt.Errorf("--format %s is none of %s, nor a template such as '{{.%s}}'", o.Format, words,
			fieldNames[T]()[0]))
	}
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text) // shells leave them as they are
	row, err := template.New("--format").Funcs(templateFuncs()).Parse(text)
	if err == nil {
		err = checkFields[T](row)
	}
	if err != nil {
		return nil, Usage(cmd, fmt.Errorf("--format is none of its words, and as a template it is wrong: %w; the "+
			"fields are %s",
			err, strings.Join(fieldNames[T](), ", ")))
	}
	t.format, t.row = "", row
	return t, nil
}

// FormatFlag adds --format to what shows one object; what says what its JSON is, where that is not plain.
func FormatFlag(cmd *cobra.Command, format *string, what string) {
	text := "`form` of the output: text, json, yaml or a Go template"
	if what != "" {
		text = "`form` of the output: text, json (" + what + "), yaml (the same), or a Go template"
	}
	cmd.Flags().StringVar(format, "format", "text", text)
	Completes(cmd, "format", Words("text", "json", "yaml"))
}

// NewObject reads the format of what is one object and not a list. What it calls text, a table would call table.
func NewObject[T any](w io.Writer, cmd *cobra.Command, format string) (*Table[T], error) {
	if format == "text" {
		format = "table"
	}
	return NewTable[T](w, cmd, Output{Format: format}, nil)
}

// ShowObject shows one object: as text where no other format was asked for.
func ShowObject[T any](t *Table[T], item *T, text func(io.Writer) error) error {
	switch {
	case t.format == "table":
		return text(t.W)
	case t.format == "yaml":
		return writeYAML(t.W, item)
	case t.titled:
		return t.Rows([]T{*item})
	}
	return t.One(t.W, item)
}

// checkFields refuses a template that names a field which a T does not have. What else goes wrong with an empty T is
// nobody's fault.
func checkFields[T any](row *template.Template) error {
	err := row.Execute(io.Discard, new(T))
	if err != nil && strings.Contains(err.Error(), "can't evaluate field") {
		return err
	}
	return nil
}

func templateFuncs() template.FuncMap {
	return template.FuncMap{
		"json": func(v any) (string, error) {
			b, err := json.Marshal(v)
			return string(b), err
		},
		"lower": strings.ToLower,
		"upper": strings.ToUpper,
		"join":  strings.Join,
	}
}

// Rows shows all items.
func (t *Table[T]) Rows(items []T) (err error) {
	if t.sort != nil {
		slices.SortStableFunc(items, func(a, b T) int { return t.sort(&a, &b) })
	}
	switch {
	case t.format == "json" && t.Line == nil:
		return t.array(items)
	case t.format == "yaml" && len(items) == 0:
		_, err := fmt.Fprintln(t.W, "[]")
		return err
	}
	w := t.W
	shown := slices.Clone(t.columns)
	if t.format == "table" {
		shown = slices.DeleteFunc(shown, func(c Column[T]) bool {
			return c.title == "" || c.wide && !t.wide || c.when != nil && !(c.also && t.wide) && !c.when(items)
		})
	}
	t.columns = shown
	if t.format == "table" && !t.whole {
		fill(shown, items)
	}
	if t.Line == nil && t.format == "table" {
		return t.table(items)
	}
	if t.titled {
		tabs := tabwriter.NewWriter(t.W, 0, 8, gap, ' ', 0)
		defer func() {
			if failed := tabs.Flush(); err == nil { // most is written only here
				err = failed
			}
		}()
		w = tabs
		if err := t.titles(w); err != nil {
			return err
		}
	}
	for i := range items {
		if err := t.One(w, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

// gap is how far columns are from one another.
const gap = 2

// array shows all items as one JSON array, each on a line of its own.
func (t *Table[T]) array(items []T) error {
	sep := "["
	for i := range items {
		text, err := json.Marshal(&items[i])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(t.W, "%s%s", sep, text); err != nil {
			return err
		}
		sep = ",\n "
	}
	if len(items) == 0 {
		fmt.Fprint(t.W, sep)
	}
	_, err := fmt.Fprintln(t.W, "]")
	return err
}

// One shows one item.
func (t *Table[T]) One(w io.Writer, item *T) error {
	switch t.format {
	case "quiet":
		_, err := fmt.Fprintln(w, t.name(item))
		return err
	case "json":
		return json.NewEncoder(w).Encode(item)
	case "yaml": // each is one of a sequence
		return writeYAML(w, []*T{item})
	case "table": // row by row
		_, err := fmt.Fprintln(w, t.Line(item))
		return err
	}
	if err := t.row.Execute(w, item); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// name is what identifies an item.
func (t *Table[T]) name(item *T) string {
	for _, c := range t.columns {
		if c.names {
			return c.value(item)
		}
	}
	return t.columns[0].value(item)
}

// titles writes the first line of a template's table: the template itself, over the names of the fields. One that does
// more with them than print them has no titles.
func (t *Table[T]) titles(w io.Writer) error {
	if t.bare {
		return nil
	}
	names := map[string]string{}
	for _, name := range fieldNames[T]() {
		names[name] = strings.ToUpper(name)
	}
	var line strings.Builder
	if err := t.row.Execute(&line, names); err != nil || strings.Contains(line.String(), "%!") {
		return nil
	}
	_, err := fmt.Fprintln(w, line.String())
	return err
}

// fieldNames lists what a template can show of a T.
func fieldNames[T any]() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.IsExported() && !f.Anonymous {
			names = append(names, f.Name)
		}
	}
	return names
}
