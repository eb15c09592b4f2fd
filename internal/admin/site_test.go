package admin

import (
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
	from := []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"https://evil.example"}}, {"Origin": {"null"}}}
	changes := 0
	for _, r := range slices.Concat(h.server.routes(), h.server.pageRoutes(), h.server.probes()) {
		for _, header := range from {
			s := step{method: r.Method, target: parts.ReplaceAllString(r.Path, "x"), header: header, status: 403}
			s.has = "X-Content-Type-Options: nosniff"
			if r.Method != http.MethodGet || r.Path == api.GetEdge.Path || r.Path == api.GetLAN.Path {
				changes++
				s.has += ` && "code":"forbidden"`
				h.play(t, s)
				continue
			}
			res, err := h.http.Do(h.request(t, s)) // what is answered may be a stream
			must(t, err)
			if res.StatusCode == s.status || res.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s with %v: %s %v", s.target, header, res.Status, res.Header)
			}
			res.Body.Close()
		}
	}
	if changes < 4*21 {
		t.Errorf("%d requests would have changed something", changes)
	}
	h.plays(t, `
		POST /v1/fsck -> 200
		[Sec-Fetch-Site: same-origin] POST /v1/fsck -> 200
		[Sec-Fetch-Site: none] POST /v1/fsck -> 200
		[Origin: http://berth] POST /v1/fsck -> 200
	`)
}
