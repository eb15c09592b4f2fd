package admin

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestLANAsDescribed: the edge receives a question and answers it. Both are as described.
func TestLANAsDescribed(t *testing.T) {
	h := start(t, nil)
	lines := h.stream(t, "GET /v1/edge/lan")
	ask := outOfJSON[ipam.LANAsk](`{"verb": "release", "parent": "eth0", "ipv6": true,
		"client": {"id": "berth:shop/web/1", "hostname": "shop-web-1", "mac": "02:00:00:00:00:01"},
		"subnet": "2001:db8::/64", "address": "2001:db8::7", "addresses": ["192.0.2.9"], "server": "fe80::1",
		"server_id": "000400aa", "within": "10s"}`)
	want := outOfJSON[ipam.LANAnswer](`{"failure": "outside", "error": "only elsewhere", "lease": {
		"address": "192.0.2.7", "subnet": "192.0.2.0/24", "gateway": "192.0.2.1", "server": "192.0.2.1",
		"server_id": "00", "lasts": "1h", "t1": "1m", "t2": "1s"},
		"answered": [{"address": "192.0.2.9", "mac": "02:00:00:00:00:01"}]}`)
	answered := make(chan ipam.LANAnswer, 1)
	go func() {
		a, err := h.server.cfg.LAN.Ask(t.Context(), ask)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	heard := outOfJSON[ipam.LANAsk](h.asDescribed(t, "GET /v1/edge/lan", line(t, lines)))
	if ask.ID = heard.ID; !reflect.DeepEqual(heard, ask) {
		t.Errorf("asked  %+v\nheard  %+v", ask, heard)
	}
	want.ID = heard.ID
	body := inJSON(t, want)
	h.plays(t, `POST /v1/edge/lan $BODY -> 200 "ok"`, "$BODY", body)
	if got := <-answered; !reflect.DeepEqual(got, want) {
		t.Errorf("answered %+v\ngot      %+v", want, got)
	}
	h.plays(t, `
		POST /v1/edge/lan $BODY -> 200 "ok"
		# nobody waits any more
		POST /v1/edge/lan {"failure": 7} -> 400 invalid
		GET /v1/edge/lan?since=1 -> 400 invalid
	`, "$BODY", body)
}

// TestLANClient: the client has a method for each half of this. A server that ends informs its edge.
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
	if err := <-ended; err == nil || strings.Contains(err.Error(), "EOF") {
		t.Errorf("the end is told as %v", err)
	}
}
