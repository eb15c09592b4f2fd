package admin

import (
	"bufio"
	"html"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// TestPageIsToldOfChanges follows the link of a view, is told of a change that was made since it was drawn, and sees
// the end with the server's.
func TestPageIsToldOfChanges(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	body, _ := h.browse(t, "/", 200)
	found := regexp.MustCompile(`<main[^>]* data-live="([^"]*)"`).FindStringSubmatch(body)
	if found == nil || !strings.Contains(body, `<script src="./live.js?v=`) {
		t.Fatalf("the view has no link to what changes: %s", body)
	}
	_, err := h.service.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "fresh",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.250.0.0/24")}}})
	must(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"http://berth"+strings.TrimPrefix(html.UnescapeString(found[1]), "."), nil)
	must(t, err)
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s, %s", res.Status, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		must(t, err)
		if line == "event: changed\n" {
			break
		}
	}
	must(t, h.stop())
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("it was cut off: %v", err)
	}
}

// TestPageToldWrongly refuses marks that are none.
func TestPageToldWrongly(t *testing.T) {
	h := start(t, nil)
	h.browse(t, "/live?after=never", 400)
	h.browse(t, "/live?since=1h", 400)
	script, header := h.browse(t, "/live.js", 200)
	if !strings.Contains(script, "EventSource") || !strings.HasPrefix(header.Get("Content-Type"), "text/javascript") {
		t.Errorf("the script is %s: %s", header.Get("Content-Type"), script)
	}
}
