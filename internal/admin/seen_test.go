package admin

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam/ipamtest"
)

// TestPage requests views from the server that also serves the API.
func TestPage(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	subnets, err := h.server.cfg.Service.Subnets(t.Context(), "lab")
	must(t, err)
	network, subnet := subnets[0].Network, subnets[0].ID.String()
	hosts := "is not in a cluster"
	if overTwo {
		hosts = "<td>alpha</td>"
	}
	for _, s := range steps(`
		look / -> 200 Content-Type: text/html && <!doctype html>
		look /?format=json -> 200 Content-Type: application/json && "networks":[{"network":"
		look /?format=csv -> 200 Content-Type: text/csv && networks,
		look /?format=xml -> 400 Content-Type: text/html && use html, json or csv
		look /?typo=1 -> 400 Content-Type: text/html && has no parameter
		look /network/$network -> 200 Content-Type: text/html && 10.1.0.0/24
		look /network/$network?format=json -> 200 Content-Type: application/json && "subnets":[{"subnet":"10.1.0.0/24"
		look /network/nowhere -> 404 Content-Type: text/html && no network
		look /subnet/$subnet -> 200 Content-Type: text/html && <title>10.1.0.2: held, web</title>
		look /subnet/$subnet?format=json
			-> 200 Content-Type: application/json && {"address":"10.1.0.2","state":"leased","addresses":1,"name":"web"
		look /subnet/$subnet?part=10.1.0.0/30 -> 200 Content-Type: text/html && Part 10.1.0.0/30 of 10.1.0.0/24
		look /subnet/$subnet?part=10.2.0.0/30 -> 400 Content-Type: text/html && is not in the subnet
		look /subnet/nowhere -> 404 Content-Type: text/html && no subnet
		look /address/10.1.0.2?space=lab -> 200 Content-Type: text/html && 02:00:00:00:00:01
		look /address/10.1.0.2?format=json&at=0d -> 200 Content-Type: application/json && "tenures":[{"name":"web"
		look /address/10.1.0.2?format=json&at=2001-01-01 -> 200 Content-Type: application/json && "tenures":[]
		look /address/10.1.0.2?format=json&at=1d12h -> 200 Content-Type: application/json && "tenures":[]
		look /address/10.1.0.2?at=tomorrow -> 400 Content-Type: text/html && must be an age
		look /address/web -> 400 Content-Type: text/html && not an address
		look /find -> 200 Content-Type: text/html && a part of a name
		look /find?q=we -> 200 Content-Type: text/html && ./address/10.1.0.2?space=lab
		look /find?q=nobody -> 200 Content-Type: text/html && Nothing matches
		look /findings -> 200 Content-Type: text/html && Nothing was checked yet
		look /hosts -> 200 Content-Type: text/html && $hosts
		look /elastic -> 200 Content-Type: text/html && no range of elastic
		look /events -> 200 Content-Type: text/html && lease.take
		look /events?verb=lease.take&format=csv -> 200 Content-Type: text/csv && events,
		look /events?verb=lease.steal -> 400 Content-Type: text/html && is not an event
		look /style.css -> 200 Content-Type: text/css && --leased
		look /icon.svg -> 200 Content-Type: image/svg+xml && <svg
	`, "$network", network, "$subnet", subnet, "$hosts", hosts) {
		s.has += " && Content-Security-Policy: default-src 'none';"
		h.play(t, s)
	}
}

// inlineStyle is the style inside a page.
var inlineStyle = regexp.MustCompile(`(?s)<style>(.*)</style>`)

// TestRefusedInABrowser: a browser that is refused, or asks for something that does not exist, gets a page with
// the text and the status that programs get. A caller that may not see the page sees only the refusal. Its style
// is inline, since the browser would be refused a style sheet, too.
func TestRefusedInABrowser(t *testing.T) {
	w := startTLS(t, nil)
	doors := map[string]*harness{"reader": w.over(t, who{header: bearer(w.token(t, "look", api.RoleReadOnly, 0))}),
		"": w.over(t, who{}), "wrong": w.over(t, who{header: bearer("brt_" + strings.Repeat("0", 32))})}
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
		s := step{method: "GET", target: c[1], header: http.Header{"Host": {c[3]}}, status: number(c[4])}
		p := into[api.Problem](t, doors[c[2]].play(t, s)) // the answer to a program
		s.method = "look"
		s.has = "Content-Type: text/html && <h1>" + p.Title + "</h1> && Content-Security-Policy: default-src 'none';"
		got := doors[c[2]].play(t, s)
		if !strings.Contains(html.UnescapeString(got.body), p.Detail) {
			t.Errorf("%s: a browser gets no %q: %s", c[0], p.Detail, got.body)
		}
		if challenge := got.header.Get("WWW-Authenticate"); (challenge != "") != (c[4] == "401") {
			t.Errorf("%s: the challenge is %q", c[0], challenge)
		}
		if shows := strings.Contains(got.body, "<nav") || strings.Contains(got.body, "alpha"); shows == (c[5] != "") {
			t.Errorf("%s: the page shows more than the refusal: %t", c[0], shows)
		}
		style := inlineStyle.FindStringSubmatch(got.body)
		if (style != nil) != (c[5] != "") || style != nil && !strings.Contains(style[1], "--leased") {
			t.Errorf("%s: the style is in the page: %q", c[0], style)
		}
		if style != nil {
			sum := sha256.Sum256([]byte(style[1]))
			policy := got.header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				t.Errorf("%s: a browser would not take the style: %s", c[0], policy)
			}
		}
	}
}

// TestAPIRefusesWithProblems: below /v1 a browser gets the same answers as programs.
func TestAPIRefusesWithProblems(t *testing.T) {
	start(t, nil).plays(t, `
		look /v1/nowhere -> 404 Content-Type: application/problem+json
		look /v1/networks/nowhere -> 404 Content-Type: application/problem+json
	`)
}

// TestFootLeadsToTheAPI: each view links to the API, below any path that a proxy gives it.
func TestFootLeadsToTheAPI(t *testing.T) {
	h := start(t, nil)
	for target, link := range map[string]string{"/": "./docs", "/address/10.1.0.2": "../docs"} {
		_, foot, _ := strings.Cut(h.plays(t, "look "+target+" -> 200").body, "<footer>")
		if !strings.Contains(foot, `href="`+link+`"`) {
			t.Errorf("%s has no link to %s: %s", target, link, foot)
		}
	}
}
