package seen

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

const host = "127.0.0.1:7891"

// behind is a gate before a handler that reports its requests.
func behind(t *testing.T) *gate {
	t.Helper()
	return newGate(netip.MustParseAddrPort(host), "KNOCK", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "seen "+r.Method+" "+r.URL.RequestURI())
	}))
}

func TestGate(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		no secret | GET / HOST | 403
		a wrong one | GET /?secret=KNOCKS HOST | 403
		an empty one | GET /?secret= HOST | 403
		a wrong one beside the cookie | GET /?secret=x HOST Cookie:COOKIE | 403
		the right one, posted | POST /?secret=KNOCK HOST | 403
		another cookie | GET / HOST Cookie:berth-page-7892=KNOCK | 403
		a wrong cookie | GET / HOST Cookie:berth-page-7891=KNOC | 403
		two cookies | GET / HOST Cookie:berth-page-7891=x;COOKIE | 200
		the cookie | GET /a?b=c HOST Cookie:COOKIE | 200
		localhost | GET / localhost:7891 Cookie:COOKIE | 200
		another name | GET / berth.example:7891 Cookie:COOKIE | 421
		another name with the secret | GET /?secret=KNOCK berth.example:7891 | 421
		another port | GET / 127.0.0.1:80 Cookie:COOKIE | 421
		no port | GET / 127.0.0.1 Cookie:COOKIE | 421
		none | GET / - Cookie:COOKIE | 421
		a form of its own | POST / HOST Cookie:COOKIE Sec-Fetch-Site:same-origin | 200
		a form of its own, of an older browser | POST / HOST Cookie:COOKIE Origin:http://HOST | 200
		a form of another port | POST / HOST Cookie:COOKIE Sec-Fetch-Site:same-site | 403
		a form of another site | POST / HOST Cookie:COOKIE Sec-Fetch-Site:cross-site | 403
		a form of another site, of an older browser | POST / HOST Cookie:COOKIE Origin:https://example.org | 403
		a form of a frame that hides where it is from | POST / HOST Cookie:COOKIE Origin:null | 403
	`) {
		t.Run(row[0], func(t *testing.T) {
			request := strings.NewReplacer("HOST", host, "COOKIE", "berth-page-7891=KNOCK").Replace(row[1])
			words := strings.Fields(request)
			r := httptest.NewRequestWithContext(t.Context(), words[0], words[1], nil)
			r.Host = strings.TrimPrefix(words[2], "-")
			for _, header := range words[3:] {
				name, value, _ := strings.Cut(header, ":")
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			behind(t).ServeHTTP(w, r)
			if strconv.Itoa(w.Code) != row[2] {
				t.Errorf("answered %d, not %s: %s", w.Code, row[2], w.Body)
			}
			if through := strings.HasPrefix(w.Body.String(), "seen "); through != (row[2] == "200") {
				t.Errorf("let through: %t; %s", through, w.Body)
			}
			if w.Code != 200 && w.Header().Get("Set-Cookie") != "" {
				t.Error("a stranger was given a cookie")
			}
		})
	}
}

// TestEnter opens the link. The secret leaves the address bar, and never leads to another host.
func TestEnter(t *testing.T) {
	for target, want := range map[string]string{
		"/?secret=KNOCK":                                     "/",
		"/networks/net1?secret=KNOCK":                        "/networks/net1",
		"/search?q=a+b&secret=KNOCK&x=%2F":                   "/search?q=a+b&x=%2F",
		"/a%2Fb?secret=KNOCK":                                "/a%2Fb",
		"http://127.0.0.1:7891//evil.example/?secret=KNOCK":  "/evil.example/",
		`http://127.0.0.1:7891/%5Cevil.example?secret=KNOCK`: "/%5Cevil.example",
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		r.Host = host
		w := httptest.NewRecorder()
		behind(t).ServeHTTP(w, r)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s leads with %d to %q, not to %q", target, w.Code, w.Header().Get("Location"), want)
		}
		cookies := w.Result().Cookies()
		if len(cookies) != 1 {
			t.Fatalf("%s: %d cookies", target, len(cookies))
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
			t.Errorf("the cookie is %s", c)
		}
		if strings.Contains(w.Header().Get("Location"), "KNOCK") || w.Header().Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: the secret goes on: %v", target, w.Header())
		}
	}
}

func TestListenAddress(t *testing.T) {
	for text, good := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:7891": true, "localhost:7891": true, "192.0.2.7:7891": true,
		"": false, ":7891": false, "0.0.0.0:0": false, "[::]:1": false, "127.0.0.1": false, "berth.example:1": false,
		"127.0.0.1:70000": false,
	} {
		if _, err := listenAddress(text); (err == nil) != good {
			t.Errorf("--listen %q: %v", text, err)
		}
	}
}
