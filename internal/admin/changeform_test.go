package admin

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// TestNextFreeKeepsFields: the button that fills in a free address keeps the other fields. Enter still presses the
// first button, which shows the change.
func TestNextFreeKeepsFields(t *testing.T) {
	h := start(t, nil)
	body := h.plays(t, `
		edit {"op": "network.create", "name": "shop", "subnets": [{"cidr": "10.251.0.0/24", "pool": true}]} -> 200
		look /change/reserve?network=shop -> 200 <button name="next" value="10.251.0.1" formnovalidate>
	`).body
	first, rest, _ := strings.Cut(body[strings.Index(body, formStart):], "<button")
	if strings.Contains(first, "next free") || !strings.HasPrefix(rest, ">Show what would change<") {
		t.Errorf("Enter does not show what would change: %s", body)
	}
	const note = `for "the" <shop>`
	for _, owner := range []string{"mail", ""} {
		h.plays(t, `agree /change/reserve owner=$OWNER&next=10.251.0.1&note=$NOTE -> 200 without role="alert"`,
			"$OWNER", owner, "$NOTE", url.QueryEscape(note))
		if h.form.Get("address") != "10.251.0.1" || h.form.Get("owner") != owner || h.form.Get("note") != note {
			t.Errorf("owner %q: %v", owner, h.form)
		}
		h.form.Del("address")
	}
	h.plays(t, `GET /v1/reservations -> 200 "reservations":[]`)
}

var (
	alerts  = regexp.MustCompile(`<p class="alert"[^>]*>.*?</p>`)
	noHints = regexp.MustCompile("--[a-z]|`berth|\\b(Network|Elastic)[A-Z]\\w+")
)

// TestRefusalsOfForms: a refusal on the page has no code and no flag or command of berth. If a form helps, the
// page names the form.
func TestRefusalsOfForms(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	h.plays(t, `
		edit {"op": "network.create", "name": "roam", "type": "dynamic", "subnets": [{"cidr": "10.253.0.0/24"}]},
			{"op": "reservation.add", "network": "shop", "owner": "two", "interface": 1,
			"wishes": [{"slot": 0, "address": "10.251.0.50"}]} -> 200
	`)
	for c := range ipamtest.Rows(3, `
		reserve | address=10.251.0.15&owner=db | is excluded by 10.251.0.14-10.251.0.17 (printers); remove that
		reserve | address=10.251.0.1&owner=db | 10.251.0.1 is held by
		reserve | address=10.251.0.8&owner=db | ask for another address, or release that address first
		reserve | address=10.251.0.9&owner=db | ask for another address, or release that address first
		reserve | address=10.251.0.7&owner=mail | already (0:ip0); release that address first
		reserve | address=10.251.0.7&owner=two | an owner has one reservation per network
		reserve | address=10.9.0.7&owner=db | 10.9.0.7
		reserve | address=10.251.0.0&owner=db | 10.251.0.0
		reserve | network=roam&address=10.253.0.7&owner=db | dynamic
		exclude | range=10.9.0.7 | 10.9.0.7
		exclude | range=10.251.0.1 | is the gateway
		end-exclusion | range=10.251.0.40 | no exclusion
		release | address=10.251.0.60 | it has no holder
		create | name=shop&subnet=10.252.0.0/24 | shop
		create | name=web&subnet=10.251.0.0/25 | overlap
		create | name=web&subnet=10.252.0.0/24&gateway=10.9.0.1 | the gateway 10.9.0.1 is
		add-subnet | subnet=10.251.0.0/25 | overlap
		add-pool | range=10.9.0.0/28 | 10.9.0.0
		add-pool | range=10.251.0.0/28&name=- | -
		remove | | 10.251.0.8 is reserved for mail; release that address first
	`) {
		if !strings.Contains(c[1], "network=") {
			c[1] += "&network=" + id
		}
		got := h.send(t, step{method: "fill", target: "/change/" + c[0], body: c[1]})
		text := html.UnescapeString(alerts.FindString(got.body))
		if got.status < 400 || !strings.Contains(text, c[2]) || noHints.MatchString(text) {
			t.Errorf("%s %s: %d, %q", c[0], c[1], got.status, text)
		}
	}
}
