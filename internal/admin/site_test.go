package admin

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"berth/internal/admin/api"
)

// TestOtherSites: nothing changes that a page of another site asks for, on whichever route; what only reads is
// answered, and no browser takes an answer for something else than it says it is.
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
			if r.Method != http.MethodGet {
				changes++
				if p := refusal(res); res.StatusCode != http.StatusForbidden || codeOf(p) != api.CodeForbidden {
					t.Errorf("%s %s with %v: %d, %v", r.Method, target, header, res.StatusCode, p)
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
	if changes < 4*19 {
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
