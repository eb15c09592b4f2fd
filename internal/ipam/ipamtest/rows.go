package ipamtest

import (
	"iter"
	"strings"

	"pgregory.net/rapid"
)

// Rows returns the rows of a table of n columns that is written in lines, with | between its cells. What a line lacks
// is empty, and of the last column | is a part. Empty lines and those that begin with # say nothing.
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
