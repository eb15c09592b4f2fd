package admin

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// shop makes a network with a gateway, a pool, an exclusion and a reservation that ends, and returns its id.
func (h *house) shop(t *testing.T) string {
	t.Helper()
	wish := func(text string) []ipam.Wish { return []ipam.Wish{{Address: netip.MustParseAddr(text)}} }
	out, err := h.service.Edit(t.Context(), ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "shop", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.251.0.0/24"),
			Gateway: netip.MustParseAddr("10.251.0.1")}}},
		&ipam.AddPool{Network: "shop", Range: mustRange(t, "10.251.0.10-10.251.0.19")},
		&ipam.AddExclusion{Network: "shop", Range: mustRange(t, "10.251.0.14-10.251.0.17"), Note: "printers"},
		&ipam.AddReservation{Network: "shop", Owner: "mail", Wishes: wish("10.251.0.8"),
			WantedTerms: ipam.WantedTerms{Until: time.Date(2040, 5, 6, 7, 8, 9, 0, time.UTC)}},
		&ipam.TakeAddress{Network: "shop", Owner: "vm", Interface: ipam.Interface{Wishes: wish("10.251.0.9")}})
	must(t, err)
	return out.Results[0].Network.String()
}

// TestQuestions: each question names all that it is about, and what is agreed to is done. The view that follows shows
// it.
func TestQuestions(t *testing.T) {
	for _, c := range []struct {
		what, fields, question, changes string // changes is in what the dry run shows
		has                             func(*ipam.NetworkInfo) bool
	}{
		{"reserve", "address=10.251.0.7&owner=db", "Reserve 10.251.0.7 in shop for db?", "reservation.add",
			func(n *ipam.NetworkInfo) bool { return n.Use.Reserved == 2 }},
		{"exclude", "range=10.251.0.32/28", "Exclude 10.251.0.32/28 in shop?", "exclusion.add",
			func(n *ipam.NetworkInfo) bool { return len(n.Subnets[0].Exclusions) == 2 }},
		{"end-exclusion", "range=10.251.0.14-10.251.0.17", "Remove the exclusion of 10.251.0.14-10.251.0.17 in shop?",
			"printers", func(n *ipam.NetworkInfo) bool { return len(n.Subnets[0].Exclusions) == 0 }},
		{"end-exclusion", "range=10.251.0.15", "Remove the exclusion of 10.251.0.15 in shop?", "exclusion.remove",
			func(n *ipam.NetworkInfo) bool { return len(n.Subnets[0].Exclusions) == 2 }},
		{"release", "address=10.251.0.8", "Release 10.251.0.8 in shop, reserved for mail?", "2040-05-06",
			func(n *ipam.NetworkInfo) bool { return n.Use.Reserved == 0 }},
		{"release", "address=10.251.0.9", "Release 10.251.0.9 in shop, held by vm?", "lease.release",
			func(n *ipam.NetworkInfo) bool { return n.Use.Leased == 1 }},
		{"add-subnet", "subnet=10.252.0.0/24&gateway=10.252.0.1", "Add subnet 10.252.0.0/24 to shop?", "subnet.create",
			func(n *ipam.NetworkInfo) bool {
				return len(n.Subnets) == 2 && n.Subnets[1].Gateway.String() == "10.252.0.1" &&
					len(n.Subnets[1].Pools) == 1
			}},
		{"add-pool", "range=10.251.0.64/28&name=web", "Add pool 10.251.0.64/28 to shop?", "web",
			func(n *ipam.NetworkInfo) bool {
				return slices.ContainsFunc(n.Subnets[0].Pools, func(p ipam.PoolPlan) bool { return p.Name == "web" })
			}},
	} {
		t.Run(c.what+" "+c.fields, func(t *testing.T) {
			h := start(t, nil)
			id := h.shop(t)
			body := h.agreesTo(t, c.what, "network="+id+"&"+c.fields, c.question)
			if !strings.Contains(body, c.changes) {
				t.Errorf("no %q: %s", c.changes, body)
			}
			n, err := h.service.Network(t.Context(), id)
			must(t, err)
			if !c.has(&n) {
				t.Errorf("%+v", n)
			}
		})
	}
}

