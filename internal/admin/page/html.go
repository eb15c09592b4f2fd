package page

import (
	"html/template"
	"io"
	"net/http"
	"slices"
	"strings"

	"berth/internal/aside"
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
	out := laidOut{shown: s, Root: rootOf(r), Version: p.version, Host: p.cfg.Host, Menu: p.menu(s.Here),
		Query: shorten.To(r.URL.Query().Get("q"), shorten.Most)}
	if s.Status == 0 && !s.Asks {
		out.JSON, out.CSV = with(r, formParameter, string(asJSON)), with(r, formParameter, string(asCSV))
	}
	if s.Status == 0 && !s.Still && s.mark != "" {
		out.Live = link(out.Root, []string{"live"}, afterParameter, s.mark, networkParameter, s.Network)
	}
	return p.templates.ExecuteTemplate(&aside.Writer{To: w}, "layout.html", out)
}

// laidCell is a cell as its row shows it: most are a text and nothing else.
type laidCell struct {
	cell
	Attr  template.HTMLAttr // what its column is like
	Plain bool
}

// Laid are the rows with what HTML needs beside the cells: worked out here, because a template takes its time for each
// thing that it asks.
func (t *table) Laid() [][]laidCell {
	attrs := t.attrs()
	all := make([][]laidCell, len(t.Rows))
	for n, cells := range t.Rows {
		all[n] = make([]laidCell, len(cells))
		for i, c := range cells {
			all[n][i] = laidCell{c, attrs[i], c.Bar == nil && c.Sign == "" && c.Link == "" && c.Time == ""}
		}
	}
	return all
}

// Head are the columns with what HTML needs beside their titles.
func (t *table) Head() []laidColumn {
	attrs := t.attrs()
	all := make([]laidColumn, len(t.Columns))
	for i, c := range t.Columns {
		all[i] = laidColumn{c, attrs[i]}
	}
	return all
}

// laidColumn is the head of a column.
type laidColumn struct {
	column
	Attr template.HTMLAttr
}

// attrs are those of the cells of each column, and of its head: its class, and that it is hidden where no row has
// anything in it.
func (t *table) attrs() []template.HTMLAttr {
	attrs := make([]template.HTMLAttr, len(t.Columns))
	for i, c := range t.Columns {
		if class := c.Class(); class != "" {
			attrs[i] = template.HTMLAttr(` class="` + class + `"`) // of three words
		}
		if !slices.ContainsFunc(t.Rows, func(r row) bool { return r[i].Text != "" || r[i].Bar != nil || r[i].Sign != "" }) {
			attrs[i] += " hidden"
		}
	}
	return attrs
}

// Class is that of the cells of a column, and of its head.
func (c column) Class() string {
	var all []string
	if c.Number {
		all = append(all, "n")
	}
	if c.Name == "id" || strings.HasSuffix(c.Name, "_id") {
		all = append(all, "id")
	}
	if c.Least {
		all = append(all, "least")
	}
	return strings.Join(all, " ")
}
