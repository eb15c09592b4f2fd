package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestLANAsDescribed: the edge hears a question and answers it, and both are as described.
func TestLANAsDescribed(t *testing.T) {
	h := start(t, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://berth/v1/edge/lan", http.NoBody)
	must(t, err)
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	ask := ipam.LANAsk{Verb: ipam.LANRelease, Parent: "eth0", IPv6: true,
		Client: ipam.LANClient{ID: "berth:shop/web/1", Hostname: "shop-web-1", MAC: ipam.MAC{2, 0, 0, 0, 0, 1}},
		Subnet: netip.MustParsePrefix("2001:db8::/64"), Address: netip.MustParseAddr("2001:db8::7"),
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")},
		Server:    netip.MustParseAddr("fe80::1"), ServerID: "000400aa", Within: ipam.Duration(10 * time.Second)}
	want := ipam.LANAnswer{Failure: ipam.LANOutside, Error: "only elsewhere", Lease: ipam.LANLease{
		Address: netip.MustParseAddr("192.0.2.7"), Subnet: netip.MustParsePrefix("192.0.2.0/24"),
		Gateway: netip.MustParseAddr("192.0.2.1"), Server: netip.MustParseAddr("192.0.2.1"), ServerID: "00",
		Lasts: ipam.Duration(time.Hour), T1: ipam.Duration(time.Minute), T2: ipam.Duration(time.Second)},
		Answered: []ipam.LANNeighbour{{Address: netip.MustParseAddr("192.0.2.9"), MAC: ipam.MAC{2, 0, 0, 0, 0, 1}}}}
	answered := make(chan ipam.LANAnswer, 1)
	go func() {
		a, err := h.server.cfg.LAN.Ask(t.Context(), ask)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	line := readLines(t, res.Body, 1)[0]
	var heard ipam.LANAsk
	must(t, json.Unmarshal(line, &heard))
	h.validate(t, described(t, req), res, line)
	if ask.ID = heard.ID; !reflect.DeepEqual(heard, ask) {
		t.Errorf("asked  %+v\nheard  %+v", ask, heard)
	}
	want.ID = heard.ID
	body, err := json.Marshal(want)
	must(t, err)
	h.plays(t, `POST /v1/edge/lan $STRINGBODY -> 200 "ok"`, "$STRINGBODY", string(body))
	if got := <-answered; !reflect.DeepEqual(got, want) {
		t.Errorf("answered %+v\ngot      %+v", want, got)
	}
	h.plays(t, `
		POST /v1/edge/lan $STRINGBODY -> 200 "ok"
		# nobody waits any more
		POST /v1/edge/lan {"failure": 7} -> 400 invalid
		GET /v1/edge/lan?since=1 -> 400 invalid
	`, "$STRINGBODY", string(body))
}

// TestLANClient: the client's own methods are the two halves of it, and a server that ends tells its edge.
func TestLANClient(t *testing.T) {
	h := start(t, nil)
	ended := make(chan error, 1)
	go func() {
		for ask, err := range h.client.LANAsks(t.Context()) {
			if err != nil {
				ended <- err
				return
			}
			if err := h.client.AnswerLAN(t.Context(), ipam.LANAnswer{ID: ask.ID, Error: ask.Parent}); err != nil {
				t.Error(err)
			}
		}
	}()
	a, err := h.server.cfg.LAN.Ask(t.Context(), ipam.LANAsk{Parent: "eth0", Within: ipam.Duration(time.Minute)})
	if err != nil || a.Error != "eth0" {
		t.Errorf("answered %+v (%v)", a, err)
	}
	must(t, h.stop())
	if err := <-ended; err == nil || bytes.Contains([]byte(err.Error()), []byte("EOF")) {
		t.Errorf("the end is told as %v", err)
	}
}
