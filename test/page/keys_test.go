//go:build page

package page

import (
	"fmt"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mostStops is the most presses of the tab key on one view; later stops only repeat.
const mostStops = 60

// stop is where the focus is.
type stop struct {
	At      int  // index among all focusable elements, in document order; -1: none of them
	Seen    bool // it has a visible outline
	InView  bool
	Element string
}

const focusable = `a[href]:not([tabindex="-1"]), button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]`

// where reports where the focus is, and whether a user can see it.
const where = `(() => {
  const all = [...document.querySelectorAll(` + "`" + focusable + "`" + `)].filter((e) => e.checkVisibility());
  const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
  return {At: all.indexOf(e), Seen: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2,
    InView: r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth, Element: e.outerHTML.slice(0, 120)};
})()`

// stops walks through a view with the tab key: the focus reaches every usable element, in order, is visible, and
// moves on.
func stops(b *browser, view string) {
	b.t.Helper()
	n := ask[int](b, fmt.Sprintf("[...document.querySelectorAll(`%s`)].filter((e) => e.checkVisibility()).length",
		focusable))
	b.do(chromedp.Evaluate[chromedp.Void]("document.activeElement.blur()"))
	for i := range min(n, mostStops) {
		b.do(chromedp.KeyEvent(kb.Tab))
		s := ask[stop](b, where)
		switch {
		case s.At != i:
			b.t.Errorf("%s: stop %d is element %d of %d: %s", view, i, s.At, n, s.Element)
			return
		case !s.Seen:
			b.t.Errorf("%s: the focus is not seen: %s", view, s.Element)
		case !s.InView:
			b.t.Errorf("%s: the focus is out of view: %s", view, s.Element)
		}
	}
}
