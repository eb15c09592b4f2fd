package page

import (
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"berth/internal/background"
	"berth/internal/ipam"
	"berth/internal/shorten"
)

// laidOut is the data of the layout template.
type laidOut struct {
	*shown
	Root    string // the link to the root of the page
	Version string
	Host    string
	Menu    []entry
	Query   string // the searched word
	JSON    string // links to the same view in other formats
	CSV     string
	Now     string // the time of this view, in the page's format
	Live    string // the link for notifications; empty: the view is not refreshed
}

// entry is a menu entry.
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
	return p.templates.ExecuteTemplate(&background.Writer{To: w}, "layout.html", out)
}

// HasDeep reports whether a table has columns for the details.
func (t *table) HasDeep() bool { return slices.ContainsFunc(t.Columns, column.Deep) }

// sortedBy returns the order of a column: ascending, descending or none.
func (t *table) sortedBy(name string) string {
	switch t.Sort {
	case name:
		return "ascending"
	case "-" + name:
		return "descending"
	}
	return "none"
}

// Head returns the columns with what HTML needs.
func (t *table) Head() []laidColumn {
	attrs := t.attrs()
	all := make([]laidColumn, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = laidColumn{column: c, Attr: attrs[i]}
		if t.SortLink == nil {
			continue
		}
		all[i].Sorted = t.sortedBy(c.Name)
		by := c.Name
		// the first click on numbers sorts them in descending order
		if all[i].Sorted == "ascending" || c.Number && all[i].Sorted == "none" {
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
	Link   string // sorts by the column
	Sorted string
}

// attrs returns the attributes of each column's cells and head: the class, and whether it is hidden. It hides ids,
// columns without any value, and columns that repeat another one in all rows.
func (t *table) attrs() []template.HTMLAttr {
	attrs := make([]template.HTMLAttr, len(t.Columns))
	for i, c := range t.Columns {
		class := c.class()
		if t.breaks(i) {
			class = strings.TrimSpace(class + " b")
		}
		if class != "" {
			attrs[i] = template.HTMLAttr(` class="` + class + `"`) // made of four fixed words
		}
		if c.Deep() || t.says(func(r row) bool { return r[i].empty() }) || t.repeats(i) ||
			c.Name == "space" && t.says(func(r row) bool { return r[i].Text == ipam.LocalSpace }) {
			attrs[i] += " hidden"
		}
	}
	return attrs
}

// mostWhole is the maximum number of letters of a word that is not broken. A few columns of such words have room.
const mostWhole = 13

// breaks reports whether a column has long words, which may be broken anywhere.
func (t *table) breaks(i int) bool {
	isLong := func(word string) bool { return utf8.RuneCountInString(word) > mostWhole }
	return !t.Columns[i].Deep() && slices.ContainsFunc(t.Rows, func(r row) bool {
		return slices.ContainsFunc(strings.Fields(r[i].Text), isLong)
	})
}

// says reports whether is holds for all rows.
func (t *table) says(is func(row) bool) bool {
	return !slices.ContainsFunc(t.Rows, func(r row) bool { return !is(r) })
}

// repeats reports whether a column of texts repeats an earlier one.
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

// Deep reports whether a column has ids, which are hidden in the details.
func (c column) Deep() bool {
	return c.Name == "id" || c.Name == "lease" || strings.HasSuffix(c.Name, "_id")
}

// class returns the class of a column's cells and head.
func (c column) class() string {
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
