package admin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam/ipamtest"
)

// browse asks for a view as a browser does, and returns its body.
func (h *house) browse(t *testing.T, target string, status int) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://berth"+target, nil)
	must(t, err)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	if res.StatusCode != status {
		t.Fatalf("%s is answered with %s: %s", target, res.Status, body)
	}
	return string(body), res.Header
}

// TestPage asks for views where the API answers, too.
func TestPage(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	subnets, err := h.server.cfg.Service.Subnets(t.Context(), "lab")
	must(t, err)
	network, subnet := subnets[0].Network, subnets[0].ID.String()
	hosts := "a store of its own"
	if overTwo {
		hosts = "<td>alpha</td>"
	}
	for c := range ipamtest.Rows(4, strings.NewReplacer("$network", network, "$subnet", subnet, "$hosts", hosts).Replace(`
		/ | 200 | text/html | <!doctype html>
		/?format=json | 200 | application/json | "networks":[{"network":"
		/?format=csv | 200 | text/csv | networks,
		/?format=xml | 400 | text/html | there are html, json and csv
		/?typo=1 | 400 | text/html | has no parameter
		/network/$network | 200 | text/html | 10.1.0.0/24
		/network/$network?format=json | 200 | application/json | "subnets":[{"subnet":"10.1.0.0/24"
		/network/nowhere | 404 | text/html | no network
		/subnet/$subnet | 200 | text/html | <title>10.1.0.2: leased, web</title>
		/subnet/$subnet?format=json | 200 | application/json | {"address":"10.1.0.2","state":"leased","addresses":1,"name":"web"
		/subnet/$subnet?part=10.1.0.0/30 | 200 | text/html | Part 10.1.0.0/30 of 10.1.0.0/24
		/subnet/$subnet?part=10.2.0.0/30 | 400 | text/html | is no part of the subnet
		/subnet/nowhere | 404 | text/html | no subnet
		/address/10.1.0.2?space=lab | 200 | text/html | 02:00:00:00:00:01
		/address/10.1.0.2?format=json&at=0d | 200 | application/json | "tenures":[{"name":"web"
		/address/10.1.0.2?format=json&at=2001-01-01 | 200 | application/json | "tenures":[]
		/address/10.1.0.2?format=json&at=1d12h | 200 | application/json | "tenures":[]
		/address/10.1.0.2?at=tomorrow | 400 | text/html | how long ago
		/address/web | 400 | text/html | no address
		/find | 200 | text/html | a part of a name
		/find?q=we | 200 | text/html | ./address/10.1.0.2?space=lab
		/find?q=nobody | 200 | text/html | Nothing has it
		/findings | 200 | text/html | Nothing was checked yet
		/hosts | 200 | text/html | $hosts
		/elastic | 200 | text/html | no range of elastic
		/events | 200 | text/html | lease.take
		/events?verb=lease.take&format=csv | 200 | text/csv | events,
		/events?verb=lease.steal | 400 | text/html | no event
		/style.css | 200 | text/css | --leased
		/icon.svg | 200 | image/svg+xml | <svg
	`)) {
		body, header := h.browse(t, c[0], number(c[1]))
		if !strings.HasPrefix(header.Get("Content-Type"), c[2]) || !strings.Contains(body, c[3]) {
			t.Errorf("%s is a %s without %q: %s", c[0], header.Get("Content-Type"), c[3], body)
		}
		if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s has the policy %q", c[0], policy)
		}
	}
}

// inlineStyle is what a page has of its style in itself.
var inlineStyle = regexp.MustCompile(`(?s)<style>(.*)</style>`)

// TestRefusedInABrowser: a browser that is refused, or asks for what there is not, is answered with a page that says
// what programs are told, with the same status. Who may not see the page is shown nothing else, and in its style though
// a browser would be refused that, too.
func TestRefusedInABrowser(t *testing.T) {
	w := startTLS(t, nil)
	headers := map[string][]string{"reader": bearer(w.token(t, "look", api.RoleReadOnly, 0)),
		"wrong": bearer("brt_" + strings.Repeat("0", 32))}
	const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for c := range ipamtest.Rows(6, `
		no such path | /networks | reader | | 404
		no such path, with an odd one | /a//b | reader | | 404
		no such view | /network/nowhere | reader | | 404
		what is for admins | /change/reserve | reader | | 403
		nobody | / | |  | 401 | bare
		nobody, who asks for no path | /networks | |  | 401 | bare
		a token that is none | / | wrong | | 401 | bare
		another name | / | reader | evil.example | 421 | bare
		no such path under another name | /networks | reader | evil.example | 404 | bare
	`) {
		ask := func(accept string) (kind, body, policy string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.addr+c[1], nil)
			must(t, err)
			req.Header["Authorization"] = headers[c[2]]
			req.Header.Set("Accept", accept)
			req.Host = c[3]
			res, err := w.client(t, who{}).Do(req)
			must(t, err)
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			must(t, err)
			if challenge := res.Header.Get("WWW-Authenticate"); res.StatusCode != number(c[4]) ||
				(challenge != "") != (c[4] == "401") {
				t.Errorf("%s: %s with the challenge %q: %s", c[0], res.Status, challenge, text)
			}
			return res.Header.Get("Content-Type"), string(text), res.Header.Get("Content-Security-Policy")
		}
		kind, body, _ := ask("*/*")
		var p api.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || kind != "application/problem+json" || p.Detail == "" {
			t.Errorf("%s: a program gets a %s: %s", c[0], kind, body)
		}
		kind, body, policy := ask(accept)
		if !strings.HasPrefix(kind, "text/html") || !strings.Contains(html.UnescapeString(body), p.Detail) ||
			!strings.Contains(body, "<h1>"+p.Title+"</h1>") {
			t.Errorf("%s: a browser gets a %s without %q: %s", c[0], kind, p.Detail, body)
		}
		if shows := strings.Contains(body, "<nav") || strings.Contains(body, "alpha"); shows == (c[5] != "") {
			t.Errorf("%s: the page shows more than the refusal: %t", c[0], shows)
		}
		if !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: the policy is %q", c[0], policy)
		}
		style := inlineStyle.FindStringSubmatch(body)
		if (style != nil) != (c[5] != "") || style != nil && !strings.Contains(style[1], "--leased") {
			t.Errorf("%s: the style is in the page: %q", c[0], style)
		}
		if style != nil {
			sum := sha256.Sum256([]byte(style[1]))
			if !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				t.Errorf("%s: a browser would not take the style: %s", c[0], policy)
			}
		}
	}
}

// TestAPIRefusesWithProblems: below /v1 a browser gets what programs do.
func TestAPIRefusesWithProblems(t *testing.T) {
	h := start(t, nil)
	for _, target := range []string{"/v1/nowhere", "/v1/networks/nowhere"} {
		if body, header := h.browse(t, target, 404); header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", target, body)
		}
	}
}

// TestFootLeadsToTheAPI from each view, below whatever path a proxy has put it.
func TestFootLeadsToTheAPI(t *testing.T) {
	h := start(t, nil)
	for target, link := range map[string]string{"/": "./docs", "/address/10.1.0.2": "../docs"} {
		body, _ := h.browse(t, target, 200)
		if _, foot, _ := strings.Cut(body, "<footer>"); !strings.Contains(foot, `href="`+link+`"`) {
			t.Errorf("%s has no link to %s: %s", target, link, foot)
		}
	}
}
