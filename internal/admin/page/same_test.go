package page_test

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"
	"golang.org/x/net/html"

	"berth/internal/admin/page"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// hostile are names and notes that would act as markup if a view forgot to escape them.
var hostile = []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</title><svg onload=alert(1)>`,
	`' onmouseover='alert(1)`, `javascript:alert(1)`, `{{.Root}}`, `]]><!--`, `&lt;b&gt;`, `=1+1`, `@SUM(A1)`,
	`+cmd|' /C calc'!A0`,
	`-2+3`,
	`http://example.org/`, `//example.org`, `a,"b";c`}

// furnished is a service with something of everything that the views show, under the most hostile names.
func furnished(t *testing.T) (*service.Service, http.Handler) {
	t.Helper()
	s := ipamtest.NewService(t, time.Now)
	edit := func(edits ...ipam.Edit) {
		t.Helper()
		if _, err := s.Edit(ctx, ipam.EditOptions{}, edits...); err != nil {
			t.Fatal(err)
		}
	}
	tags := map[string]string{}
	for i, text := range hostile {
		tags[fmt.Sprint("tag", i)] = text
	}
	edit(&ipam.CreateNetwork{Name: "net1", Tags: tags, Subnets: []ipam.SubnetSpec{
		{CIDR: netip.MustParsePrefix("10.9.0.0/24"), Gateway: netip.MustParseAddr("10.9.0.1"), Pool: true},
		{CIDR: netip.MustParsePrefix("10.10.0.0/16"), Pool: true},
		{CIDR: netip.MustParsePrefix("2001:db8:9::/64"), Pool: true}}})
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "net1"})
	must(t, err)
	for i, text := range hostile {
		if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(i + 1),
			Name: text}); err != nil {
			t.Fatal(err)
		}
		at := netip.AddrFrom4([4]byte{10, 9, 0, byte(100 + i)})
		edit(&ipam.AddReservation{Network: "net1", Owner: fmt.Sprint("owner", i), Wishes: []ipam.Wish{{Address: at}},
			WantedTerms: ipam.WantedTerms{Note: &text}},
			&ipam.AddExclusion{Network: "net1", Range: ipam.Range{IPRange: netipx.IPRangeFrom(
				netip.AddrFrom4([4]byte{10, 10, byte(i), 10}), netip.AddrFrom4([4]byte{10, 10, byte(i), 20}))}, Note: text})
	}
	for l, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
		must(t, err)
		if l.Kind == ipam.Automatic {
			must(t, s.ReleaseAddress(ctx, l.Pool, l.Address))
			break
		}
	}
	seen := time.Now()
	return s, pages(s, func(cfg *page.Config) {
		cfg.Host = hostile[0]
		cfg.SeenBy = func(string, netip.Addr, uint64) *ipam.SeenBy { return &ipam.SeenBy{Container: hostile[1]} }
		cfg.Witness = func() ipam.WitnessState {
			return ipam.WitnessState{Engine: ipam.EngineUnreachable, Detail: hostile[0], Seen: seen}
		}
		cfg.Writable = func(context.Context) error { return fmt.Errorf("the disk %s is full", hostile[2]) }
		cfg.Findings = func(context.Context) (ipam.CheckReport, error) {
			r := ipam.CheckReport{Host: hostile[0], Engine: ipam.EngineReachable, Taken: seen, Trouble: hostile[1]}
			for _, text := range hostile {
				r.Findings = append(r.Findings, ipam.Finding{Kind: ipam.UnusedLease, Space: "local", Network: text,
					Address: netip.MustParseAddr("10.9.0.2"), Owner: text, Detail: text, Seen: seen})
			}
			return r, nil
		}
	})
}

// everyView are links to each view, with the parameters it takes.
func everyView(t *testing.T, s *service.Service) []string {
	t.Helper()
	all := []string{"/", "/network/net1", "/address/10.9.0.2", "/address/10.9.0.2?space=local&at=1d12h", "/address/10.9.0.105",
		"/address/192.0.2.1", "/find?q=net1", "/find?q=10.9.0.2", "/findings", "/hosts", "/elastic", "/events",
		"/events?verb=lease.take", "/events?network=net1&from=2"}
	for _, text := range hostile {
		all = append(all, "/find?q="+url.QueryEscape(text))
	}
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	for _, sub := range subnets {
		all = append(all, "/subnet/"+sub.ID.String())
	}
	return append(all, "/subnet/"+subnets[1].ID.String()+"?part=10.10.3.0/24")
}

