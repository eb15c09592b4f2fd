package api

import (
	"path"
	"slices"
	"strings"
)

// pages are the first segments of the paths that are for a person with a browser: views of the page, what belongs to
// them, and what can be read about the API. A test of the room admin compares them with what there is.
var pages = []string{"", "address", "change", "docs", "elastic", "events", "find", "findings", "hosts", "icon.svg",
	"live", "live.js", "network", "openapi.yaml", "style.css", "subnet"}

// IsPage tells whether a path is one of those.
func IsPage(asked string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(asked, "/"), "/")
	return asked == path.Clean(asked) && slices.Contains(pages, first)
}
