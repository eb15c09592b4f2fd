package admin

import (
	"net/netip"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// plain makes a network for forms, and returns its id.
func (h *harness) plain(t *testing.T) string {
	t.Helper()
	out, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "forms",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.251.0.0/24")}}})
	must(t, err)
	return out.Results[0].Network.String()
}

// TestReserveInTheBrowser: the first step changes nothing, the second makes the change that was shown.
func TestReserveInTheBrowser(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `
		look /change/reserve?network=$ID&address=10.251.0.7 -> 200
		agree /change/reserve owner=mail&note=%3Cb%3E%22x%22%3C/b%3E
			-> 200 Nothing has been changed yet && 10.251.0.7 without <b>
		GET /v1/reservations -> 200 "reservations":[]
		agree /change/reserve -> 303 Location: ../address/10.251.0.7?space=local
		GET /v1/reservations -> 200 "owner":"mail" && "address":"10.251.0.7" && \u003cb\u003e\"x\"
		GET /v1/events?last=1 -> 200 "verb":"reservation.add" && uid
	`, "$ID", h.plain(t))
}

// TestCreateInTheBrowser creates a network in two steps. Wrong input is reported and changes nothing.
func TestCreateInTheBrowser(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `
		fill /change/create name=web&subnet=10.252.0.0 -> 400 10.252.0.0
		fill /change/create name=web&subnet=10.252.0.0/24&gateway=router -> 400 router
		fill /change/create name=web&subnet=10.252.0.0/24&gateway=10.252.0.1 -> 200 Nothing has been changed yet
		GET /v1/networks/web -> 404
		agree /change/create -> 303 Location: ../network/
		GET /v1/networks/web -> 200 "gateway":"10.252.0.1" && "pools":[{
		look /change/reserve?network=web -> 200 next free address, 10.252.0.2<
	`)
}

// TestForgedForms: a form from another site changes nothing. Nor does a form that differs from what was shown.
func TestForgedForms(t *testing.T) {
	h := start(t, nil)
	h.plays(t, `fill /change/reserve network=$ID&address=10.251.0.7&owner=mail -> 200`, "$ID", h.plain(t))
	agreed := h.form
	for _, s := range steps(`
		[Sec-Fetch-Site: cross-site] agree /change/reserve -> 403
		[Sec-Fetch-Site: same-site] agree /change/reserve -> 403
		[Sec-Fetch-Site:] [Origin: https://evil.example] agree /change/reserve -> 403
		[Sec-Fetch-Site:] [Origin: null] agree /change/reserve -> 403
		# nobody says
		[Sec-Fetch-Site:] agree /change/reserve -> 403
		# another address, owner or revision than shown
		agree /change/reserve address=10.251.0.8 -> 412
		agree /change/reserve owner=evil -> 412
		agree /change/reserve revision=5 -> 412
		# a seal for longer, one that is none, and what was not shown yet
		agree /change/reserve seal=99$SEAL -> 412
		agree /change/reserve seal=x -> 412
		agree /change/reserve seal= -> 200
		GET /v1/reservations -> 200 "reservations":[]
		agree /change/reserve -> 303
	`, "$SEAL", agreed.Get("seal")) {
		h.form = agreed
		h.play(t, s)
	}
	h.form = agreed
	h.send(t, steps(`agree /change/reserve -> 0`)[0]) // a second time
	if all, err := h.client.Reservations(t.Context(), "", ""); err != nil || len(all) != 1 {
		t.Errorf("what was agreed to twice reserved %v, %v", all, err)
	}
}

// TestStaleForm: a stale form is refused, and the answer says what has changed since.
func TestStaleForm(t *testing.T) {
	h := start(t, nil)
	id := h.plain(t)
	h.plays(t, `look /change/reserve?network=$ID&address=10.251.0.7 -> 200`, "$ID", id)
	shown := h.form
	h.plays(t, `
		agree /change/reserve owner=mail -> 200
		edit {"op": "exclusion.add", "network": "forms", "range": "10.251.0.7", "note": "new firewall"} -> 200
		agree /change/reserve -> 412 new firewall && exclusion.add
	`)
	h.form = shown
	h.plays(t, `
		agree /change/reserve owner=mail -> 412 new firewall && exclusion.add
		GET /v1/reservations -> 200 "reservations":[]
	`)
}

// TestPageOverTLS: readers see no forms and can send none. The page answers only to the names in the certificate.
func TestPageOverTLS(t *testing.T) {
	w := startTLS(t, nil)
	id := w.plain(t)
	w.over(t, who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}).plays(t, `
		look /change/reserve?network=$ID -> 200
		look /network/$ID -> 200 /change/
		fill /change/reserve network=$ID&address=10.251.0.7&owner=mail -> 200
		[Host: evil.example] fill /change/reserve network=$ID&address=10.251.0.7&owner=mail -> 421
	`, "$ID", id)
	w.over(t, who{header: bearer(w.token(t, "look", api.RoleReadOnly, 0))}).plays(t, `
		look /change/reserve?network=$ID -> 403
		fill /change/reserve network=$ID&address=10.251.0.7&owner=mail -> 403
		look / -> 200
		look /network/$ID -> 200 without /change/
		[Host: 127.0.0.1] look / -> 200
		[Host: evil.example] look / -> 421
		[Host: evil.example] GET /v1/status -> 200
	`, "$ID", id)
}

// TestPagePaths compares the paths that `berth page` passes on with the routes: all views, and of the API only its
// documentation, not its operations.
func TestPagePaths(t *testing.T) {
	s := start(t, nil).server
	for _, r := range s.pageRoutes() {
		if !api.IsPage(strings.TrimSuffix(r.Path, "{$}")) {
			t.Errorf("%s is no page", r.Path)
		}
	}
	for _, r := range allRoutes(s) {
		if told := r.Path == api.GetDescription.Path || r.Path == api.GetDocs.Path; api.IsPage(r.Path) != told {
			t.Errorf("%s is a page: %t", r.Path, !told)
		}
	}
}
