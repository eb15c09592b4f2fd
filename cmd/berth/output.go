package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"
	"unicode"

	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// output holds the flags of everything that lists.
type output struct {
	format  string
	quiet   bool
	noTrunc bool
}

func (o *output) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "table", "`form` of the output: table, json (one array; events: an object per line), a Go template for each row, or \"table TEMPLATE\"")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "only what identifies a row")
	f.BoolVar(&o.noTrunc, "no-trunc", false, "do not shorten ids")
	completes(cmd, "format", words("table", "json"))
}

// column is one column of the table that --format table shows.
type column[T any] struct {
	title string
	value func(*T) string
}

// table shows rows of T in the format that was asked for.
type table[T any] struct {
	w       io.Writer
	columns []column[T]
	line    func(*T) string // instead of columns, for what comes row by row
	id      func(*T) string
	format  string // table, json, quiet, or empty: by rows
	row     *template.Template
	titled  bool // "table TEMPLATE": aligned, with titles
}

// newTable reads the format; a template that cannot be read is wrong usage.
func newTable[T any](w io.Writer, cmd *cobra.Command, o output, columns []column[T], id func(*T) string) (*table[T], error) {
	t := &table[T]{w: w, columns: columns, id: id, format: o.format}
	if o.quiet && cmd.Flags().Changed("format") {
		return nil, usage(cmd, errors.New("--format and --quiet are two ways to show: give one of them"))
	}
	if o.quiet {
		t.format = "quiet"
	}
	switch t.format {
	case "table", "json", "quiet":
		return t, nil
	}
	text := o.format
	if rest, ok := strings.CutPrefix(text, "table "); ok {
		text, t.titled = rest, true
	}
	text = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(text) // shells leave them as they are
	row, err := template.New("--format").Funcs(templateFuncs()).Parse(text)
	if err == nil {
		err = checkFields[T](row)
	}
	if err != nil {
		return nil, usage(cmd, fmt.Errorf("--format is none of its words, and as a template it is wrong: %w; the fields are %s",
			err, strings.Join(fieldNames[T](), ", ")))
	}
	t.format, t.row = "", row
	return t, nil
}

// newObject reads the format of what is one object and not a list. What it calls text, a table would call table.
func newObject[T any](w io.Writer, cmd *cobra.Command, format string) (*table[T], error) {
	if format == "text" {
		format = "table"
	}
	return newTable[T](w, cmd, output{format: format}, nil, nil)
}

// showObject shows one object: as text where no other format was asked for.
func showObject[T any](t *table[T], item *T, text func(io.Writer) error) error {
	switch {
	case t.format == "table":
		return text(t.w)
	case t.titled:
		return t.rows([]T{*item})
	}
	return t.one(t.w, item)
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

// rows shows all items.
func (t *table[T]) rows(items []T) (err error) {
	if t.format == "json" && t.line == nil {
		return t.array(items)
	}
	w := t.w
	if t.line == nil && t.format == "table" || t.titled {
		tabs := tabwriter.NewWriter(t.w, 0, 8, 3, ' ', 0)
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
		if err := t.one(w, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

// array shows all items as one JSON array, each on a line of its own.
func (t *table[T]) array(items []T) error {
	sep := "["
	for i := range items {
		text, err := json.Marshal(&items[i])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(t.w, "%s%s", sep, text); err != nil {
			return err
		}
		sep = ",\n "
	}
	if len(items) == 0 {
		fmt.Fprint(t.w, sep)
	}
	_, err := fmt.Fprintln(t.w, "]")
	return err
}

// one shows one item.
func (t *table[T]) one(w io.Writer, item *T) error {
	switch t.format {
	case "quiet":
		_, err := fmt.Fprintln(w, t.id(item))
		return err
	case "json":
		return json.NewEncoder(w).Encode(item)
	case "table":
		if t.line != nil {
			_, err := fmt.Fprintln(w, t.line(item))
			return err
		}
		cells := make([]string, len(t.columns))
		for i, c := range t.columns {
			cells[i] = printable(c.value(item))
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
		return err
	}
	if err := t.row.Execute(w, item); err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// titles writes the first line of a table. That of a template is the template itself, over the names of the fields; one
// that does more with them than print them has no titles.
func (t *table[T]) titles(w io.Writer) error {
	if !t.titled {
		var all []string
		for _, c := range t.columns {
			all = append(all, c.title)
		}
		_, err := fmt.Fprintln(w, strings.Join(all, "\t"))
		return err
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

// printable keeps a cell to its line and its column: names come from whoever may create containers.
func printable(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func shortID(id ipam.ID, whole bool) string {
	switch {
	case id == ipam.ID{}:
		return ""
	case whole:
		return id.String()
	}
	return id.Short()
}

// localTime is a time for a person; JSON has the exact one.
func localTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// since reads a time, or how long ago it was.
func since(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d.Abs()), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, errors.New("must be a duration such as 2h, or a time such as 2026-01-31T08:00:00Z (RFC 3339)")
}
