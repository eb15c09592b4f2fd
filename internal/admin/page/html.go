package page

import (
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"berth/internal/aside"
	"berth/internal/ipam"
	"berth/internal/shorten"
)

// laidOut is what the layout is filled with.
type laidOut struct {
	*shown
	Root    string // leads to the root of the page
	Version string
	Host    string
	Menu    []entry
	Query   string // what is looked for
	JSON    string // links to the same view in other forms
	CSV     string
	Now     string // when this was drawn, as all times are written
	Live    string // a link by which one is told that the view is old; empty: it stays as it is
}

// entry is one of the menu.
type entry struct {
	Path, Title string
	Here        bool
}

func (p *Page) menu(here string) []entry {
	all := []entry{{Path: "", Title: "Networks"}, {Path: "findings", Title: "Findings"}, {Path: "hosts", Title: "Hosts"},
		{Path: "elastic", Title: "Elastic"}, {Path: "events", Title: "Events"}}
	for i := range all {
		all[i].Here = all[i].Path == here
	}
	return all
}

func (p *Page) writeHTML(w io.Writer, r *http.Request, s *shown) error {
	out := laidOut{shown: s, Root: rootOf(r), Version: p.version, Host: p.cfg.Host,
		Now: p.of(p.cfg.Now()).Text, Menu: p.menu(s.Here),
		Query: shorten.To(r.URL.Query().Get("q"), shorten.Most)}
	if s.Status == 0 && !s.Asks {
		out.JSON, out.CSV = with(r, formParameter, string(asJSON)), with(r, formParameter, string(asCSV))
	}
	if s.Status == 0 && !s.Still && s.mark != "" {
		out.Live = link(out.Root, []string{"live"}, afterParameter, s.mark, networkParameter, s.Network)
	}
	return p.templates.ExecuteTemplate(&aside.Writer{To: w}, "layout.html", out)
}

// HasDeep tells whether there is something to be shown under details.
func (t *table) HasDeep() bool { return slices.ContainsFunc(t.Columns, column.Deep) }

// SortedBy tells how a list is sorted by a column: ascending, descending or none.
func (t *table) SortedBy(name string) string {
	switch t.Sort {
	case name:
		return "ascending"
	case "-" + name:
		return "descending"
	}
	return "none"
}

// Head are the columns with what HTML needs beside their titles.
func (t *table) Head() []laidColumn {
	attrs := t.attrs()
	all := make([]laidColumn, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = laidColumn{column: c, Attr: attrs[i]}
		if t.SortLink == nil {
			continue
		}
		all[i].Sorted = t.SortedBy(c.Name)
		by := c.Name
		if all[i].Sorted == "ascending" || c.Number && all[i].Sorted == "none" { // numbers from the greatest down
			by = "-" + by
		}
		all[i].Link = t.SortLink(by)
	}
	return all
}

// laidColumn is the head of a column.
type laidColumn struct {
	column
	Attr   template.HTMLAttr
	Link   string // sorts by it
	Sorted string
}

// attrs are those of the cells of each column, and of its head: its class, and that it is hidden. Hidden are ids,
// columns in which no row has anything, and those that say what another one says, in all rows.
func (t *table) attrs() []template.HTMLAttr {
	attrs := make([]template.HTMLAttr, len(t.Columns))
	for i, c := range t.Columns {
		class := c.Class()
		if t.breaks(i) {
			class = strings.TrimSpace(class + " b")
		}
		if class != "" {
			attrs[i] = template.HTMLAttr(` class="` + class + `"`) // of four words
		}
		if c.Deep() || t.says(func(r row) bool { return r[i].empty() }) || t.repeats(i) ||
			c.Name == "space" && t.says(func(r row) bool { return r[i].Text == ipam.LocalSpace }) {
			attrs[i] += " hidden"
		}
	}
	return attrs
}

// mostWhole is how many letters a word has at most that is not broken: a few columns of those have room.
const mostWhole = 13

// breaks tells whether a column has long words, which may be broken anywhere.
func (t *table) breaks(i int) bool {
	isLong := func(word string) bool { return utf8.RuneCountInString(word) > mostWhole }
	return !t.Columns[i].Deep() && slices.ContainsFunc(t.Rows, func(r row) bool {
		return slices.ContainsFunc(strings.Fields(r[i].Text), isLong)
	})
}

// says tells whether something is so in all rows.
func (t *table) says(is func(row) bool) bool {
	return !slices.ContainsFunc(t.Rows, func(r row) bool { return !is(r) })
}

// repeats tells whether a column of texts says what an earlier one says.
func (t *table) repeats(i int) bool {
	for before := range i {
		same := func(r row) bool {
			return r[i].empty() || r[i].Text == r[before].Text && r[i].Bar == nil && r[i].Sign == ""
		}
		if !t.Columns[i].Number && t.says(same) {
			return true
		}
	}
	return false
}

// Deep tells that a column is of ids, which only programs want to see at once.
func (c column) Deep() bool {
	return c.Name == "id" || c.Name == "lease" || strings.HasSuffix(c.Name, "_id")
}

// Class is that of the cells of a column, and of its head.
func (c column) Class() string {
	var all []string
	if c.Number {
		all = append(all, "n")
	}
	if c.Deep() {
		all = append(all, "id")
	}
	if c.Least {
		all = append(all, "least")
	}
	return strings.Join(all, " ")
}