// agreesTo goes through both steps of a form and returns what the first one shows.
func (h *house) agreesTo(t *testing.T, what, fields, question string) string {
	t.Helper()
	body, _ := h.browse(t, "/change/"+what+"?"+fields, 200)
	form := formIn(t, body)
	status, body, _ := h.fills(t, "/change/"+what, form, nil)
	if status != http.StatusOK || !strings.Contains(body, "<h1>"+question+"</h1>") ||
		!strings.Contains(body, "Nothing has been changed yet") {
		t.Fatalf("%d, not %q: %s", status, question, body)
	}
	status, after, header := h.fills(t, "/change/"+what, formIn(t, body), nil)
	if status != http.StatusSeeOther {
		t.Fatalf("%d: %s", status, after)
	}
	h.browse(t, strings.TrimPrefix(header.Get("Location"), ".."), 200)
	return body
}

// TestRemoveNetworkInTheBrowser removes a network that nobody uses. While somebody does, the form says what to do.
func TestRemoveNetworkInTheBrowser(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	for _, address := range []string{"10.251.0.8", "10.251.0.9"} {
		status, body, _ := h.fills(t, "/change/remove", url.Values{"network": {id}}, nil)
		if status != http.StatusConflict || !strings.Contains(body, address) {
			t.Errorf("%s is in use: %d %s", address, status, body)
		}
		body, _ = h.browse(t, "/change/release?network="+id+"&address="+address, 200)
		_, body, _ = h.fills(t, "/change/release", formIn(t, body), nil)
		h.fills(t, "/change/release", formIn(t, body), nil)
	}
	h.agreesTo(t, "remove", "network="+id, "Remove network shop?")
	if _, err := h.service.Network(t.Context(), id); err == nil {
		t.Error("the network is still there")
	}
}

// TestOffers: each view offers what can be done about what it shows, and nothing that is refused in any case.
func TestOffers(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	n, err := h.service.Network(t.Context(), id)
	must(t, err)
	for target, wanted := range map[string][]string{
		"/network/" + id: {"add-pool", "add-subnet", "end-exclusion", "exclude", "remove",
			"reserve"},
		"/subnet/" + n.Subnets[0].ID.String(): {"add-pool", "end-exclusion", "exclude", "reserve"},
		"/address/10.251.0.1":                 nil, // the gateway
		"/address/10.251.0.0":                 nil, // the subnet's own
		"/address/10.251.0.8":                 {"release"},
		"/address/10.251.0.9":                 {"release"},
		"/address/10.251.0.15":                {"end-exclusion"},
		"/address/10.251.0.30":                {"exclude", "reserve"},
	} {
		body, _ := h.browse(t, target, 200)
		var got []string
		for _, part := range strings.Split(body, "/change/")[1:] {
			what, _, _ := strings.Cut(part, "?")
			got = append(got, what)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, wanted) {
			t.Errorf("%s offers %q, not %q", target, got, wanted)
		}
	}
	status, body, _ := h.fills(t, "/change/release", url.Values{"network": {id}, "address": {"10.251.0.1"}}, nil)
	if status != http.StatusBadRequest || !strings.Contains(body, "10.251.0.1 is a gateway") {
		t.Errorf("the gateway: %d %s", status, body)
	}
}

// TestReservedUntil: the end of a reservation stands in each list that has it.
func TestReservedUntil(t *testing.T) {
	h := start(t, nil)
	n, err := h.service.Network(t.Context(), h.shop(t))
	must(t, err)
	_, err = h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "vips", Type: ipam.VIP.String(),
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.253.0.0/24")}}},
		&ipam.AddReservation{Network: "vips", Owner: "www",
			Wishes:      []ipam.Wish{{Address: netip.MustParseAddr("10.253.0.8")}},
			WantedTerms: ipam.WantedTerms{Until: time.Date(2040, 5, 6, 7, 8, 9, 0, time.UTC)}})
	must(t, err)
	for _, target := range []string{"/network/vips", "/address/10.251.0.8", "/subnet/" + n.Subnets[0].ID.String()} {
		if body, _ := h.browse(t, target, 200); !strings.Contains(body, `<time datetime="2040-05-06T07:08:09Z">`) {
			t.Errorf("%s does not say until when the address is reserved: %s", target, body)
		}
	}
}
