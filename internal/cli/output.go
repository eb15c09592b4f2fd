package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
)

// Output holds the flags of every list.
type Output struct {
	Format  string
	Quiet   bool
	NoTrunc bool

	sort      string
	noHeaders bool
	watch     bool
	program   *Program
}

// Flags are the flags of a table.
func (o *Output) Flags(p *Program) Flags {
	o.program, o.Format = p, "table"
	return Flags{
		Flag(&o.Format, "format", "`form` of the output: table, wide (all columns), json (one array; "+
			"events: an object per line), yaml (one sequence of the same objects), a Go template for each row, or "+
			"\"table TEMPLATE\"").Words("table", "wide", "json", "yaml"),
		Flag(&o.Quiet, "quiet", "print only the identifier of each row, for other commands").Short("q"),
		Flag(&o.NoTrunc, "no-trunc", "do not shorten ids and notes"),
		Flag(&o.sort, "sort", "sort by `COLUMN`, such as name or use (the fullest first); -COLUMN reverses the order"),
		Flag(&o.noHeaders, "no-headers", "print no header line"),
		Flag(&o.watch, "watch", "refresh every 3 seconds on a terminal; press q to quit").Short("w"),
	}
}

// Show calls fn to write the rows: once or, with --watch, repeatedly.
func (o *Output) Show(r *Run, fn func(*Run, io.Writer) error) error {
	if o.watch {
		return r.Watch(fn)
	}
	return fn(r, r.Out)
}

// Watched reports whether --watch is given.
func (o *Output) Watched() bool { return o.watch }

// Wide reports whether all columns are shown.
func (o *Output) Wide() bool { return o.Format == wide }

// IsTable reports whether the output is a table, whatever --quiet says.
func (o *Output) IsTable() bool { return o.Format == "table" || o.Wide() }

// SortUnless sorts the rows by a column, unless --sort names one.
func (o *Output) SortUnless(by string) {
	if o.sort == "" {
		o.sort = by
	}
}

// IsSorted reports whether the rows are sorted.
func (o *Output) IsSorted() bool { return o.sort != "" }

// Sorted reports whether the rows are sorted by a column.
func (o *Output) Sorted(by string) bool { return strings.TrimPrefix(o.sort, "-") == by }

const wide = "wide"

// Column is a column of a table.
type Column[T any] struct {
	title string
	value func(*T) string
	when  func([]T) bool // whether the table has it; nil: always
	alarm func(*T) Alarm // colour of a cell; nil: none
	large bool           // sorted with the largest first
	names bool           // its value identifies a row
	wide  bool           // only with --format wide
	also  bool           // always with --format wide, whatever when returns
	most  int            // characters shown without --format wide; 0: all
}

// Col returns a column. Columns that are always there must fit into 80 characters together, with names of 15.
func Col[T any](title string, value func(*T) string) Column[T] {
	return Column[T]{title: title, value: value}
}

// Wide returns the column for --format wide only.
func (c Column[T]) Wide() Column[T] {
	c.wide = true
	return c
}

// RefCol returns a hidden column that identifies a row for the noun's other commands (--quiet).
func RefCol[T any](value func(*T) string) Column[T] {
	return Column[T]{value: value, names: true, when: func([]T) bool { return false }}
}

// Names returns the column as the one that identifies a row (--quiet). Without any, the first column does.
func (c Column[T]) Names() Column[T] {
	c.names = true
	return c
}

// Stands returns the column with colours on a terminal, as alarm selects them.
func (c Column[T]) Stands(alarm func(*T) Alarm) Column[T] {
	c.alarm = alarm
	return c
}

// AtMost returns the column shortened to n characters without --format wide. It gets more if the other columns leave
// room.
func (c Column[T]) AtMost(n int) Column[T] {
	c.most = n
	return c
}

// When returns the column for lists for which when returns true.
func (c Column[T]) When(when func([]T) bool) Column[T] {
	c.when = when
	return c
}

// IfAny returns the column for lists in which a row has a value of it.
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

// OrWide returns the column like When, but always with --format wide.
func (c Column[T]) OrWide(when func([]T) bool) Column[T] {
	c.also = true
	return c.When(when)
}

// cell is the text of a cell.
func (c *Column[T]) cell(row *T, whole bool) string {
	text := []rune(Printable(c.value(row)))
	if most := c.most; most > 0 && !whole && len(text) > most {
		return strings.TrimRight(string(text[:most-len(cut)]), " ") + cut
	}
	return string(text)
}

// cut ends a shortened value.
const cut = "..."

