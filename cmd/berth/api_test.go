package main

import (
	"os"
	"strings"
	"testing"
)

// A test runs each line with curl on the page.
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
