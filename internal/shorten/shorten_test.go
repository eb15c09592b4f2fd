package shorten

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestValues: values are cut, sentences are not.
func TestValues(t *testing.T) {
	long := strings.Repeat("x", 900_000)
	for name, c := range map[string]struct {
		text string
		most int // characters that are left
		want string
	}{
		"a sentence":           {strings.Repeat("two words ", 1000), 10_000, strings.Repeat("two words ", 1000)},
		"a word":               {"the pool " + long + " is none", 9 + 201 + 8, "the pool xx"},
		"quoted":               {fmt.Sprintf("the pool %q is none", long), 9 + 201 + 8, `the pool "xx`},
		"quoted zeros":         {fmt.Sprintf("it is %q", strings.Repeat("\x00", 10_000)), 6 + 201, `it is "\x00\x00`},
		"quoted blanks":        {fmt.Sprintf("it is %q", strings.Repeat(`a "b" `, 10_000)), 6 + 201, `it is "a \"b\" a`},
		"a mark without end":   {`it is "` + long, 6 + 201, `it is "xx`},
		"marks and words":      {strings.Repeat(`"a" b `, 100), 600, strings.Repeat(`"a" b `, 100)},
		"other letters":        {"it is " + strings.Repeat("ü", 1000), 6 + 201, "it is üü"},
		"blanks of other kind": {strings.Repeat("a\u2003", 300), 600, strings.Repeat("a\u2003", 300)},
		"no UTF-8":             {strings.Repeat("\xff", 1000), 201, "\xff\xff"},
	} {
		got := Values(c.text)
		if n := utf8.RuneCountInString(got); n > c.most || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %d characters are left: %.300s", name, n, got)
		}
		if (got != c.text) != strings.Contains(got, "…") {
			t.Errorf("%s: nothing says that it is cut", name)
		}
	}
	if got := Text("it is " + strings.Repeat("a ", 10_000)); utf8.RuneCountInString(got) != MostText+1 {
		t.Errorf("%d characters are left of many words", utf8.RuneCountInString(got))
	}
	if got := To("äöü", 3); got != "äöü" {
		t.Error("cut too early:", got)
	}
	if got := To("äöü", 2); got != "äö…" {
		t.Error("cut to", got)
	}
	if got := To(errors.New(long).Error(), 5); got != "xxxxx…" {
		t.Error("cut to", got)
	}
}