// Table writes rows of T in the requested format.
type Table[T any] struct {
	W       io.Writer
	Line    func(*T) string // replaces columns, for output row by row
	Header  string          // the title of Line; empty: none
	columns []Column[T]
	format  string // table, json, yaml, quiet, or empty: a template
	row     *template.Template
	titled  bool // "table TEMPLATE": aligned, with titles
	wide    bool // with all columns
	whole   bool // without shortening
	bare    bool // without titles
	colour  bool
	sort    func(a, b *T) int // nil: unsorted
}

// NewTable parses the format. An invalid template is wrong usage.
func NewTable[T any](r *Run, o Output, columns []Column[T]) (*Table[T], error) {
	t := &Table[T]{W: r.Out, columns: columns, format: o.Format, wide: o.Wide(), whole: o.Wide() || o.NoTrunc,
		bare: o.noHeaders, colour: o.program != nil && o.program.colours()}
	if err := t.sortBy(o.sort); err != nil {
		return nil, Usage(r.Cmd, err)
	}
	if o.Quiet && r.Given("format") {
		return nil, r.Usagef("give either --format or --quiet, not both")
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
		if o.program == nil { // a table of one object
			words = "text, json, yaml"
		}
		return nil, r.Usagef("--format %s is neither one of %s nor a template such as '{{.%s}}'", o.Format, words,
			fieldNames[T]()[0])
	}
	row, err := parseTemplate(text)
	if err == nil {
		err = checkFields[T](row)
	}
	if err != nil {
		return nil, r.Usagef("--format is neither a known word nor a valid template: %w; the fields are %s",
			err, strings.Join(fieldNames[T](), ", "))
	}
	t.format, t.row = "", row
	return t, nil
}

// FormatFlag is --format for one object. what explains its JSON, if that needs an explanation.
func FormatFlag(format *string, what string) FlagRow {
	text := "`form` of the output: text, json, yaml or a Go template"
	if what != "" {
		text = "`form` of the output: text, json (" + what + "), yaml (the same), or a Go template"
	}
	*format = "text"
	return Flag(format, "format", text).Words("text", "json", "yaml")
}

// NewObject parses the format for one object. Its text form is the format "table" of lists.
func NewObject[T any](r *Run, format string) (*Table[T], error) {
	if format == "text" {
		format = "table"
	}
	return NewTable[T](r, Output{Format: format}, nil)
}

// Object writes one object, by default as text.
func (t *Table[T]) Object(item *T, text func(io.Writer) error) error {
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

// checkFields refuses a template with a field that T does not have. It ignores other errors, which an empty T may
// cause.
func checkFields[T any](row *template.Template) error {
	err := row.Execute(io.Discard, new(T))
	if err != nil && strings.Contains(err.Error(), "can't evaluate field") {
		return err
	}
	return nil
}

// parseTemplate parses a template of --format.
func parseTemplate(text string) (*template.Template, error) {
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text) // shells pass these escapes unchanged
	return template.New("--format").Funcs(template.FuncMap{
		"json": func(v any) (string, error) {
			b, err := json.Marshal(v)
			return string(b), err
		},
		"lower": strings.ToLower,
		"upper": strings.ToUpper,
		"join":  strings.Join,
	}).Parse(text)
}

// Rows writes all items.
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
			if failed := tabs.Flush(); err == nil { // most errors of writing appear only here
				err = failed
			}
		}()
		w = tabs
		if err := t.titles(w); err != nil {
			return err
		}
	}
	if len(items) > 0 {
		if err := t.WriteHeader(w); err != nil {
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

// WriteHeader writes the title of output row by row, if there is one.
func (t *Table[T]) WriteHeader(w io.Writer) (err error) {
	if t.format == "table" && t.Header != "" && !t.bare {
		_, err = fmt.Fprintln(w, t.Header)
	}
	return err
}

// gap is the number of spaces between columns.
const gap = 2

// array writes all items as one JSON array, one item per line.
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

// One writes one item.
func (t *Table[T]) One(w io.Writer, item *T) error {
	switch t.format {
	case "quiet":
		_, err := fmt.Fprintln(w, t.name(item))
		return err
	case "json":
		return json.NewEncoder(w).Encode(item)
	case "yaml": // each item is an element of a sequence
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

// name is the value that identifies an item.
func (t *Table[T]) name(item *T) string {
	for _, c := range t.columns {
		if c.names {
			return c.value(item)
		}
	}
	return t.columns[0].value(item)
}

// titles writes the header of a template's table: the template with field names for values. A template that does more
// than print fields gets no header.
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

// fieldNames lists the fields of T for templates.
func fieldNames[T any]() []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if f.IsExported() && !f.Anonymous {
			names = append(names, f.Name)
		}
	}
	return names
}
