//go:build engine

package engine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// tally is how often an address stayed, of so many times, and how often it was one that none of those had before who
// were started together.
type tally struct{ kept, of, outside int }

func (t tally) String() string {
	text := fmt.Sprintf("%d of %d", t.kept, t.of)
	if t.outside > 0 {
		text += fmt.Sprintf(", %d new", t.outside)
	}
	return text
}

// count takes in where the same containers were before and after.
func (t *tally) count(before, after []string) {
	for i, a := range after {
		t.of++
		switch {
		case a == before[i]:
			t.kept++
		case !slices.Contains(before, a):
			t.outside++
		}
	}
}

// missed are the times when it did not stay.
func (t tally) missed() int { return t.of - t.kept }

// results is a table of what was measured: a line for each situation, a column for each way.
type results struct {
	title         string
	ways, happens []string // in the order in which they came
	mu            sync.Mutex
	cells         map[[2]string]tally
}

// add counts in what was measured of a situation in a way.
func (r *results) add(situation, way string, more tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cells == nil {
		r.cells = map[[2]string]tally{}
	}
	if !slices.Contains(r.happens, situation) {
		r.happens = append(r.happens, situation)
	}
	if !slices.Contains(r.ways, way) {
		r.ways = append(r.ways, way)
	}
	at := [2]string{situation, way}
	r.cells[at] = tally{r.cells[at].kept + more.kept, r.cells[at].of + more.of, r.cells[at].outside + more.outside}
}

// String is the table as a page of the documentation has it.
func (r *results) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	line := func(cells ...string) { fmt.Fprintf(w, "| %s\t|\n", strings.Join(cells, "\t| ")) }
	line(append([]string{r.title}, r.ways...)...)
	fmt.Fprintf(w, "|---%s|\n", strings.Repeat("\t|---", len(r.ways)))
	for _, s := range r.happens {
		cells := []string{s}
		for _, way := range r.ways {
			cell := ""
			if c, measured := r.cells[[2]string{s, way}]; measured {
				cell = c.String()
			}
			cells = append(cells, cell)
		}
		line(cells...)
	}
	if err := w.Flush(); err != nil {
		return err.Error()
	}
	return text.String()
}
