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

// table is a list, or what there is to say of one thing. Each of its cells has one value, which JSON and CSV tell in
// the API's vocabulary, and HTML the way people write it.
type table struct {
	Name    string // in JSON and CSV
	Title   string
	None    string // what is said where there are no rows
	Begin   string // a command with which one begins, where there are none
	Columns []column
	Rows    []row
	Tall    bool   // its rows are few and long: HTML shows the cells of each below one another
	Folded  bool   // HTML shows it only where it is asked for: a map says the same
	One     bool   // there is one row, whose cells are shown below one another
	Next    string // a relative link to the rows behind these; empty: there are none

	// Of a list that can be sorted and filtered (arrange):
	Sort, Filter string
	SortLink     func(column string) string
	Here         string // a link to the view
	Filtered     bool   // it has a field for the filter
}

// column is what the cells of a place have in common.
type column struct {
	Name   string // in JSON and CSV
	Title  string
	Number bool // it stands to the right
	Least  bool // it is left out where there is little room; HTML has it in any case
}

// row has a cell for each column.
type row []cell

// cell is one value.
type cell struct {
	Value any    // as JSON has it; nil: nothing
	Text  string // as people read it
	Link  string // relative; empty: it leads nowhere
	Time  string // the moment that Text is, as browsers read it
	Exact string // the number that Text is about
	Bar   *bar
	Line  *line
	Sign  string // what a state is drawn with, beside its name
	Note  string // what the Sign stands for, where the Text does not say so
	State string // of which this is, for its colour
}

// bar is how much of something is used, drawn; the text beside it says the same.
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

// columns are made of pairs of a name and a title. One that begins with - may be left out where there is little room,
// one with # has numbers.
func columns(pairs ...string) (all []column) {
	for i := 0; i+1 < len(pairs); i += 2 {
		c := column{Name: pairs[i]}
		c.Title, c.Least = strings.CutPrefix(pairs[i+1], "-")
		c.Title, c.Number = strings.CutPrefix(c.Title, "#")
		all = append(all, c)
	}
	return all
}

// count is the cell of a number of addresses.
func count(n ipam.Count) cell { return free(n, n.Text()) }

// free is the cell of a number of free addresses, which is written as text.
func free(n ipam.Count, text string) cell {
	c := cell{Value: n, Text: text}
	if n.Int != nil && c.Text != n.String() {
		c.Exact = n.String()
	}
	return c
}

// of is the cell of a value. Zero texts, times, lists, addresses, prefixes, MACs and ids are nothing.
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

// empty tells whether nothing is shown in a cell.
func (c cell) empty() bool { return c.Text == "" && c.Bar == nil && c.Line == nil && c.Sign == "" }

// to is a cell that leads somewhere.
func (c cell) to(link string) cell {
	if c.Value != nil {
		c.Link = link
	}
	return c
}

// pairs are tags as people write them, in order.
func pairs(tags map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, key+"="+tags[key])
	}
	return all
}

// plain is the value of a cell as CSV has it: times and numbers as in JSON.
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
