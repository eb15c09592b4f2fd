package admin

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"berth/internal/admin/api"
)

// TestOtherSites: nothing changes that a page of another site asks for, on whichever route. Nor does it pass for the
// edge by reading what that is asked. What else only reads is answered, and no browser takes an answer for something
// else than it says it is.
func TestOtherSites(t *testing.T) {
	h := start(t, nil)
	parts := regexp.MustCompile(`\{[^}]*\}`)
	from := []map[string]string{{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
		{"Origin": "https://evil.example"}, {"Origin": "null"}}
	changes := 0
	for _, r := range slices.Concat(h.server.routes(), h.server.pageRoutes(), h.server.probes()) {
		target := parts.ReplaceAllString(r.Path, "x")
		for _, header := range from {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, r.Method, "http://berth"+target, nil)
			must(t, err)
			for name, value := range header {
				req.Header.Set(name, value)
			}
			res, err := h.http.Do(req)
			must(t, err)
			if r.Method != http.MethodGet || r.Path == api.GetEdge.Path || r.Path == api.GetLAN.Path {
				changes++
				if res.StatusCode != http.StatusForbidden { // what is answered may be a stream
					t.Errorf("%s %s with %v: %d", r.Method, target, header, res.StatusCode)
				} else if p := refusal(res); codeOf(p) != api.CodeForbidden {
					t.Errorf("%s %s with %v: %v", r.Method, target, header, p)
				}
			} else if res.StatusCode == http.StatusForbidden {
				t.Errorf("%s with %v is refused", target, header)
			}
			if got := res.Header.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("%s %s: X-Content-Type-Options is %q", r.Method, target, got)
			}
			cancel()
			_ = res.Body.Close()
		}
	}
	if changes < 4*21 {
		t.Errorf("%d requests would have changed something", changes)
	}
	for _, header := range []map[string]string{{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"},
		{"Origin": "http://berth"}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://berth/v1/fsck", nil)
		must(t, err)
		for name, value := range header {
			req.Header.Set(name, value)
		}
		res, err := h.http.Do(req)
		must(t, err)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("with %v: %d", header, res.StatusCode)
		}
	}
}

func codeOf(err error) string {
	if p, ok := err.(*api.Problem); ok {
		return p.Code
	}
	return ""
}
