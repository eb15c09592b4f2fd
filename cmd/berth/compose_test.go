package main

import "testing"

// TestComposePage runs the examples of docs/compose.md, on the Compose file that it shows.
func TestComposePage(t *testing.T) {
	runPage(t, "compose.md", 12, map[string]string{"yaml": "compose.yaml"})
}
