package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"berth/internal/admin/api"
)

// FuzzRequest: the answer to any request is JSON: the result, or a problem that is the client's fault.
func FuzzRequest(f *testing.F) {
	for _, s := range steps(`
		GET /v1/leases?space=local&subnet=10.0.0.0%2F8&remembered=true -> 200
		GET /v1/events?since=2026-01-31T08:00:00Z&after=AQ&last=10 -> 200
		GET /v1/events?follow=true&last=0 -> 200
		HEAD /v1/subnets?space=%00 -> 200
		POST /v1/fsck -> 200
		PUT /healthz?; -> 200
		GET /v1/networks?limit=3&after=bmV0MQ -> 200
		GET /v1/networks/net1/pools?after=MTkyLjAuMi4x -> 200
		GET /v1/reservations?owner=a/b&after=bG9jYWwKMTkyLjAuMi4x -> 200
		try {"op": "network.create", "name": "net1", "tags": {"a": "b"},
			"subnets": [{"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "pool": true}]} -> 200
		edit {"op": "network.create", "name": "net1", "quarantine": "10m", "subnets": [{"bits": 26,
			"from": "2001:db8::/32"}], "links": [{"host": "a", "mode": "bridged", "link": "br0"}]} -> 200
		edit {"op": "network.modify", "network": "net1", "tags": {"a": null}, "sticky": false,
			"mac_prefix": "aa:00:00"} -> 200
		edit {"op": "subnet.modify", "network": "net1", "subnet": "192.0.2.0/24", "cidr": "192.0.2.0/25",
			"gateway": ""} -> 200
		edit {"op": "exclusion.remove", "network": "net1", "range": "192.0.2.60+5"} -> 200
		edit {"op": "address.release", "network": "net1", "owner": "a/b", "address": "192.0.2.9"} -> 200
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10+91", "name": "front"},
			{"op": "address.take", "network": "net1", "owner": "rtr", "interface": {"number": -1, "action": "add",
			"wishes": [{"slot": 0, "pool": "front"}]}, "force": true} -> 200
		GET /v1/who?name=shop/web/1&space=local&at=2026-01-31T08:00:00Z -> 200
		GET /v1/who?mac=02-42-0a-00-00-02&address=2001:db8::1 -> 200
		GET /v1/check -> 200
		POST /v1/check {"repair": true, "only": {"host": "a", "findings": [{"kind": "unused_lease",
			"address": "192.0.2.9", "lease": 7, "pool": "", "mac": ""}], "counts": {"unused_lease": 1}}} -> 200
		PUT /v1/witness {"host": "a", "engine": "e", "taken": "2026-01-31T08:00:00Z", "networks": [{"id": "n",
			"name": "n", "driver": "berth", "subnets": [{"cidr": "192.0.2.0/24", "range": "",
			"aux": {"a": "192.0.2.9"}}]}], "containers": [{"name": "c", "endpoints": [{"network": "n",
			"mac": "02:42:0a:00:00:02", "addresses": ["192.0.2.9"]}]}]} -> 200
		try {"op": "owner.release", "owner": "shop/web", "under": true, "replaced": false} -> 200
		edit {"op": "network.create", "name": "net1", "type": "dynamic", "static": ["192.0.2.8/29"],
			"owner_rules": [{"pattern": "web-*", "owner": "shop/web/*", "pool": "web"}]} -> 200
		edit {"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "a", "for": "1h", "replace": true,
			"automatic": true, "wishes": [{"slot": 0, "family": 4, "subnet": "lan"}]}]},
			{"op": "owner.release", "owner": "a", "under": true, "replaced": true} -> 200
	`) {
		path, query, _ := strings.Cut(s.target, "?")
		f.Add(s.method, path, query, s.body)
	}
	s := New(start(f, new(watcher).join).server.cfg)
	close(s.ended) // so that a stream ends after what it already has
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target := &url.URL{Path: path, RawPath: path, RawQuery: query}
		if plain, err := url.PathUnescape(path); err == nil {
			target.Path = plain
		}
		req := &http.Request{Method: method, URL: target, Header: http.Header{"Content-Type": {api.JSONType}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		w := timedRecorder{httptest.NewRecorder()}
		s.recovered(s.mux()).ServeHTTP(w, req.WithContext(as(t.Context(), api.RoleAdmin)))
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %q?%q: status %d: %s", method, path, query, w.Code, w.Body)
		}
		if w.Code != http.StatusOK {
			var p api.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Status != w.Code {
				t.Fatalf("%s %q?%q: the refusal is no problem: %s", method, path, query, w.Body)
			}
		}
	})
}
