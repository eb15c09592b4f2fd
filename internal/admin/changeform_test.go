package admin

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
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
