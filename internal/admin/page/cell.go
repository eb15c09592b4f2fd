package page

import (
	"fmt"
	"html"
	"html/template"
	"strings"
)

// Body returns the rows of a table as HTML. It uses no template, because that takes several milliseconds for a hundred
// rows. All texts are escaped, and all links are relative (links.go).
func (t *table) Body() template.HTML {
	attrs := t.attrs()
	titles := t.titles(attrs)
	var b strings.Builder
	for _, cells := range t.Rows {
		b.WriteString("<tr>")
		for i := range cells {
			b.WriteString("<td" + string(attrs[i]))
			if !cells[i].empty() {
				b.WriteString(titles[i])
			}
			b.WriteByte('>')
			cells[i].write(&b)
			b.WriteString("</td>")
		}
		b.WriteString("</tr>\n")
	}
	return template.HTML(b.String())
}

// titles returns attributes with the titles of the columns. In a narrow window they label cells that stand below one
// another. The first visible cell names its row and needs no title.
func (t *table) titles(attrs []template.HTMLAttr) []string {
	titles := make([]string, len(attrs))
	first := true
	for i, attr := range attrs {
		if strings.HasSuffix(string(attr), "hidden") {
			continue
		}
		if !first {
			titles[i] = ` data-t="` + html.EscapeString(t.Columns[i].Title) + `"`
		}
		first = false
	}
	return titles
}

// HTML returns a cell as HTML.
func (c cell) HTML() template.HTML {
	var b strings.Builder
	c.write(&b)
	return template.HTML(b.String())
}

func (c *cell) write(b *strings.Builder) {
	if c.Bar != nil {
		c.Bar.write(b)
	}
	if c.Line != nil {
		c.Line.write(b)
	}
	if c.Sign != "" {
		c.writeSign(b)
	}
	text := html.EscapeString(c.Text)
	switch {
	case c.Link != "":
		b.WriteString(`<a href="` + html.EscapeString(c.Link) + `">` + text + "</a>")
	case c.Exact != "":
		b.WriteString(`<data value="` + html.EscapeString(c.Exact) + `">` + text + "</data>")
	case c.Time != "":
		b.WriteString(`<time datetime="` + html.EscapeString(c.Time) + `">` + text + "</time>")
	default:
		b.WriteString(text)
	}
}

// writeSign writes the sign of a state, and its meaning for screen readers.
func (c *cell) writeSign(b *strings.Builder) {
	class := "sign"
	if c.State != "" {
		class += " b-" + c.State
	}
	fmt.Fprintf(b, `<span class="%s" aria-hidden="true">%s</span>`, html.EscapeString(class), html.EscapeString(c.Sign))
	if c.Note != "" {
		b.WriteString(`<span class="hear"> ` + html.EscapeString(c.Note) + ":</span>")
	}
	b.WriteByte(' ')
}

func (d *bar) write(b *strings.Builder) {
	fmt.Fprintf(b, `<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">`+
		`<rect class="l-%s" width="%d" height="10"/></svg> `, d.Level, d.Percent)
}

func (l *line) write(b *strings.Builder) {
	label := html.EscapeString(l.Label)
	fmt.Fprintf(b, `<svg class="line" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`+
		`<title>%s</title><polyline class="l-%s" points="%s"/></svg> `, l.Width, lineHeight, label, label,
		l.Level, l.Points)
}
