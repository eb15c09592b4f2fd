package admin

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestWhoAsDescribed asks in every way, and is refused in every other.
func TestWhoAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	router, _ := h.planned(t)
	h.play(t, router,
		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/db/1",
			"wishes": [{"slot": 0, "address": "192.0.2.9"}]}`, 200, ""))
	h.play(t, router, made(`{"op": "reservation.remove", "network": "net1", "owner": "shop/db/1"}`, 200, ""))
	soon := url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	for _, s := range []step{
		{"GET", "/v1/who?address=10.1.0.2", "", 200, `"kind":"automatic"`, nil},
		{"GET", "/v1/who?address=10.1.0.1", "", 200, `"kind":"gateway"`, nil},
		{"GET", "/v1/who?address=10.1.0.100", "", 200, `"kind":"auxiliary"`, nil},
		{"GET", "/v1/who?mac=02:00:00:00:00:02", "", 200, `"until":"`, nil},
		{"GET", "/v1/who?mac=02-00-00-00-00-01", "", 200, `"name":"web"`, nil},
		{"GET", "/v1/who?name=web", "", 200, `"by":"engine"`, nil},
		{"GET", "/v1/who?name=shop/db/1", "", 200, `"what":"reservation"`, nil},
		{"GET", "/v1/who?name=shop%2Fdb%2F1", "", 200, `"ended_by":"`, nil},
		{"GET", "/v1/who?name=web&space=lab&at=" + soon, "", 200, `"space":"lab"`, nil},
		{"GET", "/v1/who?name=web&space=local", "", 200, `{"tenures":[]}`, nil},
		{"GET", "/v1/who?name=web&at=2020-01-01T00:00:00Z", "", 200, `{"tenures":[]}`, nil},
		{"GET", "/v1/who?name=nobody", "", 200, `{"tenures":[]}`, nil},
		{"GET", "/v1/who?address=203.0.113.9", "", 200, `{"tenures":[]}`, nil},
	} {
		h.play(t, router, s)
	}
	for query, want := range map[string]string{
		"": "one of an address, a MAC and a name", "space=lab": "one of", "address=10.1.0.2&name=web": "one of",
		"mac=02:00:00:00:00:01&name=web": "one of", "name=": "one of",
		"address=10.1.0": "parameter address", "address=::ffff:10.1.0.2": "parameter address",
		"mac=02:00": "is a MAC address", "name=web&at=yesterday": "RFC 3339",
		"name=web&name=db": "given 2 times", "owner=web": `no parameter "owner"`,
	} {
		p := h.play(t, router, step{"GET", "/v1/who?" + query, "", 400, "", nil}).problem(t)
		if p.Code != api.CodeInvalid || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %s %q, want %q", query, p.Code, p.Detail, want)
		}
	}
	if p := h.play(t, router,
		step{"GET", "/v1/who?name=web&space=nowhere", "", 404, "", nil}).problem(t); p.Code != api.CodeNotFound {
		t.Errorf("%+v", p)
	}
}

// The client hears what the service says, to the last field.
func TestClientWho(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	for _, f := range []ipam.WhoFilter{
		{Address: netip.MustParseAddr("10.1.0.99")},
		{MAC: ipam.MAC{2, 0, 0, 0, 0, 2}},
		{Name: "web", Space: "lab", At: time.Now().Add(time.Minute)}, // ids may be ahead of the clock
		{Name: "web", At: time.Now().Add(-time.Hour)},
	} {
		want, err := h.server.cfg.Service.Who(t.Context(), f)
		must(t, err)
		got, err := h.client.Who(t.Context(), f)
		must(t, err)
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%+v:\n%s", f, diff)
		}
		if past := !f.At.IsZero() && time.Since(f.At) > time.Minute; past != (len(got) == 0) {
			t.Errorf("%+v: %d", f, len(got))
		}
	}
	if _, err := h.client.Who(t.Context(), ipam.WhoFilter{}); problemCode(err) != api.CodeInvalid {
		t.Error(err)
	}
}
