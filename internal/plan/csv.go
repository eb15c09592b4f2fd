package plan

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// Nouns are the nouns that have a table.
var Nouns = []string{"networks", "subnets", "pools", "exclusions", "reservations", "addresses"}

// Table says how to read a CSV table.
type Table struct {
	Noun    string // one of Nouns
	Network string // of rows without one; may be empty
	Space   string // of rows without one; empty: local
	Ignore  bool   // skip unknown columns instead of refusing them
}

// Notes list what was left out of a table, and what was changed.
type Notes struct {
	Ignored  []string // columns, as in the header
	Prefixes int      // rows of NetBox's prefixes with the status container
	Renamed  []Renamed
}

// column is a column of a table of rows of T. set gets cells that are not empty; get returns the text to write.
type column[T any] struct {
	names []string // the title, then other accepted titles
	raw   bool     // keep blanks around a text
	set   func(*T, string) error
	get   func(*T) string // nil: the column is read but not written
}

// sheet is a table of rows of T. Its columns are the keys of T, each with other accepted titles after a bar. "<" marks
// a column that is read but not written, "!" a key without a column, and "*" stands for all other keys.
type sheet[T any] struct {
	columns string
	sets    map[string]func(*T, string) error // for columns that are not read like their field
	needs   [][]string                        // at least one column of each
	row     func(line int) T
	name    func(*T)         // names a row's object if no column has Berth's name for it; may be nil
	check   func(*T) error   // checks a whole row; may be nil
	owner   func(*T) *string // the owner of a row if another tool named it, or nil; may be nil
	place   func(*T) *where  // nil: each row is a network of its own
	add     func(*ipam.PlannedNetwork, *T)
	of      func(*ipam.PlannedNetwork) []T
}

// where says to which network a row belongs.
type where struct {
	Network string `json:"network,omitempty"`
	Space   string `json:"space,omitempty"`
}

// parts returns the columns in order.
func (s *sheet[T]) parts() (all []column[T]) {
	t := reflect.TypeFor[T]()
	fields, specs := cellShapes().of(t), strings.Fields(s.columns)
	taken := func(f field) bool {
		return f.as == nil || slices.ContainsFunc(specs, func(spec string) bool {
			return slices.Contains(strings.Split(strings.TrimLeft(spec, "<!"), "|"), f.key)
		})
	}
	for _, spec := range specs {
		names, readOnly := strings.CutPrefix(spec, "<")
		for _, f := range fields {
			c := column[T]{names: strings.Split(names, "|"), raw: f.key == "tags" || strings.HasSuffix(f.key, "note")}
			switch {
			case spec == "*" && taken(f) || spec != "*" && !slices.Contains(c.names, f.key):
				continue
			case f.key == "note":
				c.names = []string{"note", "description"}
			case spec == "*":
				c.names = []string{f.key}
			}
			if c.set = s.sets[f.key]; c.set == nil {
				c.set = func(row *T, text string) error {
					v := reflect.ValueOf(row).Elem()
					err := f.as.set(v.FieldByIndex(f.index), text)
					f.clear(v)
					return err
				}
			}
			if !readOnly {
				c.get = func(row *T) string { return f.cell(reflect.ValueOf(row).Elem()) }
			}
			all = append(all, c)
		}
	}
	return all
}

// cell returns the cell of a row's field; empty if the field is zero.
func (f *field) cell(row reflect.Value) string {
	if v := row.FieldByIndex(f.index); !f.leftOut(row) && (f.with != nil || !v.IsZero()) {
		return f.as.text(v)
	}
	return ""
}

// table is a sheet of any rows.
type table interface {
	read([]byte, Table) (ipam.Plan, Notes, error)
	writer(io.Writer) Writer
}

var tables = map[string]table{"networks": networkSheet, "subnets": subnetSheet, "pools": poolSheet,
	"exclusions": exclusionSheet, "reservations": reservationSheet, "addresses": addressSheet}

func tableOf(noun string) (table, error) {
	if t := tables[noun]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: there is no table of %q; the tables are %s", ipam.ErrInvalid, noun,
		strings.Join(Nouns, ", "))
}

