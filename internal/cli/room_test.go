package cli

import (
	"strings"
	"testing"
)

// A shortened column gets the width that the others leave of 80 columns, and no more.
func TestRoom(t *testing.T) {
	text := strings.Repeat("0123456789", 12)
	for _, c := range []struct {
		name  int // its length
		extra string
		want  string
	}{
		{10, "short", "short"},
		{10, text[:68], text[:68]},
		{10, text[:69], text[:65] + "..."},
		{70, text, text[:9] + "..."}, // its least width
		{15, text[:20], text[:20]},
	} {
		var b strings.Builder
		show := PlainTable(&Program{}, &b, []Column[row]{
			Col("NAME", func(r *row) string { return r.Name }),
			Col("EXTRA", func(r *row) string { return r.Extra }).AtMost(12),
		}, false)
		if err := show.Rows([]row{{strings.Repeat("n", c.name), c.extra}}); err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(b.String(), "\n")
		if got := strings.Fields(line)[1]; got != c.want {
			t.Errorf("beside a name of %d of %q is shown %q, want %q", c.name, c.extra, got, c.want)
		}
	}
}
