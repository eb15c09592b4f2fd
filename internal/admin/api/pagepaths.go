package api

import (
	"path"
	"slices"
	"strings"
)

// pages are the first segments of the paths for a browser: views of the page and their files, and the API
// documentation. A test of package admin compares them with the routes.
var pages = []string{"", "address", "change", "docs", "elastic", "events", "find", "findings", "hosts", "icon.svg",
	"live", "live.js", "network", "openapi.yaml", "style.css", "subnet"}

// IsPage reports whether a path is one of those.
func IsPage(asked string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(asked, "/"), "/")
	return asked == path.Clean(asked) && slices.Contains(pages, first)
}
