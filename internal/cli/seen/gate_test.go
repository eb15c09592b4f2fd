package seen

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
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
	const cookie = "berth-page-7891=KNOCK"
	for _, c := range []struct {
		name, method, target, host string
		header                     map[string]string
		status                     int
	}{
		{"no secret", "GET", "/", host, nil, 403},
		{"a wrong one", "GET", "/?secret=KNOCKS", host, nil, 403},
		{"an empty one", "GET", "/?secret=", host, nil, 403},
		{"a wrong one beside the cookie", "GET", "/?secret=x", host, map[string]string{"Cookie": cookie}, 403},
		{"the right one, posted", "POST", "/?secret=KNOCK", host, nil, 403},
		{"another cookie", "GET", "/", host, map[string]string{"Cookie": "berth-page-7892=KNOCK"}, 403},
		{"a wrong cookie", "GET", "/", host, map[string]string{"Cookie": "berth-page-7891=KNOC"}, 403},
		{"two cookies", "GET", "/", host, map[string]string{"Cookie": "berth-page-7891=x; " + cookie}, 200},
		{"the cookie", "GET", "/a?b=c", host, map[string]string{"Cookie": cookie}, 200},
		{"localhost", "GET", "/", "localhost:7891", map[string]string{"Cookie": cookie}, 200},
		{"another name", "GET", "/", "berth.example:7891", map[string]string{"Cookie": cookie}, 421},
		{"another name with the secret", "GET", "/?secret=KNOCK", "berth.example:7891", nil, 421},
		{"another port", "GET", "/", "127.0.0.1:80", map[string]string{"Cookie": cookie}, 421},
		{"no port", "GET", "/", "127.0.0.1", map[string]string{"Cookie": cookie}, 421},
		{"none", "GET", "/", "", map[string]string{"Cookie": cookie}, 421},
		{"a form of its own", "POST", "/", host, map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin"},
			200},
		{"a form of its own, of an older browser", "POST", "/", host, map[string]string{"Cookie": cookie,
			"Origin": "http://" + host}, 200},
		{"a form of another port", "POST", "/", host, map[string]string{"Cookie": cookie,
			"Sec-Fetch-Site": "same-site"}, 403},
		{"a form of another site", "POST", "/", host, map[string]string{"Cookie": cookie,
			"Sec-Fetch-Site": "cross-site"}, 403},
		{"a form of another site, of an older browser", "POST", "/", host, map[string]string{"Cookie": cookie,
			"Origin": "https://example.org"}, 403},
		{"a form of a frame that hides where it is from", "POST", "/", host, map[string]string{"Cookie": cookie,
			"Origin": "null"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.target, nil)
			r.Host = c.host
			for name, value := range c.header {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			behind(t).ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("answered %d, not %d: %s", w.Code, c.status, w.Body)
			}
			if through := strings.HasPrefix(w.Body.String(), "seen "); through != (c.status == 200) {
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
