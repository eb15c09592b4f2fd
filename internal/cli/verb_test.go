package cli

import (
	"strings"
	"testing"
)

// A command takes as many arguments as its usage line has, and completes no others.
func TestArgsOfUse(t *testing.T) {
	for use, counts := range map[string]string{
		"status": "0", "ls [NETWORK]": "0 1", "rm NETWORK RANGE": "2", "take NETWORK --owner OWNER": "1",
		"ip OWNER [--network NETWORK]": "1",
		"env [NETWORK] OWNER":          "1 2", "mend (--dry-run|--yes)": "0", "add NETWORK CIDR|/BITS": "2",
	} {
		cmd := Verb{Use: use}.Command(&Program{})
		var taken []string
		for n, args := range [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}} {
			err := cmd.Args(cmd, args)
			if err == nil {
				taken = append(taken, string(rune('0'+n)))
			} else if !IsUsage(err) {
				t.Errorf("%s with %d arguments: %v is not wrong usage", use, n, err)
			}
		}
		if got := strings.Join(taken, " "); got != counts {
			t.Errorf("%s takes %s arguments, want %s", use, got, counts)
		}
	}
}

type row struct{ Name, Extra string }

// A conditional column appears only for its lists. -q prints the identifying column, wherever it is.
func TestColumns(t *testing.T) {
	for _, c := range []struct {
		rows   []row
		format string
		want   string
	}{
		{[]row{{"a", ""}}, "table", "FIRST  NAME\nx      a\n"},
		{[]row{{"a", ""}, {"b", "e"}}, "table", "FIRST  NAME  EXTRA\nx      a     -\nx      b     e\n"},
		{[]row{{"a", ""}}, "quiet", "a\n"},
	} {
		var b strings.Builder
		show := &Table[row]{W: &b, format: c.format, columns: []Column[row]{
			Col("FIRST", func(*row) string { return "x" }),
			Col("NAME", func(r *row) string { return r.Name }).Names(),
			Col("EXTRA", func(r *row) string { return r.Extra }).IfAny(),
		}}
		if err := show.Rows(c.rows); err != nil || b.String() != c.want {
			t.Errorf("%v as %s: %v\n%swant\n%s", c.rows, c.format, err, &b, c.want)
		}
	}
}
