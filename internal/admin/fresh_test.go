package admin

import (
	"bufio"
	"html"
	"regexp"
	"strings"
	"testing"
)

// TestPageIsToldOfChanges follows the link of a view, hears of a change made after the view was drawn, and gets an
// end when the server ends.
func TestPageIsToldOfChanges(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	body := h.plays(t, `look / -> 200 <script src="./live.js?v=`).body
	found := regexp.MustCompile(`<main[^>]* data-live="([^"]*)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("the view has no link to what changes: %s", body)
	}
	h.plays(t, `edit {"op": "network.create", "name": "fresh", "subnets": [{"cidr": "10.250.0.0/24"}]} -> 200`)
	res, err := h.open(t, "GET "+strings.TrimPrefix(html.UnescapeString(found[1]), "."), nil)
	must(t, err)
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("it is told in a %s", kind)
	}
	lines := bufio.NewScanner(res.Body)
	for line(t, lines) != "event: changed" {
	}
	must(t, h.stop())
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("it was cut off: %v", err)
	}
}

// TestPageToldWrongly: invalid marks are refused.
func TestPageToldWrongly(t *testing.T) {
	start(t, nil).plays(t, `
		look /live?after=never -> 400
		look /live?since=1h -> 400
		look /live.js -> 200 EventSource && Content-Type: text/javascript
	`)
}
