package cli

import (
	"bytes"
	"strings"
	"testing"
)

// A bar is written to a terminal and nowhere else.
func TestProgress(t *testing.T) {
	var shown bytes.Buffer
	if g := (&Program{Err: &shown}).ShowProgress("importing", false); g.w != nil {
		t.Error("a bar goes to what is no terminal")
	} else {
		g.Set(1, 2)
		g.End()
	}
	if shown.Len() > 0 {
		t.Errorf("shown: %q", &shown)
	}
	for _, back := range []bool{false, true} {
		g := &Progress{w: &shown, what: "importing", back: back}
		for _, done := range []int{40, 30, 20} {
			g.Set(done, 50)
		}
		g.End()
		text := shown.String()
		if !strings.Contains(text, "importing") || back != strings.Contains(text, "/40)") ||
			back == strings.Contains(text, "/50)") || !strings.HasSuffix(text, "\r") {
			t.Errorf("back %v: %q", back, text)
		}
		shown.Reset()
	}
}
