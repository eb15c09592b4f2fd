package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/getkin/kin-openapi/openapi3filter"
)

// step is one request and its answer.
type step struct {
	method, target, body string
	header               http.Header
	status               int
	has, lacks           string
	tag                  string
}

// steps reads a script, a step each:
//
//	[HEADER: VALUE] METHOD TARGET [BODY] -> STATUS [PART && PART] [without TEXT] [tag $NAME]
//
// The answer has each part and lacks the text, in its body or in its headers ("Name: value"). tag keeps its ETag as a
// word for later steps. A change is "edit EDITS", a dry run "try EDITS". A browser requests "look TARGET" and sends
// "fill TARGET FORM"; "agree" sends the form of the page that it has. A step may have several lines, and ends with the
// one that has its "->". Of words, each second one replaces the one before it.
func steps(script string, words ...string) (all []step) {
	text := ""
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || text == "" && line[0] == '#' {
			continue
		}
		text = strings.TrimSpace(text + " " + line)
		if asked, answer, ends := strings.Cut(text, "-> "); ends {
			all = append(all, stepOf(strings.TrimSpace(asked), answer, strings.NewReplacer(words...)))
			text = ""
		}
	}
	if text != "" {
		panic("a step without an answer: " + text)
	}
	return all
}

func stepOf(asked, answer string, words *strings.Replacer) (s step) {
	answer, s.tag, _ = strings.Cut(answer, " tag ")
	status, has, _ := strings.Cut(answer, " ")
	has, s.lacks, _ = strings.Cut(" "+has, " without ")
	s.status, s.has = number(words.Replace(status)), words.Replace(strings.TrimSpace(has))
	s.header = http.Header{}
	for strings.HasPrefix(asked, "[") {
		header, rest, _ := strings.Cut(asked[1:], "] ")
		name, value, _ := strings.Cut(header, ":")
		s.header.Add(name, words.Replace(strings.TrimSpace(value)))
		asked = rest
	}
	s.method, asked, _ = strings.Cut(asked, " ")
	s.target, s.body, _ = strings.Cut(words.Replace(asked), " ")
	if edits, ok := map[string]string{"edit": `{"edits": [`, "try": `{"dry_run": true, "edits": [`}[s.method]; ok {
		s.method, s.target, s.body = "POST", "/v1/edits", edits+words.Replace(asked)+"]}"
	}
	return s
}

// tried is a dry run.
func tried(edits string) step { return steps("try " + edits + " -> 200")[0] }

// answered is the answer to a step.
type answered struct {
	status int
	header http.Header
	body   string
	text   string // the headers, the body, and the detail of a problem
}

// is reports whether the answer matches the step.
func (a *answered) is(s *step) bool {
	for part := range strings.SplitSeq(s.has, " && ") {
		if !strings.Contains(a.text, part) {
			return false
		}
	}
	return a.status == s.status && (s.lacks == "" || !strings.Contains(a.text, s.lacks))
}

// into decodes the JSON of an answer.
func into[T any](t testing.TB, a answered) (v T) {
	t.Helper()
	must(t, json.Unmarshal([]byte(a.body), &v))
	return v
}

func (a answered) outcome(t testing.TB) ipam.Outcome { return into[ipam.Outcome](t, a) }

// tagged is a text with the kept tags filled in.
func (h *harness) tagged(text string) string {
	for name, tag := range h.tags {
		text = strings.ReplaceAll(text, name, tag)
	}
	return text
}

