package golden

import (
	"slices"
	"testing"
)

// TestMerged: new fields are allowed, and every other difference is a loss.
func TestMerged(t *testing.T) {
	for _, c := range []struct {
		was, now    string
		lost, added int
	}{
		{`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, 0, 0},
		{`{"a":1}`, `{"a":1,"b":2}`, 0, 1},
		{`{"a":[{"b":1}]}`, `{"a":[{"b":1,"c":{"d":2}}]}`, 0, 1},
		{`{"a":1,"b":2}`, `{"a":1}`, 1, 0},
		{`{"a":1}`, `{"a":2}`, 1, 0},
		{`{"a":1767323045000049001}`, `{"a":1767323045000049002}`, 1, 0},
		{`{"a":"1"}`, `{"a":1}`, 1, 0},
		{`[1,2]`, `[1]`, 1, 0},
		{`[1]`, `[1,2]`, 1, 0},
		{`[1,2]`, `[2,1]`, 2, 0},
		{`{"a":{"b":1}}`, `{"a":null}`, 1, 0},
	} {
		var got comparison
		all := got.merged("", Plain(t, []byte(c.was)), Plain(t, []byte(c.now)))
		if len(got.lost) != c.lost || len(got.added) != c.added {
			t.Errorf("%s, then %s: lost %q, added %q", c.was, c.now, got.lost, got.added)
		}
		var again comparison
		again.merged("", all, Plain(t, []byte(c.now)))
		if c.lost == 0 && (len(again.lost) > 0 || len(again.added) > 0) {
			t.Errorf("%s, then %s: what is written of both differs from now: %q", c.was, c.now,
				slices.Concat(again.lost, again.added))
		}
	}
}
