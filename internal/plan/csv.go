package plan

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// Nouns are what there is a table of.
var Nouns = []string{"networks", "subnets", "pools", "exclusions", "reservations", "addresses"}

// Table is how a CSV table is read.
type Table struct {
	Noun    string // one of Nouns
	Network string // of the rows that name none; may be empty
	Space   string // of the rows that name none; empty: local
	Ignore  bool   // leave out columns that are not known, instead of refusing them
}

// Notes tell what of a table was not taken.
type Notes struct {
	Ignored  []string // columns, as the header has them
	Prefixes int      // rows of NetBox's prefixes that only hold other prefixes (status: container)
}

// column is one column of a table of rows of T. Cells are read by set, which sees none that are empty, and written by
// get.
type column[T any] struct {
	name    string
	aliases []string
	raw     bool // blanks around a text belong to it
	set     func(*T, string) error
	get     func(*T) string // nil: a column that is read and not written
}

// sheet is a table of rows of T.
type sheet[T any] struct {
	columns []column[T]
	needs   [][]string // of each, one column at least
	row     func(line int) T
	name    func(*T)        // names what a row is about, where no column is Berth's own name of it; may be nil
	check   func(*T) error  // a row as a whole; may be nil
	place   func(*T) *where // nil: each row is a network of its own
	add     func(*ipam.PlannedNetwork, *T)
	of      func(*ipam.PlannedNetwork) []T
}

// where says to which network a row belongs.
type where struct{ network, space string }

// ReadCSV reads the table of one noun. What is wrong with it is an *ipam.PlanError.
func ReadCSV(r io.Reader, t Table) (ipam.Plan, Notes, error) {
	text, err := readAll(r)
	if err != nil {
		return ipam.Plan{}, Notes{}, err
	}
	switch t.Noun {
	case "networks":
		return read(text, t, networkSheet)
	case "subnets":
		return read(text, t, subnetSheet)
	case "pools":
		return read(text, t, poolSheet)
	case "exclusions":
		return read(text, t, exclusionSheet)
	case "reservations":
		return read(text, t, reservationSheet)
	case "addresses":
		return read(text, t, addressSheet)
	}
	return ipam.Plan{}, Notes{}, unknownNoun(t.Noun)
}

func unknownNoun(noun string) error {
	return fmt.Errorf("%w: there is no table of %q; there are %s", ipam.ErrInvalid, noun, strings.Join(Nouns, ", "))
}

// reading is a table that is being read.
type reading[T any] struct {
	ipam.PlanError
	Table
	sheet[T]
	notes   Notes
	rows    *csv.Reader
	header  []string     // as it is written
	at      []*column[T] // by position; nil: left out
	status  int          // the position of NetBox's status; negative: none
	plan    ipam.Plan
	byWhere map[where]int // the networks of the plan
}

func read[T any](text []byte, t Table, s sheet[T]) (ipam.Plan, Notes, error) {
	rd := &reading[T]{Table: t, sheet: s, status: -1, byWhere: map[where]int{}}
	if line, why := notText(text); line > 0 {
		rd.Add(line, "%s", why)
		return ipam.Plan{}, Notes{}, rd.Err()
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // spreadsheets begin with one
	rd.rows = csv.NewReader(bytes.NewReader(text))
	rd.rows.Comma = separator(text)
	rd.rows.FieldsPerRecord = -1 // said better below
	rd.rows.ReuseRecord = true
	if rd.head() {
		for rd.next() {
		}
	}
	return rd.plan, rd.notes, rd.Err()
}

// separator is what stands between the cells: spreadsheets take a semicolon where the comma is for decimals.
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

// record reads the next one, and answers nil at the end, and where the rest cannot be told apart.
func (rd *reading[T]) record() ([]string, int) {
	cells, err := rd.rows.Read()
	var bad *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return nil, 0
	case errors.As(err, &bad):
		rd.Add(bad.StartLine, "the row cannot be read from its line %d, character %d, on: %v", bad.Line, bad.Column,
			bad.Err)
		return nil, 0
	case err != nil:
		rd.Add(0, "%v", err)
		return nil, 0
	}
	line, _ := rd.rows.FieldPos(0)
	return cells, line
}

