package page

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/background"
	"berth/internal/ipam"
)

// form is the format of a view's answer.
type form string

const (
	asHTML form = "html"
	asJSON form = "json"
	asCSV  form = "csv"
)

func formOf(r *http.Request) (form, error) {
	switch f := form(cmp.Or(r.URL.Query().Get(formParameter), string(asHTML))); f {
	case asHTML, asJSON, asCSV:
		return f, nil
	default:
		return "", ipam.Refuse(ipam.ErrInvalid, "the format %q is unknown; use html, json or csv", f)
	}
}

// WantsHTML reports whether a person reads the answer, and should see a refusal as a page.
func WantsHTML(r *http.Request) bool {
	f, err := formOf(r)
	return (err != nil || f == asHTML) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// policy allows a browser to load only the page's own files, to send forms only to the page, and to show it in no
// frame.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the security headers of each answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // a form sends its origin, which no-referrer would hide
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// answer writes a view in a format.
func (p *Page) answer(w http.ResponseWriter, r *http.Request, f form, s *shown) error {
	var body bytes.Buffer
	var err error
	contentType := api.JSONType
	switch f {
	case asJSON:
		err = writeJSON(&body, s)
	case asCSV:
		contentType = "text/csv; charset=utf-8; header=present"
		err = writeCSV(&body, s)
	default:
		contentType = "text/html; charset=utf-8"
		err = p.writeHTML(&body, r, s)
	}
	if err != nil {
		return err
	}
	h := w.Header()
	protect(h)
	h.Set("Content-Type", contentType)
	if f == asCSV {
		h.Set("Content-Disposition", `attachment; filename="berth-`+cmp.Or(s.File, "page")+`.csv"`)
	}
	return p.send(w, r, cmp.Or(s.Status, http.StatusOK), &body)
}

// leastPacked is the minimum size of a compressed answer in bytes.
const leastPacked = 1024

// send writes an answer, compressed if the browser supports that.
func (p *Page) send(w http.ResponseWriter, r *http.Request, status int, body *bytes.Buffer) error {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if body.Len() >= leastPacked && background.AcceptsGzip(r) {
		var packed bytes.Buffer
		z := p.packers.To(&packed)
		_, _ = body.WriteTo(z) // into memory
		_ = z.Close()
		h.Set("Content-Encoding", "gzip")
		body = &packed
	}
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the server notices a client that is gone
	return nil
}

// tables returns the tables of a view, which are its data.
func (s *shown) tables() (all []*table) {
	for i := range s.Blocks {
		if t := s.Blocks[i].Table; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// writeJSON writes an object with a list for each table. A table about one thing becomes an object.
func writeJSON(b *bytes.Buffer, s *shown) error {
	field := func(first bool, name string) {
		if !first {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(name) + ":")
	}
	b.WriteByte('{')
	for i, t := range s.tables() {
		field(i == 0, t.Name)
		if !t.One {
			b.WriteByte('[')
		}
		for n, cells := range t.Rows {
			if n > 0 {
				b.WriteString(",\n")
			}
			b.WriteByte('{')
			first := true
			for at, c := range cells {
				if c.Value == nil {
					continue
				}
				text, err := json.Marshal(c.Value)
				if err != nil {
					return err
				}
				field(first, t.Columns[at].Name)
				b.Write(text)
				first = false
			}
			b.WriteByte('}')
		}
		if !t.One {
			b.WriteByte(']')
		} else if len(t.Rows) == 0 {
			b.WriteString("null")
		}
		if t.Next != "" {
			text, err := json.Marshal(t.Next)
			if err != nil {
				return err
			}
			field(false, t.Name+"_next")
			b.Write(text)
		}
	}
	b.WriteString("}\n")
	return nil
}

// writeCSV writes all rows as one table. Its first column is the name of each row's table. The others are all columns
// of all tables.
func writeCSV(b *bytes.Buffer, s *shown) error {
	names := []string{"table"}
	for _, t := range s.tables() {
		for _, c := range t.Columns {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	w := csv.NewWriter(b)
	w.UseCRLF = true // RFC 4180
	_ = w.Write(names)
	for _, t := range s.tables() {
		at := make([]int, len(t.Columns))
		for i, c := range t.Columns {
			at[i] = slices.Index(names, c.Name)
		}
		for _, cells := range t.Rows {
			record := make([]string, len(names))
			record[0] = t.Name
			for i, c := range cells {
				text, err := c.plain()
				if err != nil {
					return err
				}
				record[at[i]] = harmless(text)
			}
			_ = w.Write(record)
		}
	}
	w.Flush()
	return w.Error()
}

// harmless puts an apostrophe before a text that a spreadsheet would take for a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
