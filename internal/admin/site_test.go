package admin

import (
	"net/http"
	"regexp"
	"slices"
	"testing"

	"berth/internal/admin/api"
)

// TestOtherSites: a page of another site can change nothing, on any route. Nor can it pose as the edge by reading
// the edge's streams. Other reads are answered, and a browser takes no answer for another content type.
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
			res, err := h.http.Do(h.request(t, s)) // the answer may be a stream
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
