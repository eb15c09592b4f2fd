package cli

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows a progress bar on a terminal, and nothing elsewhere.
type Progress struct {
	w     io.Writer // nil: nothing is shown
	what  string
	bar   *progressbar.ProgressBar
	first int  // of an undo: the amount at the beginning
	back  bool // it counts down, for an undo
}

// ShowProgress returns a progress bar for an operation or its undo.
func (p *Program) ShowProgress(what string, undo bool) *Progress {
	g := &Progress{what: what, back: undo}
	if undo {
		g.what = "taking back"
	}
	if f, ok := p.Err.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		g.w = f
	}
	return g
}

func (g *Progress) Set(done, total int) {
	if g.w == nil {
		return
	}
	if g.bar == nil {
		if g.back {
			g.first, total = done, done
		}
		g.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(g.w),
			progressbar.OptionSetDescription(g.what),
			progressbar.OptionShowCount(), progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish())
	}
	if g.back {
		done = g.first - done
	}
	_ = g.bar.Set(done) // if the terminal fails, nobody could see the error
}

// Shown reports whether there is a terminal for the bar.
func (g *Progress) Shown() bool { return g.w != nil }

// Say sets the text of the bar.
func (g *Progress) Say(what string) {
	if g.bar != nil {
		g.bar.Describe(what)
	}
}

// End clears the bar's line.
func (g *Progress) End() {
	if g.bar != nil {
		_ = g.bar.Clear()
	}
}
