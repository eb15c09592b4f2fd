package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeLines: each line with berth serve that a page shows in its own block uses existing flags with valid
// values.
func TestServeLines(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	fine(t, err)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		if filepath.Base(page) == "commands.md" { // which has the help itself, in columns
			continue
		}
		text, err := os.ReadFile(page)
		fine(t, err)
		inside := false
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "```") {
				inside = !inside
			}
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "  #")
			args, is := strings.CutPrefix(line, "berth serve ")
			if !inside || !is {
				continue
			}
			seen++
			if _, err := parse(t, nil, "serve", strings.Fields(args)...); err != nil {
				t.Errorf("%s: %s: %v", page, line, err)
			}
		}
	}
	if seen < 4 {
		t.Errorf("the pages have %d such lines: the test does not see them", seen)
	}
}
