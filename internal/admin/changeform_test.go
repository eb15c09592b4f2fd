package admin

import (
	"html"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestNextFreeKeepsFields: the button that fills in a free address keeps what was typed into the other fields. Enter
// still means the first button, which shows what would change.
func TestNextFreeKeepsFields(t *testing.T) {
	h := start(t, nil)
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "shop",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.251.0.0/24"), Pool: true}}})
	must(t, err)
	body, _ := h.browse(t, "/change/reserve?network=shop", 200)
	first, rest, _ := strings.Cut(body[strings.Index(body, `<form class="fill"`):], "<button")
	if strings.Contains(first, "next free") || !strings.HasPrefix(rest, ">Show what would change<") {
		t.Errorf("Enter does not show what would change: %s", body)
	}
	_, rest, found := strings.Cut(rest, `<button name="next" value="10.251.0.1" formnovalidate>`)
	if !found {
		t.Fatalf("no button for the next free address: %s %s", body, rest)
	}
	for _, owner := range []string{"mail", ""} {
		form := formIn(t, body)
		form.Set("owner", owner)
		form.Set("note", `for "the" <shop>`)
		form.Set("next", "10.251.0.1")
		status, again, _ := h.fills(t, "/change/reserve", form, nil)
		got := formIn(t, again)
		if status != http.StatusOK || got.Get("address") != "10.251.0.1" || got.Get("owner") != owner ||
			got.Get("note") != `for "the" <shop>` || strings.Contains(again, `role="alert"`) {
			t.Errorf("owner %q: %d %v: %s", owner, status, got, again)
		}
	}
	if got := h.reservedIn(t, "shop"); len(got) > 0 {
		t.Errorf("reserved are %q", got)
	}
}

var (
	alerts  = regexp.MustCompile(`<p class="alert"[^>]*>.*?</p>`)
	noHints = regexp.MustCompile("--[a-z]|`berth|\\b(Network|Elastic)[A-Z]\\w+")
)

// TestRefusalsOfForms: a refusal on the page has no code and no flag or command of berth. Where a form helps, it names
// that.
func TestRefusalsOfForms(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "roam", Type: ipam.Dynamic.String(),
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.253.0.0/24")}}},
		&ipam.AddReservation{Network: "shop", Owner: "two", Number: 1,
			Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.251.0.50")}}})
	must(t, err)
	for c := range ipamtest.Rows(3, `
		reserve | address=10.251.0.15&owner=db | is excluded with 10.251.0.14-10.251.0.17 (printers); remove that exclusion first
		reserve | address=10.251.0.1&owner=db | 10.251.0.1 is held by
		reserve | address=10.251.0.8&owner=db | ask for another address, or release that address first
		reserve | address=10.251.0.9&owner=db | ask for another address, or release that address first
		reserve | address=10.251.0.7&owner=mail | already (0:ip0); release that address first
		reserve | address=10.251.0.7&owner=two | an owner has one reservation in a network
		reserve | address=10.9.0.7&owner=db | 10.9.0.7
		reserve | address=10.251.0.0&owner=db | 10.251.0.0
		reserve | network=roam&address=10.253.0.7&owner=db | dynamic
		exclude | range=10.9.0.7 | 10.9.0.7
		exclude | range=10.251.0.1 | is the gateway
		end-exclusion | range=10.251.0.40 | no exclusion
		release | address=10.251.0.60 | nobody has it
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
		form, err := url.ParseQuery(c[1])
		must(t, err)
		status, body, _ := h.fills(t, "/change/"+c[0], form, nil)
		text := html.UnescapeString(alerts.FindString(body))
		if status < 400 || !strings.Contains(text, c[2]) || noHints.MatchString(text) {
			t.Errorf("%s %s: %d, %q", c[0], c[1], status, text)
		}
	}
}
