package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/internal/golden"
)

// TestGoldenMetrics: a metric of 1.0 keeps its name, kind and labels.
func TestGoldenMetrics(t *testing.T) {
	var all []string
	for _, row := range table() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", row.Name, row.Kind,
			strings.Join(slices.Sorted(slices.Values(row.Labels)), ","))))
	}
	golden.Names(t, "metrics.txt", all)
}
