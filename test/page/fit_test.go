//go:build page

package page

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

//go:embed fit.js
var fits string

// The tested widths, in pixels: every 16th or, under -short, 320, 560, 800, 1040 and 1280.
const narrowest, widest = 320, 1280

// TestFits: no text overlaps another or is cut off, at any width from a phone's to a desktop's.
func TestFits(t *testing.T) {
	s := openSite(t)
	browsers := openBrowsers(t)
	step := int64(16)
	if testing.Short() {
		step = 240
	}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			b := browsers(t, look{widest, 900, scheme, false})
			b.open(s.link)
			walk(b, ask[string](b, "location.href"), func(view string) {
				for width := int64(narrowest); width <= widest; width += step {
					b.resize(width)
					b.holdTo(fits, fmt.Sprintf("%s at %d px", view, width))
				}
			})
		})
	}
}

// resize sets the width of a page's window.
func (b *browser) resize(width int64) {
	b.t.Helper()
	tell(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900,
		DeviceScaleFactor: 1})
}