// head reads the first row. It answers false where the others cannot be understood.
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
		case c != nil && slices.Contains(rd.at, c):
			rd.Add(line, "the column %q is there twice, perhaps under another name", c.name)
		case c == nil && rd.Noun == "subnets" && name == "status":
			rd.status = i
			fallthrough
		case c == nil && (rd.Ignore || name == "" || slices.Contains(netBoxOnly, name)):
			if name != "" {
				rd.notes.Ignored = append(rd.notes.Ignored, title)
			}
		case c == nil:
			rd.Add(line, "there is no column %q; there are %s (other ones are left out with --ignore-unknown)", title,
				rd.names())
		}
		rd.at = append(rd.at, c)
	}
	for _, one := range rd.needs {
		if !slices.ContainsFunc(rd.at, func(c *column[T]) bool { return c != nil && slices.Contains(one, c.name) }) {
			rd.Add(line, "there is no column %s, which %s need", strings.Join(one, " or "), rd.Noun)
		}
	}
	return len(rd.Problems) == 0
}

// columnName is the name behind a title: NetBox shows "Start address" for start_address.
func columnName(title string) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(title)))
}

func (rd *reading[T]) column(name string) *column[T] {
	for i := range rd.columns {
		if c := &rd.columns[i]; c.name == name || slices.Contains(c.aliases, name) {
			return c
		}
	}
	return nil
}

func (rd *reading[T]) names() string {
	var all []string
	for _, c := range rd.columns {
		all = append(all, c.name)
	}
	return strings.Join(all, ", ")
}

// next reads a row. It answers false behind the last one.
func (rd *reading[T]) next() bool {
	cells, line := rd.record()
	if cells == nil {
		return false
	}
	if !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }) {
		return true // spreadsheets leave such behind
	}
	if len(cells) != len(rd.at) {
		rd.Add(line, "the row has %d cells, and the header has %d", len(cells), len(rd.at))
		return true
	}
	if rd.status >= 0 && strings.EqualFold(strings.TrimSpace(cells[rd.status]), "container") {
		rd.notes.Prefixes++
		return true
	}
	row := rd.row(line)
	known := len(rd.Problems) + rd.More
	for i, c := range rd.at {
		if c == nil {
			continue
		}
		text := cells[i]
		if !c.raw {
			text = strings.TrimSpace(text)
		}
		if text = unguarded(text); text != "" {
			if err := c.set(&row, text); err != nil {
				rd.Add(line, "%s: %v", rd.header[i], err)
			}
		}
	}
	if known == len(rd.Problems)+rd.More && rd.name != nil && rd.foreign() {
		rd.name(&row)
	}
	if known == len(rd.Problems)+rd.More && rd.check != nil {
		if err := rd.check(&row); err != nil {
			rd.Add(line, "%v", err)
		}
	}
	if known == len(rd.Problems)+rd.More {
		rd.take(&row, line)
	}
	return true
}

// foreign tells whether the table is another tool's: it has no column for owners.
func (rd *reading[T]) foreign() bool {
	return !slices.ContainsFunc(rd.at, func(c *column[T]) bool { return c != nil && c.name == "owner" })
}

// take puts a row into its network.
func (rd *reading[T]) take(row *T, line int) {
	at := where{rd.Network, rd.Space}
	if rd.sheet.place != nil {
		own := rd.sheet.place(row)
		at = where{cmp.Or(own.network, at.network), cmp.Or(own.space, at.space)}
	}
	i, ok := rd.byWhere[at]
	if !ok || rd.sheet.place == nil {
		i = len(rd.plan.Networks)
		rd.byWhere[at] = i
		rd.plan.Networks = append(rd.plan.Networks, ipam.PlannedNetwork{Name: at.network, Space: at.space, Line: line})
	}
	rd.add(&rd.plan.Networks[i], row)
}

// A spreadsheet takes a cell that begins with one of these for a formula, which could be anybody's: names and notes
// come from many. The mark before them keeps it a text. A text that looks as if it had been marked gets one more, so
// that reading takes away what writing put there and nothing else.
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
