package cli

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows on a terminal how far something is; elsewhere it shows nothing.
type Progress struct {
	w     io.Writer // nil: nothing is shown
	what  string
	bar   *progressbar.ProgressBar
	first int  // of what is taken back: how much there was
	back  bool // it counts down
}

// ShowProgress shows how far something is.
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
	_ = g.bar.Set(done) // a terminal that takes nothing: there is nobody to tell
}

// Shown tells whether there is a terminal on which it is shown.
func (g *Progress) Shown() bool { return g.w != nil }

// Say has the bar say what is done at the moment.
func (g *Progress) Say(what string) {
	if g.bar != nil {
		g.bar.Describe(what)
	}
}

// End clears the line of the bar.
func (g *Progress) End() {
	if g.bar != nil {
		_ = g.bar.Clear()
	}
}