// ReadCSV reads the table of one noun. Errors in it are an *ipam.PlanError.
func ReadCSV(r io.Reader, t Table) (ipam.Plan, Notes, error) {
	text, err := readAll(r)
	if err != nil {
		return ipam.Plan{}, Notes{}, err
	}
	of, err := tableOf(t.Noun)
	if err != nil {
		return ipam.Plan{}, Notes{}, err
	}
	return of.read(text, t)
}

// reading is a table being read.
type reading[T any] struct {
	ipam.PlanError
	Table
	*sheet[T]
	columns []column[T]
	notes   Notes
	rows    *csv.Reader
	header  []string     // as written
	at      []*column[T] // by position; nil: skipped
	status  int          // the position of NetBox's status; negative: none
	plan    ipam.Plan
	byWhere map[where]int          // indexes of the plan's networks
	made    map[foreignName]string // the texts behind names
}

func (s *sheet[T]) read(text []byte, t Table) (ipam.Plan, Notes, error) {
	rd := &reading[T]{Table: t, sheet: s, columns: s.parts(), status: -1, byWhere: map[where]int{},
		made: map[foreignName]string{}}
	if line, why := notText(text); line > 0 {
		rd.Add(line, "%s", why)
		return ipam.Plan{}, Notes{}, rd.Err()
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // spreadsheets write a byte order mark
	rd.rows = csv.NewReader(bytes.NewReader(text))
	rd.rows.Comma = separator(text)
	rd.rows.FieldsPerRecord = -1 // the error for that is better below
	rd.rows.ReuseRecord = true
	if rd.head() {
		for rd.next() {
		}
	}
	return rd.plan, rd.notes, rd.Err()
}

// separator returns the character between cells. Spreadsheets use a semicolon if the comma is for decimals.
func separator(text []byte) rune {
	head, _, _ := bytes.Cut(text, []byte("\n"))
	best, most := ',', bytes.Count(head, []byte(","))
	for _, c := range []rune{';', '\t'} {
		if n := bytes.Count(head, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// record reads the next row. It returns nil at the end, and if the rest cannot be parsed.
func (rd *reading[T]) record() ([]string, int) {
	cells, err := rd.rows.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0
	case errors.As(err, &bad):
		rd.Add(bad.StartLine, "the row cannot be read: line %d, character %d: %v", bad.Line, bad.Column,
			bad.Err)
		return nil, 0
	case err != nil:
		rd.Add(0, "%v", err)
		return nil, 0
	}
	line, _ := rd.rows.FieldPos(0)
	return cells, line
}

// head reads the first row. It returns false if the others cannot be understood.
func (rd *reading[T]) head() bool {
	cells, line := rd.record()
	if cells == nil {
		if len(rd.Problems) == 0 {
			rd.Add(0, "the table is empty; its first row names the columns: %s", rd.names())
		}
		return false
	}
	rd.header = slices.Clone(cells)
	for i, title := range rd.header {
		name := columnName(title)
		c := rd.column(name)
		switch {
		case c == nil && rd.Noun == "subnets" && name == "status":
			rd.status = i
			fallthrough
		case c == nil && (rd.Ignore || name == "" || slices.Contains(netBoxOnly, name)):
			if name != "" {
				rd.notes.Ignored = append(rd.notes.Ignored, title)
			}
		case c == nil:
			rd.Add(line, "there is no column %q; the columns are %s (--ignore-unknown skips others)", title,
				rd.names())
		}
		rd.at = append(rd.at, c)
	}
	for _, one := range rd.needs {
		if !slices.ContainsFunc(rd.at, func(c *column[T]) bool { return c != nil && slices.Contains(one, c.names[0]) }) {
			rd.Add(line, "there is no column %s, which a table of %s needs", strings.Join(one, " or "), rd.Noun)
		}
	}
	return len(rd.Problems) == 0
}

// columnName returns the name behind a title: NetBox shows "Start address" for start_address.
func columnName(title string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(title)))
}

func (rd *reading[T]) column(name string) *column[T] {
	for i := range rd.columns {
		if c := &rd.columns[i]; slices.Contains(c.names, name) {
			return c
		}
	}
	return nil
}

func (rd *reading[T]) names() string {
	var all []string
	for _, c := range rd.columns {
		all = append(all, c.names[0])
	}
	return strings.Join(all, ", ")
}

// next reads a row. It returns false after the last one.
func (rd *reading[T]) next() bool {
	cells, line := rd.record()
	if cells == nil {
		return false
	}
	if !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }) {
		return true // spreadsheets leave such rows
	}
	if len(cells) != len(rd.at) {
		rd.Add(line, "the row has %d cells, but the header has %d", len(cells), len(rd.at))
		return true
	}
	if rd.status >= 0 && strings.EqualFold(strings.TrimSpace(cells[rd.status]), "container") {
		rd.notes.Prefixes++
		return true
	}
	row := rd.row(line)
	known := len(rd.Problems) + rd.More
	rd.cells(&row, cells, line)
	if known == len(rd.Problems)+rd.More && rd.name != nil && rd.foreign() {
		rd.name(&row)
	}
	if known == len(rd.Problems)+rd.More && rd.check != nil {
		if err := rd.check(&row); err != nil {
			rd.Add(line, "%v", err)
		}
	}
	if known == len(rd.Problems)+rd.More && rd.owner != nil {
		if owner := rd.owner(&row); owner != nil {
			rd.rename(owner, "owner", ipam.CheckOwner, line)
		}
	}
	if known == len(rd.Problems)+rd.More {
		rd.take(&row, line)
	}
	return true
}