// request is the request of a step, sent as a program or as a browser.
func (h *harness) request(t testing.TB, s step) *http.Request {
	t.Helper()
	usual := map[string]string{}
	switch s.method {
	case "look":
		s.method, usual["Accept"] = http.MethodGet, browserAccept
	case "fill", "agree":
		form, err := url.ParseQuery(s.body)
		must(t, err)
		for name, values := range h.form {
			if s.method == "agree" && !form.Has(name) {
				form[name] = values
			}
		}
		s.method, s.body = http.MethodPost, form.Encode()
		usual = map[string]string{"Accept": browserAccept, "Sec-Fetch-Site": "same-origin",
			"Content-Type": "application/x-www-form-urlencoded"}
	default:
		if s.body != "" {
			usual["Content-Type"] = api.JSONType
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), s.method, h.base+h.tagged(s.target),
		strings.NewReader(h.tagged(s.body)))
	must(t, err)
	for name, value := range usual {
		req.Header.Set(name, value)
	}
	for _, header := range []http.Header{h.header, s.header} {
		for name, values := range header {
			req.Header.Del(name)
			for _, value := range values {
				req.Header.Add(name, h.tagged(value))
			}
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return req
}

const browserAccept = "text/html,application/xhtml+xml,*/*;q=0.8"

// send sends a step and compares the answer with the description, and the request too if it succeeds.
func (h *harness) send(t testing.TB, s step) answered {
	t.Helper()
	req := h.request(t, s)
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	got := answered{status: res.StatusCode, header: res.Header, body: string(body)}
	var text strings.Builder
	must(t, res.Header.Write(&text))
	fmt.Fprintf(&text, "Closed: %t\n", res.Close)
	got.text = text.String() + got.body
	switch kind := res.Header.Get("Content-Type"); {
	case req.Method == http.MethodHead:
	case kind == "application/problem+json":
		p := into[api.Problem](t, got)
		got.text += "\n" + p.Detail
		if p.Status != res.StatusCode || p.Title == "" || p.Code == "" || p.Detail == "" ||
			(p.Code == api.CodeNoMethod) != (res.Header.Get("Allow") != "") {
			t.Errorf("%s %s: %d, Allow: %q: %s", req.Method, s.target, res.StatusCode, res.Header.Get("Allow"), body)
		}
	case strings.HasPrefix(kind, "text/html") && strings.Contains(got.body, formStart):
		h.form = formIn(got.body)
	case strings.HasPrefix(req.URL.Path, "/v1/") && res.StatusCode >= 400:
		t.Errorf("%s %s is refused with a %s", req.Method, s.target, kind)
	}
	in := described(t, req)
	if in == nil && strings.HasPrefix(req.URL.Path, "/v1/") && res.StatusCode < 300 && req.Method != http.MethodHead {
		t.Errorf("%s %s is answered, and not described", req.Method, s.target)
	}
	if in == nil {
		return got
	}
	if res.StatusCode < 300 {
		req.Body = h.request(t, s).Body
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("the request is not as described, and was answered: %v", err)
		}
	}
	h.validate(t, in, res, body)
	return got
}

// play sends a step and checks the answer against it.
func (h *harness) play(t testing.TB, s step) answered {
	t.Helper()
	got := h.send(t, s)
	s.has = h.tagged(s.has)
	if !got.is(&s) {
		t.Fatalf("%v %s %s %.2000s -> %d %s without %q: %d\n%.4000s", s.header, s.method, s.target, s.body, s.status,
			s.has, s.lacks, got.status, got.text)
	}
	if s.tag != "" {
		h.tags[s.tag] = got.header.Get("ETag")
	}
	return got
}

// plays plays a script, and returns the last answer.
func (h *harness) plays(t testing.TB, script string, words ...string) (last answered) {
	t.Helper()
	for _, s := range steps(script, words...) {
		last = h.play(t, s)
	}
	return last
}

const formStart = `<form class="fill"`

var inputs = regexp.MustCompile(`<input [^>]*name="([^"]*)"[^>]*value="([^"]*)"`)

// formIn reads the form in the main part of a page.
func formIn(body string) url.Values {
	form := url.Values{}
	for _, m := range inputs.FindAllStringSubmatch(body[strings.Index(body, formStart):], -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return form
}

// direct is a connection to a handler in this process, for a caller.
type direct struct {
	handler http.Handler
	as      func(context.Context) context.Context
}

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(d.as(r.Context()))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := timedRecorder{httptest.NewRecorder()}
	d.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// timedRecorder is a recorder that accepts deadlines, as a connection does.
type timedRecorder struct{ *httptest.ResponseRecorder }

func (timedRecorder) SetReadDeadline(time.Time) error  { return nil }
func (timedRecorder) SetWriteDeadline(time.Time) error { return nil }

// through is the harness over a handler, without a connection.
func (h *harness) through(handler http.Handler, as func(context.Context) context.Context) *harness {
	other := *h
	other.http = &http.Client{Transport: direct{handler, as}}
	return &other
}

// as is the harness for a caller.
func (h *harness) as(who *caller) *harness {
	return h.through(h.server.recovered(h.server.mux()), func(ctx context.Context) context.Context {
		if who.role == api.RoleAccount {
			ctx = ipam.WithAccount(ctx, who.account)
		}
		return context.WithValue(ctx, callerKey{}, who)
	})
}

// number reads a cell of a table.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
