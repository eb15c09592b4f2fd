package admin

import (
	"html"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// fills posts a form as a browser does from a page of its own, and returns the answer without following it.
func (h *house) fills(t *testing.T, target string, form url.Values, header map[string]string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://berth"+target,
		strings.NewReader(form.Encode()))
	must(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for name, value := range header {
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	client := *h.http
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := client.Do(req)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	return res.StatusCode, string(body), res.Header
}

var inputs = regexp.MustCompile(`<input [^>]*name="([^"]*)"[^>]*value="([^"]*)"`)

// formIn reads the form that is in a page's main part.
func formIn(t *testing.T, body string) url.Values {
	t.Helper()
	_, body, found := strings.Cut(body, `<form class="fill"`)
	if !found {
		t.Fatalf("no form: %s", body)
	}
	form := url.Values{}
	for _, m := range inputs.FindAllStringSubmatch(body, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return form
}

// plain makes a network for forms, and returns its id.
func (h *house) plain(t *testing.T) string {
	t.Helper()
	out, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "forms",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.251.0.0/24")}}})
	must(t, err)
	return out.Results[0].Network.String()
}

// reservedIn lists what is reserved in a network.
func (h *house) reservedIn(t *testing.T, network string) (all []string) {
	t.Helper()
	for one, err := range h.service.Reservations(t.Context(), ipam.AddressFilter{Network: network, Limit: 100}) {
		must(t, err)
		all = append(all, one.Owner+" "+one.Address.String()+" "+one.Note)
	}
	return all
}

// TestReserveInTheBrowser goes through both steps: the first changes nothing, the second what was shown.
func TestReserveInTheBrowser(t *testing.T) {
	h := start(t, nil)
	id := h.plain(t)
	body, _ := h.browse(t, "/change/reserve?network="+id+"&address=10.251.0.7", 200)
	form := formIn(t, body)
	form.Set("owner", "mail")
	form.Set("note", "<b>\"x\"</b>")
	status, body, _ := h.fills(t, "/change/reserve", form, nil)
	if status != 200 || !strings.Contains(body, "Nothing has been changed yet") || !strings.Contains(body, "10.251.0.7") {
		t.Fatalf("%d %s", status, body)
	}
	if got := h.reservedIn(t, id); len(got) > 0 {
		t.Fatalf("the first step reserved %q", got)
	}
	if strings.Contains(body, "<b>") {
		t.Error("a note is more than text")
	}
	status, body, header := h.fills(t, "/change/reserve", formIn(t, body), nil)
	if status != http.StatusSeeOther || header.Get("Location") != "../address/10.251.0.7?space=local" {
		t.Fatalf("%d to %q: %s", status, header.Get("Location"), body)
	}
	if got := h.reservedIn(t, id); len(got) != 1 || got[0] != `mail 10.251.0.7 <b>"x"</b>` {
		t.Errorf("reserved are %q", got)
	}
	events, err := h.service.Events(t.Context(), ipam.EventFilter{Last: 1})
	must(t, err)
	if events[0].Verb != ipam.ReservationAdded || !strings.Contains(events[0].Actor, "uid") {
		t.Errorf("the event is %+v", events[0])
	}
}

// TestCreateInTheBrowser creates a network in two steps; what cannot be read is said, and nothing is changed.
func TestCreateInTheBrowser(t *testing.T) {
	h := start(t, nil)
	for field, text := range map[string]string{"subnet": "10.252.0.0", "gateway": "router"} {
		form := url.Values{"name": {"web"}, "subnet": {"10.252.0.0/24"}, field: {text}}
		if status, body, _ := h.fills(t, "/change/create", form, nil); status != 400 || !strings.Contains(body, text) {
			t.Errorf("%s %s: %d %s", field, text, status, body)
		}
	}
	form := url.Values{"name": {"web"}, "subnet": {"10.252.0.0/24"}, "gateway": {"10.252.0.1"}}
	status, body, _ := h.fills(t, "/change/create", form, nil)
	if status != 200 || !strings.Contains(body, "Nothing has been changed yet") {
		t.Fatalf("%d %s", status, body)
	}
	if _, err := h.service.Network(t.Context(), "web"); err == nil {
		t.Fatal("the first step created it")
	}
	status, body, header := h.fills(t, "/change/create", formIn(t, body), nil)
	n, err := h.service.Network(t.Context(), "web")
	must(t, err)
	if status != http.StatusSeeOther || header.Get("Location") != "../network/"+n.ID.String() {
		t.Fatalf("%d to %q: %s", status, header.Get("Location"), body)
	}
	if n.Gateway.String() != "10.252.0.1" || len(n.Subnets[0].Pools) != 1 {
		t.Errorf("%+v", n)
	}
	body, _ = h.browse(t, "/change/reserve?network=web", 200)
	if !strings.Contains(body, "next free address, 10.252.0.2<") {
		t.Errorf("the next free address is not offered: %s", body)
	}
}

// TestForgedForms changes nothing by what another site has sent, nor by anything but what was shown.
func TestForgedForms(t *testing.T) {
	h := start(t, nil)
	id := h.plain(t)
	first := url.Values{"network": {id}, "address": {"10.251.0.7"}, "owner": {"mail"}}
	status, body, _ := h.fills(t, "/change/reserve", first, nil)
	if status != 200 {
		t.Fatal(status, body)
	}
	agreed := formIn(t, body)
	with := func(name, value string) url.Values {
		form := url.Values{}
		for k, v := range agreed {
			form[k] = v
		}
		form.Set(name, value)
		return form
	}
	for _, c := range []struct {
		name   string
		form   url.Values
		header map[string]string
		status int
	}{
		{"another site", agreed, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port", agreed, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"another site, by its origin", agreed, map[string]string{"Sec-Fetch-Site": "", "Origin": "https://evil.example"}, 403},
		{"a frame", agreed, map[string]string{"Sec-Fetch-Site": "", "Origin": "null"}, 403},
		{"nobody says", agreed, map[string]string{"Sec-Fetch-Site": ""}, 403},
		{"another address than shown", with("address", "10.251.0.8"), nil, 412},
		{"another owner than shown", with("owner", "evil"), nil, 412},
		{"another revision than shown", with("revision", "5"), nil, 412},
		{"a seal for longer", with("seal", "99"+agreed.Get("seal")), nil, 412},
		{"a seal that is none", with("seal", "x"), nil, 412},
		{"not shown yet", with("seal", ""), nil, 200},
	} {
		status, body, _ := h.fills(t, "/change/reserve", c.form, c.header)
		if status != c.status {
			t.Errorf("%s: %d, not %d: %s", c.name, status, c.status, body)
		}
	}
	if got := h.reservedIn(t, id); len(got) > 0 {
		t.Fatalf("reserved are %q", got)
	}
	if status, body, _ := h.fills(t, "/change/reserve", agreed, nil); status != http.StatusSeeOther {
		t.Errorf("what was shown: %d %s", status, body)
	}
	h.fills(t, "/change/reserve", agreed, nil)
	if got := h.reservedIn(t, id); len(got) != 1 {
		t.Errorf("what was agreed to twice reserved %q", got)
	}
}

// TestStaleForm is refused, and says what has changed since.
func TestStaleForm(t *testing.T) {
	h := start(t, nil)
	id := h.plain(t)
	body, _ := h.browse(t, "/change/reserve?network="+id+"&address=10.251.0.7", 200)
	form := formIn(t, body)
	form.Set("owner", "mail")
	_, body, _ = h.fills(t, "/change/reserve", form, nil)
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.AddExclusion{Network: id, Note: "new firewall",
		Range: mustRange(t, "10.251.0.7")})
	must(t, err)
	for step, form := range map[string]url.Values{"first": form, "second": formIn(t, body)} {
		status, body, _ := h.fills(t, "/change/reserve", form, nil)
		if status != http.StatusPreconditionFailed || !strings.Contains(body, "new firewall") ||
			!strings.Contains(body, "exclusion.add") {
			t.Errorf("%s step: %d %s", step, status, body)
		}
	}
	if got := h.reservedIn(t, id); len(got) > 0 {
		t.Errorf("reserved are %q", got)
	}
}

// TestPageOverTLS shows readers no forms, takes none from them, and answers to the names of the certificate alone.
func TestPageOverTLS(t *testing.T) {
	w := startTLS(t, nil)
	id := w.plain(t)
	admin, reader := bearer(w.token(t, "ops", api.RoleAdmin, 0)), bearer(w.token(t, "look", api.RoleReadOnly, 0))
	form := url.Values{"network": {id}, "address": {"10.251.0.7"}, "owner": {"mail"}}
	headers := map[string][]string{"admin": admin, "reader": reader}
	for c := range ipamtest.Rows(6, `
		an admin's form | GET | /change/reserve?network=$id | admin | | 200
		an admin's first step | POST | /change/reserve | admin | | 200
		a reader's form | GET | /change/reserve?network=$id | reader | | 403
		a reader's first step | POST | /change/reserve | reader | | 403
		a reader's view | GET | / | reader | | 200
		a view under a name of the certificate | GET | / | reader | 127.0.0.1 | 200
		a view under another name | GET | / | reader | evil.example | 421
		a form under another name | POST | /change/reserve | admin | evil.example | 421
		the API under another name | GET | /v1/status | reader | evil.example | 200
	`) {
		req, err := http.NewRequestWithContext(t.Context(), c[1], "https://"+w.addr+strings.Replace(c[2], "$id", id, 1),
			strings.NewReader(form.Encode()))
		must(t, err)
		req.Header["Authorization"] = headers[c[3]]
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Host = c[4]
		res, err := w.client(t, who{}).Do(req)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != number(c[5]) {
			t.Errorf("%s: %s: %s", c[0], res.Status, body)
		}
	}
	for target, has := range map[string]bool{"/network/" + id: true} {
		for role, header := range map[api.Role][]string{api.RoleAdmin: admin, api.RoleReadOnly: reader} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+w.addr+target, nil)
			must(t, err)
			req.Header["Authorization"] = header
			res, err := w.client(t, who{}).Do(req)
			must(t, err)
			body, err := io.ReadAll(res.Body)
			must(t, err)
			res.Body.Close()
			if offers := strings.Contains(string(body), "/change/"); offers != (has && role == api.RoleAdmin) {
				t.Errorf("%s offers forms to %s: %t", target, role, offers)
			}
		}
	}
}

func mustRange(t *testing.T, text string) (r ipam.Range) {
	t.Helper()
	must(t, r.UnmarshalText([]byte(text)))
	return r
}

// TestPagePaths holds what `berth page` passes on to what there is: all views, and of the rest what says how the API is
// asked, and nothing that answers for it.
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