// cells reads the cells of a row. Several columns may be for one thing, such as NetBox's device and virtual_machine, if
// each row has it once.
func (rd *reading[T]) cells(row *T, cells []string, line int) {
	from := map[*column[T]]int{}
	for i, c := range rd.at {
		if c == nil {
			continue
		}
		text := cells[i]
		if !c.raw {
			text = strings.TrimSpace(text)
		}
		if text = unguarded(text); text == "" {
			continue
		}
		if columnName(rd.header[i]) == "vrf" {
			text = rd.vrf(text, line)
		}
		if first, twice := from[c]; twice {
			if !rd.same(c, cells[first], cells[i]) {
				rd.Add(line, "%s is %q and %s is %q, but both columns mean the same; leave one of them "+
					"empty", rd.header[first],
					cells[first], rd.header[i], cells[i])
			}
			continue
		}
		from[c] = i
		if err := c.set(row, text); err != nil {
			rd.Add(line, "%s: %v", rd.header[i], err)
		}
	}
}

// same reports whether two cells of a column mean the same.
func (rd *reading[T]) same(c *column[T], one, other string) bool {
	a, b := rd.row(0), rd.row(0)
	return c.set(&a, strings.TrimSpace(one)) == nil && c.set(&b, strings.TrimSpace(other)) == nil &&
		reflect.DeepEqual(a, b)
}

// foreign reports whether the table is from another tool, because it has no column for owners.
func (rd *reading[T]) foreign() bool {
	return !slices.ContainsFunc(rd.at, func(c *column[T]) bool { return c != nil && c.names[0] == "owner" })
}

// take adds a row to its network.
func (rd *reading[T]) take(row *T, line int) {
	at := where{rd.Network, rd.Space}
	if rd.sheet.place != nil {
		own := rd.sheet.place(row)
		at = where{cmp.Or(own.Network, at.Network), cmp.Or(own.Space, at.Space)}
	}
	i, ok := rd.byWhere[at]
	if !ok || rd.sheet.place == nil {
		i = len(rd.plan.Networks)
		rd.byWhere[at] = i
		rd.plan.Networks = append(rd.plan.Networks, ipam.PlannedNetwork{Name: at.Network, Space: at.Space, Line: line})
	}
	rd.add(&rd.plan.Networks[i], row)
}

// A spreadsheet reads a cell that begins with one of these as a formula. Names and notes come from many people, so a
// mark before such a cell keeps it a text. A text that begins like a marked one gets one more mark. So reading removes
// exactly what writing added.
const (
	formula = "=+-@\t\r"
	mark    = "'"
)

func guarded(text string) string {
	if rest := strings.TrimLeft(text, mark); rest != "" && strings.ContainsRune(formula, rune(rest[0])) {
		return mark + text
	}
	return text
}

func unguarded(text string) string {
	if rest := strings.TrimLeft(text, mark); rest != "" && rest != text &&
		strings.ContainsRune(formula, rune(rest[0])) {
		return text[len(mark):]
	}
	return text
}
