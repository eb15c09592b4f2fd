package ipamtest

import (
	"iter"
	"strings"

	"pgregory.net/rapid"
)

// Rows returns the rows of a table of n columns, one per line, with | between the cells. Missing cells are empty.
// The last column may contain |. Empty lines and lines that begin with # are skipped.
func Rows(n int, table string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(table) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			row := make([]string, n)
			for i, cell := range strings.SplitN(line, "|", n) {
				row[i] = strings.TrimSpace(cell)
			}
			if !yield(row) {
				return
			}
		}
	}
}

// Must ends a test at an error.
func Must(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
