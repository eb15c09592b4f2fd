package admin

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// wholeBody is a request of a client that writes all of its body before it reads the answer. With expect, it waits for
// the word of the server before it sends the body.
type wholeBody struct {
	method, target string
	body           io.Reader
	size           int64
	kind           string // the content type; empty: JSON
	chunked        bool   // without a length
	expect         bool
}

// send returns the answer. The client never reads while it writes.
func (b *wholeBody) send(conn net.Conn) (*http.Response, []byte, error) {
	in, out := bufio.NewReader(conn), bufio.NewWriterSize(conn, 64<<10)
	kind := b.kind
	if kind == "" {
		kind = api.JSONType
	}
	fmt.Fprintf(out, "%s %s HTTP/1.1\r\nHost: berth\r\nContent-Type: %s\r\n", b.method, b.target, kind)
	if b.expect {
		fmt.Fprint(out, "Expect: 100-continue\r\n")
	}
	if b.chunked {
		fmt.Fprint(out, "Transfer-Encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(out, "Content-Length: %d\r\n\r\n", b.size)
	}
	if b.expect {
		if err := out.Flush(); err != nil {
			return nil, nil, err
		}
		if res, text, err := readAnswer(in, b.method); err != nil || res.StatusCode != http.StatusContinue {
			return res, text, err
		}
	}
	if err := b.write(out); err != nil {
		return nil, nil, fmt.Errorf("the body: %w", err)
	}
	return readAnswer(in, b.method)
}

func (b *wholeBody) write(out *bufio.Writer) error {
	to := io.Writer(out)
	if b.chunked {
		to = httputil.NewChunkedWriter(out)
	}
	if _, err := io.Copy(struct{ io.Writer }{to}, io.LimitReader(b.body, b.size)); err != nil {
		return err
	}
	if b.chunked {
		if err := to.(io.Closer).Close(); err != nil {
			return err
		}
		if _, err := io.WriteString(out, "\r\n"); err != nil {
			return err
		}
	}
	return out.Flush()
}

func readAnswer(in *bufio.Reader, method string) (*http.Response, []byte, error) {
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return nil, nil, fmt.Errorf("the answer: %w", err)
	}
	text, err := io.ReadAll(res.Body)
	return res, text, err
}

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := copy(p[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

// refusedWith returns why an answer is not a problem with a status, or nothing.
func refusedWith(status int, res *http.Response, text []byte) string {
	var p api.Problem
	switch err := json.Unmarshal(text, &p); {
	case status != 0 && res.StatusCode != status, res.StatusCode < 400:
		return fmt.Sprintf("%s %s, and not %d", res.Status, text, status)
	case res.Header.Get("Content-Type") != "application/problem+json", err != nil, p.Code == "", p.Detail == "":
		return fmt.Sprintf("%s: %q is no problem document", res.Header.Get("Content-Type"), text)
	}
	return ""
}

// TestWholeBody: a client that sends all of a body before it reads gets the problem document, and no broken connection.
// That holds for each reason to refuse a body before its end, on the socket and over TLS.
func TestWholeBody(t *testing.T) {
	const whole, part = 50_000_000, 5_000_000
	w := startTLS(t, nil)
	cert := w.ca.client(t, "anna", adminOrganization)
	overTLS := func(as who) func() (net.Conn, error) {
		return func() (net.Conn, error) { return tls.Dial("tcp", w.addr, w.config(as)) }
	}
	open := map[string]func() (net.Conn, error){
		"socket": func() (net.Conn, error) { return net.Dial("unix", w.socket) },
		"TLS":    overTLS(who{cert: &cert}), "a stranger": overTLS(who{}),
	}
	friends := []string{"socket", "TLS"}
	for _, c := range []struct {
		name, target, kind string
		first, again       string // the text
		size               int64
		status             int // 0: any refusal
		from               []string
	}{
		{name: "no JSON", target: "/v1/import", again: "x", size: part, status: 400, from: friends},
		{name: "blanks", target: "/v1/import", again: " ", size: whole, status: 413, from: friends},
		{name: "too many things", target: "/v1/import", first: `{"networks":[`, again: `{"name":"n"},`, size: part,
			status: 413, from: friends},
		{name: "a wrong field", target: "/v1/import", first: `{"networks":[{"name":1}`, again: " ", size: part,
			status: 400, from: friends},
		{name: "another type", target: "/v1/import", kind: "text/plain", again: "x", size: part, status: 415,
			from: friends},
		{name: "more than is taken", target: "/v1/import", again: " ", size: api.PostImport.MaxBody + 1, status: 413,
			from: friends[:1]},
		{name: "another operation", target: "/v1/edits", again: " ", size: part, status: 413, from: friends},
		{name: "no such path", target: "/v1/nothing", again: "x", size: part, from: friends},
		{name: "a stranger", target: "/v1/import", again: "x", size: part, status: 401, from: []string{"a stranger"}},
	} {
		for _, from := range c.from {
			for _, how := range []wholeBody{{}, {chunked: true}, {expect: true}, {chunked: true, expect: true}} {
				conn, err := open[from]()
				must(t, err)
				how.method, how.target, how.kind, how.size = http.MethodPost, c.target, c.kind, c.size
				how.body = io.MultiReader(strings.NewReader(c.first), &endless{text: c.again})
				res, text, err := how.send(conn)
				where := fmt.Sprintf("%s, from %s, chunked %t, expect %t", c.name, from, how.chunked, how.expect)
				if err != nil {
					t.Errorf("%s: %v", where, err)
				} else if wrong := refusedWith(c.status, res, text); wrong != "" {
					t.Errorf("%s: %s", where, wrong)
				}
				conn.Close()
			}
		}
	}
}

// TestWholeBodies: the same with each operation that changes something.
func TestWholeBodies(t *testing.T) {
	const whole = 3 << 20
	w := new(watcher)
	h := start(t, w.join)
	parameter := regexp.MustCompile(`{[a-z_]+}`)
	for _, row := range h.server.routes() {
		if row.Method == http.MethodGet {
			continue
		}
		takes := false
		for _, f := range api.FieldsOf(row.Req) {
			takes = takes || f.In == "body"
		}
		for _, chunked := range []bool{false, true} {
			conn, err := net.Dial("unix", h.socket)
			must(t, err)
			b := wholeBody{method: row.Method, target: parameter.ReplaceAllString(row.Path, "a"),
				body: &endless{text: "x"}, size: whole, chunked: chunked}
			res, text, err := b.send(conn)
			switch {
			case err != nil:
				t.Errorf("%s %s, chunked %t: %v", row.Method, row.Path, chunked, err)
			case takes:
				if wrong := refusedWith(0, res, text); wrong != "" {
					t.Errorf("%s %s, chunked %t: %s", row.Method, row.Path, chunked, wrong)
				}
			}
			conn.Close()
		}
	}
}

// A connection is used again after a refused body that was read to its end.
func TestWholeBodyAndNext(t *testing.T) {
	h := start(t, nil)
	conn, err := net.Dial("unix", h.socket)
	must(t, err)
	defer conn.Close()
	for range 3 {
		b := wholeBody{method: http.MethodPost, target: "/v1/import", body: &endless{text: " "}, size: 3 << 20,
			chunked: true}
		res, text, err := b.send(conn)
		must(t, err)
		if wrong := refusedWith(413, res, text); wrong != "" {
			t.Fatal(wrong)
		}
	}
}

// The client returns the reason why a large plan was refused, from the socket and over TLS.
func TestImportRefusedInTheMiddle(t *testing.T) {
	w := startTLS(t, nil)
	plan := ipam.Plan{}
	for i := range maxNetworks + 1 {
		plan.Networks = append(plan.Networks, ipam.PlannedNetwork{Name: fmt.Sprint("n", i),
			Tags: map[string]string{"note": strings.Repeat("x", 200)}})
	}
	for range 3 {
		_, err := w.client.Import(t.Context(), plan, false, nil)
		if code(err) != api.CodeTooLarge || !strings.Contains(err.Error(), "more than 20000 networks") {
			t.Fatalf("%s: %v", reflect.TypeOf(err), err)
		}
	}
}
