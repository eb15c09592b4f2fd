package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// TestMetricsNames: another site's page cannot read the metrics on the loopback through a name of its own.
func TestMetricsNames(t *testing.T) {
	h := ownName(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for c := range ipamtest.Rows(3, `
		127.0.0.1 | 127.0.0.1:9723 | 200
		127.0.0.1 | localhost:9723 | 200
		127.0.0.1 | Localhost | 200
		127.0.0.1 | | 200
		::1 | [::1]:9723 | 200
		::1 | [::1] | 200
		127.0.0.1 | evil.example:9723 | 421
		127.0.0.1 | localhost.evil.example | 421
		127.0.0.1 | 127.0.0.1.evil.example:9723 | 421
		::1 | evil.example | 421
		192.0.2.7 | berth.example:9723 | 200
	`) {
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey,
			&net.TCPAddr{IP: net.ParseIP(c[0]), Port: 9723}), http.MethodGet, "/metrics", nil)
		r.Host = c[1]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if strconv.Itoa(w.Code) != c[2] {
			t.Errorf("%q: %d", c, w.Code)
		}
	}
}
