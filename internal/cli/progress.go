package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Progress shows a progress bar on a terminal, and nothing elsewhere.
type Progress struct {
	w     io.Writer // nil: nothing is shown
	what  string
	first int  // of an undo: the amount at the beginning
	back  bool // it counts down, for an undo
	shown bool // Set was called since the last End
}

// ShowProgress returns a progress bar for an operation or its undo.
func (p *Program) ShowProgress(what string, undo bool) *Progress {
	g := &Progress{what: what, back: undo}
	if undo {
		g.what = "undoing"
	}
	if f, ok := p.Stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		g.w = f
	}
	return g
}

// Set shows how much is done of the total. For an undo, done counts down, and the total is its first value.
func (g *Progress) Set(done, total int) {
	if g.back {
		if !g.shown {
			g.first = done
		}
		done, total = g.first-done, g.first
	}
	g.shown = true
	if g.w == nil {
		return
	}
	const width = 30
	full := width
	if total > 0 {
		full = min(width*done/total, width)
	}
	// If the terminal fails, nobody could see the error.
	fmt.Fprintf(g.w, "\r\033[K%s [%-*s] %d/%d", g.what, width, strings.Repeat("=", full), done, total)
}

// Shown reports whether there is a terminal for the bar.
func (g *Progress) Shown() bool { return g.w != nil }

// Say sets the text of the bar, from the next Set on.
func (g *Progress) Say(what string) { g.what = what }

// End clears the bar's line.
func (g *Progress) End() {
	if g.w != nil && g.shown {
		fmt.Fprint(g.w, "\r\033[K")
	}
	g.shown = false
}