// TestSameFacts: each view says the same in HTML, JSON and CSV.
func TestSameFacts(t *testing.T) {
	s, h := furnished(t)
	for _, target := range everyView(t, s) {
		sep := "?"
		if strings.Contains(target, "?") {
			sep = "&"
		}
		inCSV := tablesOfCSV(t, asked(t, h, target+sep+"format=csv"))
		inJSON := tablesOfJSON(t, asked(t, h, target+sep+"format=json"))
		inHTML := tablesOfHTML(t, asked(t, h, target))
		for name, rows := range inJSON {
			for i, want := range rows {
				if i >= len(inCSV[name]) || i >= len(inHTML[name]) {
					t.Fatalf("%s: %s has %d rows in JSON, %d in CSV and %d in HTML", target, name, len(rows),
						len(inCSV[name]), len(inHTML[name]))
				}
				var cells []string
				for field, value := range want {
					if got := inCSV[name][i][field]; got != value && got != "'"+value {
						t.Errorf("%s: %s %d has the %s %q in JSON, and %q in CSV", target, name, i, field, value, got)
					}
					if field == "state" {
						value = ipam.AddressState(value).Legend().Word
					}
					cells = append(cells, value)
				}
				holdCells(t, target+" "+name, cells, inHTML[name][i])
			}
			if len(rows) != len(inCSV[name]) || len(rows) != len(inHTML[name]) {
				t.Errorf("%s: %s has %d rows in JSON, %d in CSV and %d in HTML", target, name, len(rows), len(inCSV[name]),
					len(inHTML[name]))
			}
		}
		for name := range inCSV {
			if inJSON[name] == nil {
				t.Errorf("%s: %s is in CSV alone", target, name)
			}
		}
		for name := range inHTML {
			if inJSON[name] == nil {
				t.Errorf("%s: %s is in HTML alone", target, name)
			}
		}
	}
}

// holdCells compares the values of a row, in any order.
func holdCells(t *testing.T, what string, want, got []string) {
	t.Helper()
	said := map[string]string{"true": "yes", "false": "no"}
	for i, text := range want {
		if yes := said[text]; yes != "" {
			want[i] = yes
		}
		want[i] = plainly(want[i])
	}
	for i, text := range got {
		got[i] = plainly(text)
	}
	got = slices.DeleteFunc(got, func(text string) bool { return text == "" })
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s: in JSON\n%q\nin HTML\n%q", what, want, got)
	}
}

// plainly is a text without the separators that HTML puts between list items.
func plainly(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, ", ", " ")), " ")
}

// rowsOf are the rows of each table, by the names of their fields.
type rowsOf map[string][]map[string]string

func tablesOfCSV(t *testing.T, text string) rowsOf {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must(t, err)
	tables := rowsOf{}
	for _, record := range all[1:] {
		row := map[string]string{}
		for i, value := range record[1:] {
			if row[all[0][i+1]] = value; value != "" && strings.ContainsRune("=+-@\t\r", rune(value[0])) {
				t.Errorf("a spreadsheet takes %q for a formula", value)
			}
		}
		tables[record[0]] = append(tables[record[0]], row)
	}
	return tables
}

func tablesOfJSON(t *testing.T, text string) rowsOf {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	tables := rowsOf{}
	for name, raw := range all {
		if strings.HasSuffix(name, "_next") || string(raw) == "null" {
			continue
		}
		if raw[0] == '{' {
			raw = slices.Concat(json.RawMessage("["), raw, json.RawMessage("]"))
		}
		var rows []map[string]any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		must(t, d.Decode(&rows))
		for _, fields := range rows {
			row := map[string]string{}
			for field, value := range fields {
				row[field] = textOf(value)
			}
			tables[name] = append(tables[name], row)
		}
	}
	return tables
}

// textOf is a JSON value as CSV writes it.
func textOf(value any) string {
	switch v := value.(type) {
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, textOf(one))
		}
		return strings.Join(all, " ")
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+"="+textOf(v[key]))
		}
		return strings.Join(all, " ")
	}
	return fmt.Sprint(value)
}

// tablesOfHTML are the texts of the cells of each row.
func tablesOfHTML(t *testing.T, text string) map[string][][]string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	must(t, err)
	tables := map[string][][]string{}
	for n := range doc.Descendants() {
		name := attr(n, "data-table")
		switch {
		case name == "":
		case n.Data == "div":
			tables[name] = append(tables[name], cellsIn(n, "dd"))
		default:
			for tr := range n.Descendants() {
				if tr.Data == "tr" && tr.Parent.Data == "tbody" {
					tables[name] = append(tables[name], cellsIn(tr, "td"))
				}
			}
		}
	}
	return tables
}

func cellsIn(n *html.Node, element string) (all []string) {
	for c := range n.Descendants() {
		if c.Type == html.ElementNode && c.Data == element {
			all = append(all, strings.TrimSpace(said(c)))
		}
	}
	return all
}

