package cli

import (
	"bytes"
	"strings"
	"testing"
)

// A bar is written to a terminal and nowhere else.
func TestProgress(t *testing.T) {
	var shown bytes.Buffer
	if g := (&Program{Stderr: &shown}).ShowProgress("importing", false); g.w != nil {
		t.Error("a bar is shown without a terminal")
	} else {
		g.Set(1, 2)
		g.End()
	}
	if shown.Len() > 0 {
		t.Errorf("shown: %q", &shown)
	}
	for _, c := range []struct {
		back       bool
		first, end string
	}{
		{false, "importing [========================      ] 40/50", "importing [============                  ] 20/50"},
		{true, "importing [                              ] 0/40", "importing [===============               ] 20/40"},
	} {
		g := &Progress{w: &shown, what: "importing", back: c.back}
		for _, done := range []int{40, 30, 20} {
			g.Set(done, 50)
		}
		g.End()
		const clear = "\r\033[K"
		text := shown.String()
		if !strings.HasPrefix(text, clear+c.first+clear) || !strings.HasSuffix(text, clear+c.end+clear) {
			t.Errorf("back %v: %q", c.back, text)
		}
		shown.Reset()
	}
}
