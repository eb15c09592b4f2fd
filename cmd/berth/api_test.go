package main

import (
	"os"
	"strings"
	"testing"
)

// TestAPIPage runs the examples of docs/api.md, on a daemon that is also asked over TLS.
func TestAPIPage(t *testing.T) {
	runPageOn(t, "api.md", 25, nil, "certs\nexec sh -c 'exec berth serve --plugin-socket berth.sock "+
		"--admin-listen 127.0.0.1:0 --admin-cert daemon.pem --admin-key daemon.key 2>log' &daemon&\nready\nremote log\n")
}

// Each line of the page with curl is one that is run.
func TestAPIPageRunsAll(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	fine(t, err)
	run, shown := 0, 0
	for _, e := range pageExamples(string(page)) {
		run += strings.Count(e.command, "curl ")
	}
	inside := false
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if inside {
			shown += strings.Count(line, "curl ")
		}
	}
	if run != shown || run < 20 {
		t.Errorf("%d lines with curl are shown, and %d are run", shown, run)
	}
}