// said is the text of a cell without its drawings. For a time it is the machine-readable value.
func said(n *html.Node) string {
	switch {
	case n.Type == html.TextNode:
		return n.Data
	case n.Data == "data":
		return attr(n, "value")
	case n.Data == "time":
		return attr(n, "datetime")
	case n.Data == "svg", attr(n, "aria-hidden") == "true", attr(n, "class") == "hear":
		return ""
	}
	var b strings.Builder
	for c := range n.ChildNodes() {
		b.WriteString(said(c))
	}
	return b.String()
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// TestNamesAreText: whatever names people choose, a view has only its own elements, loads nothing from elsewhere,
// and links nowhere else.
func TestNamesAreText(t *testing.T) {
	s, h := furnished(t)
	known := []string{"html", "head", "meta", "title", "link", "script", "body", "a", "header", "span", "nav", "ul", "li", "form",
		"label", "input", "button", "main", "h1", "h2",
		"p", "section", "div", "table", "thead", "tbody", "tr", "th", "td", "dl",
		"dt", "dd", "time", "data", "code", "footer", "svg", "rect", "text", "desc", "figure", "figcaption", "details", "summary"}
	found := map[string]bool{}
	for _, target := range everyView(t, s) {
		text := asked(t, h, target)
		doc, err := html.Parse(strings.NewReader(text))
		must(t, err)
		for n := range doc.Descendants() {
			if n.Type == html.CommentNode {
				t.Errorf("%s has the comment %q", target, n.Data)
			}
			if n.Type == html.TextNode {
				for _, name := range hostile {
					found[name] = found[name] || strings.Contains(n.Data, name)
				}
			}
			if n.Type != html.ElementNode {
				continue
			}
			if !slices.Contains(known, n.Data) || n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s has the element %s", target, n.Data)
			}
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
					t.Errorf("%s has the attribute %s=%q", target, a.Key, a.Val)
				}
				if slices.Contains([]string{"href", "src", "action", "data-live"}, a.Key) && !relative(a.Val) {
					t.Errorf("%s leads to %q", target, a.Val)
				}
			}
		}
	}
	for _, name := range hostile {
		if !found[name] {
			t.Errorf("%q is shown nowhere as it is", name)
		}
	}
}

// relative tells whether a link stays below the root of the page, under any path that a proxy gives it.
func relative(link string) bool {
	u, err := url.Parse(link)
	return err == nil && u.Scheme == "" && u.Host == "" && !strings.HasPrefix(link, "/") &&
		(strings.HasPrefix(link, "./") || strings.HasPrefix(link, "../") || strings.HasPrefix(link, "?") ||
			strings.HasPrefix(link, "#")) && strings.Count(link, "../") < 3
}

// TestBehindPrefix: links lead from view to view if a proxy serves the page below its own path.
func TestBehindPrefix(t *testing.T) {
	_, h := furnished(t)
	const prefix = "/tools/berth"
	proxied := http.StripPrefix(prefix, h)
	todo, seen := []string{prefix + "/"}, map[string]bool{}
	for len(todo) > 0 && len(seen) < 300 {
		target := todo[0]
		todo = todo[1:]
		path, _, _ := strings.Cut(target, "?")
		if seen[target] || strings.HasSuffix(path, ".css") || strings.HasSuffix(path, ".svg") {
			continue
		}
		seen[target] = true
		doc, err := html.Parse(strings.NewReader(asked(t, proxied, target)))
		must(t, err)
		base, err := url.Parse("http://host" + target)
		must(t, err)
		for n := range doc.Descendants() {
			if n.Type != html.ElementNode || n.Data != "a" {
				continue
			}
			to, err := base.Parse(attr(n, "href"))
			if err != nil || to.Host != "host" || !strings.HasPrefix(to.Path, prefix+"/") {
				t.Fatalf("%s leads to %q", target, attr(n, "href"))
			}
			if q := to.Query(); !q.Has("format") && to.Path != prefix+"/docs" { // which belongs to the API
				todo = append(todo, to.RequestURI())
			}
		}
	}
	if len(seen) < 300 {
		t.Errorf("only %d views were found", len(seen))
	}
}

// TestSent: answers are compressed for clients that accept it. All others get the same content uncompressed.
func TestSent(t *testing.T) {
	_, h := furnished(t)
	for _, c := range []struct {
		accept string
		packed bool
	}{{"", false}, {"gzip", true}, {"br, gzip;q=0.8", true}, {"gzip;q=0", false}, {"gzip;q=0.000", false}, {"deflate", false}} {
		plain, header := sent(t, h, "/network/net1", c.accept)
		if got := header.Get("Content-Encoding") == "gzip"; got != c.packed {
			t.Errorf("Accept-Encoding: %s: compressed: %t", c.accept, got)
		}
		if !strings.HasPrefix(plain, "<!doctype html>") || header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding: %s: %q, %v", c.accept, plain, header)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin",
			"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; " +
				"script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"} {
			if header.Get(name) != want {
				t.Errorf("%s is %q", name, header.Get(name))
			}
		}
	}
}

// sent requests a view with an Accept-Encoding header, and returns it unpacked.
func sent(t *testing.T, h http.Handler, target, accept string) (string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	r.Header.Set("Accept-Encoding", accept)
	h.ServeHTTP(w, r)
	var body io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(body)
	must(t, err)
	return string(text), w.Header()
}
