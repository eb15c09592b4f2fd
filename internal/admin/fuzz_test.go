package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// timedRecorder is a recorder that takes deadlines, as a connection does.
type timedRecorder struct{ *httptest.ResponseRecorder }

func (timedRecorder) SetReadDeadline(time.Time) error  { return nil }
func (timedRecorder) SetWriteDeadline(time.Time) error { return nil }

// FuzzRequest: whatever is asked for, the answer is JSON: what was asked for, or a problem that is the client's fault.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/leases", "space=local&subnet=10.0.0.0%2F8&remembered=true", "")
	f.Add("GET", "/v1/events", "since=2026-01-31T08:00:00Z&after=7&last=10", "")
	f.Add("GET", "/v1/events", "follow=true&last=0", "")
	f.Add("HEAD", "/v1/subnets", "space=%00", "")
	f.Add("POST", "/v1/fsck", "", "")
	f.Add("PUT", "/healthz", ";", "")
	f.Add("GET", "/v1/networks", "limit=3&after=bmV0MQ", "")
	f.Add("GET", "/v1/networks/net1/pools", "after=MTkyLjAuMi4x", "")
	f.Add("GET", "/v1/reservations", "owner=a/b&after=bG9jYWwKMTkyLjAuMi4x", "")
	f.Add("POST", "/v1/networks", "dry_run=true", `[{"name":"net1","tags":{"a":"b"},"subnets":[{"cidr":"192.0.2.0/24","gateway":"192.0.2.1","pool":true}]}]`)
	f.Add("POST", "/v1/networks", "", `{"name":"net1","quarantine":"10m","links":[{"host":"a","mode":"bridged","link":"br0"}],"subnets":[{"bits":26,"from":"2001:db8::/32"}]}`)
	f.Add("PATCH", "/v1/networks/net1", "", `{"tags":{"a":null},"sticky":false,"mac_prefix":"aa:00:00"}`)
	f.Add("PATCH", "/v1/networks/net1/subnets/192.0.2.0%2F24", "", `{"cidr":"192.0.2.0/25","gateway":""}`)
	f.Add("DELETE", "/v1/networks/net1/exclusions/192.0.2.60+5", "", "")
	f.Add("DELETE", "/v1/networks/net1/addresses/a%2Fb", "address=192.0.2.9", "")
	f.Add("POST", "/v1/edits", "", `{"edits":[{"op":"pool.add","network":"net1","range":"192.0.2.10+91","name":"front"},{"op":"address.take","network":"net1",
		"owner":"rtr","interface":{"number":-1,"action":"add","wishes":[{"slot":0,"pool":"front"}]},"force":true}],"dry_run":false}`)
	s := New(start(f, nil).server.cfg)
	close(s.ended) // a stream ends when it has shown what is there
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		target := &url.URL{Path: path, RawPath: path, RawQuery: query}
		if plain, err := url.PathUnescape(path); err == nil {
			target.Path = plain
		}
		req := &http.Request{Method: method, URL: target, Header: http.Header{"Content-Type": {jsonType}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
		w := timedRecorder{httptest.NewRecorder()}
		s.recovered(s.mux()).ServeHTTP(w, req.WithContext(as(t.Context(), RoleAdmin)))
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %q?%q: status %d: %s", method, path, query, w.Code, w.Body)
		}
		if w.Code != http.StatusOK {
			var p Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Code == "" || p.Status != w.Code {
				t.Fatalf("%s %q?%q: the refusal is no problem: %s", method, path, query, w.Body)
			}
		}
	})
}
