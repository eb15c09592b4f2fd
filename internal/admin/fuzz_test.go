package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// timedRecorder is a recorder that takes deadlines, as a connection does.
type timedRecorder struct{ *httptest.ResponseRecorder }

func (timedRecorder) SetReadDeadline(time.Time) error  { return nil }
func (timedRecorder) SetWriteDeadline(time.Time) error { return nil }

// FuzzRequest: whatever is asked for, the answer is JSON: what was asked for, or a problem that is the client's fault.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/v1/leases", "space=local&subnet=10.0.0.0%2F8&remembered=true")
	f.Add("GET", "/v1/events", "since=2026-01-31T08:00:00Z&after=7&last=10")
	f.Add("GET", "/v1/events", "follow=true&last=0")
	f.Add("HEAD", "/v1/subnets", "space=%00")
	f.Add("POST", "/v1/fsck", "")
	f.Add("PUT", "/healthz", ";")
	s := New(start(f, nil).server.cfg)
	close(s.ended) // a stream ends when it has shown what is there
	f.Fuzz(func(t *testing.T, method, path, query string) {
		req := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}, Body: http.NoBody}
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
