package page

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// table is a list, or the facts of one object. Each cell has one value. JSON and CSV have it in the vocabulary of the
// API, HTML as people write it.
type table struct {
	Name    string // in JSON and CSV
	Title   string
	None    string // the text if there are no rows
	Begin   string // a command to begin with, if there are no rows
	Columns []column
	Rows    []row
	Tall    bool   // the rows are few and long: HTML shows the cells of each below one another
	Folded  bool   // HTML shows it only on request, because a map shows the same
	One     bool   // there is one row, whose cells are shown below one another
	Next    string // a relative link to the next rows; empty: there are none

	// For a list that can be sorted and filtered (arrange):
	Sort, Filter string
	SortLink     func(column string) string
	Here         string // a link to the view
	Filtered     bool   // it has a filter field
}

// column describes the cells of a column.
type column struct {
	Name   string // in JSON and CSV
	Title  string
	Number bool // right-aligned
	Least  bool // omitted if there is little room; HTML always has it
}

// row has a cell for each column.
type row []cell

// cell is one value.
type cell struct {
	Value any    // in JSON; nil: nothing
	Text  string // for people
	Link  string // relative; empty: none
	Time  string // the time of Text in machine-readable form
	Exact string // the exact number of Text
	Bar   *bar
	Line  *line
	Sign  string // the sign of a state, next to its name
	Note  string // the meaning of Sign, if Text does not say it
	State string // the state, for its colour
}

// bar is a drawn percentage. The text next to it has the same value.
type bar struct {
	Level   string // ok, high or full, for its colour
	Percent int
}

// add appends a row.
func (t *table) add(cells ...cell) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("page: %d cells for the %d columns of %s", len(cells), len(t.Columns), t.Name))
	}
	t.Rows = append(t.Rows, cells)
}

// add appends a row to a table. Each value is a cell, a row of cells, or what a cell is made of.
func (p *Page) add(t *table, values ...any) { t.add(p.row(values...)...) }

// row returns the cells of a row. Its values are those of add.
func (p *Page) row(values ...any) row {
	cells := make(row, 0, len(values))
	for _, value := range values {
		switch v := value.(type) {
		case cell:
			cells = append(cells, v)
		case row:
			cells = append(cells, v...)
		default:
			cells = append(cells, p.of(value))
		}
	}
	return cells
}

// columns returns columns from pairs of name and title. A title that begins with - may be omitted if there is little
// room. One that begins with # is for numbers.
func columns(pairs ...string) (all []column) {
	for i := 0; i+1 < len(pairs); i += 2 {
		c := column{Name: pairs[i]}
		c.Title, c.Least = strings.CutPrefix(pairs[i+1], "-")
		c.Title, c.Number = strings.CutPrefix(c.Title, "#")
		all = append(all, c)
	}
	return all
}

// count returns the cell of a number of addresses.
func count(n ipam.Count) cell { return free(n, n.Text()) }

// free returns the cell of a number of free addresses, with its text.
func free(n ipam.Count, text string) cell {
	c := cell{Value: n, Text: text}
	if n.Int != nil && c.Text != n.String() {
		c.Exact = n.String()
	}
	return c
}

// of returns the cell of a value. It is empty for a zero text, time, list, address, prefix, MAC or id.
func (p *Page) of(value any) cell {
	switch v := value.(type) {
	case nil:
		return cell{}
	case time.Time:
		if v.IsZero() {
			return cell{}
		}
		return cell{Value: v.UTC(), Text: v.In(p.cfg.Zone).Format("2006-01-02 15:04:05 MST"),
			Time: v.UTC().Format(time.RFC3339Nano)}
	case bool:
		text := "no"
		if v {
			text = "yes"
		}
		return cell{Value: v, Text: text}
	case []string:
		if len(v) == 0 {
			return cell{}
		}
		return cell{Value: v, Text: strings.Join(v, ", ")}
	case map[string]string:
		if len(v) == 0 {
			return cell{}
		}
		return cell{Value: v, Text: strings.Join(pairs(v), ", ")}
	case ipam.Duration:
		if v == 0 {
			return cell{}
		}
		return cell{Value: v, Text: v.String()}
	case ipam.ID:
		if v == (ipam.ID{}) {
			return cell{}
		}
		return cell{Value: v, Text: v.String()}
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if err != nil || len(text) == 0 {
			return cell{}
		}
		return cell{Value: v, Text: string(text)}
	case string:
		if v == "" {
			return cell{}
		}
		return cell{Value: v, Text: v}
	}
	return cell{Value: value, Text: fmt.Sprint(value)}
}

// empty reports whether a cell shows nothing.
func (c cell) empty() bool { return c.Text == "" && c.Bar == nil && c.Line == nil && c.Sign == "" }

// to returns a cell with a link.
func (c cell) to(link string) cell {
	if c.Value != nil {
		c.Link = link
	}
	return c
}

// pairs returns tags as people write them, in order.
func pairs(tags map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return all
}

// plain returns the value of a cell for CSV. Times and numbers are as in JSON.
func (c cell) plain() (string, error) {
	switch v := c.Value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []string:
		return strings.Join(v, " "), nil
	case map[string]string:
		return strings.Join(pairs(v), " "), nil
	}
	text, err := json.Marshal(c.Value)
	return strings.Trim(string(text), `"`), err
}
