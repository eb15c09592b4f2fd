//go:build page

package page

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"berth/test/lab"
)

var shots = flag.String("shots", "", "a directory for the pictures of docs/page.md")

// mostBytes is the largest size of a picture in the repository.
const mostBytes = 60_000

// TestShots takes the pictures of docs/page.md, in the size shown there.
func TestShots(t *testing.T) {
	s := openWith(t, (*site).shop)
	browsers := openBrowsers(t)
	dir := *shots
	if dir == "" {
		dir = t.TempDir()
	}
	for _, c := range []struct {
		name string
		look look
		to   []string // texts of the links to follow
	}{
		{"page-networks", look{1100, 520, "light", true}, nil},
		{"page-subnet", look{1100, 760, "light", true}, []string{"shop-web", "10.20.0.0/24"}},
		{"page-narrow", look{320, 640, "dark", true}, []string{"shop-web", "10.20.0.0/24"}},
	} {
		b := browsers(t, c.look)
		b.open(s.link)
		for _, text := range c.to {
			b.follow(text)
		}
		if c.look.width < 400 {
			b.do(chromedp.Evaluate[chromedp.Void]("document.querySelector('figure').scrollIntoView()"))
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		lab.Must(t, err)
		shown, err := png.Decode(bytes.NewReader(picture))
		lab.Must(t, err)
		if size := shown.Bounds().Size(); int64(size.X) != c.look.width || int64(size.Y) != c.look.height {
			t.Errorf("%s is %v", c.name, size)
		}
		picture = indexed(t, shown)
		if len(picture) > mostBytes {
			t.Errorf("%s has %d bytes, of %d", c.name, len(picture), mostBytes)
		}
		lab.Must(t, os.WriteFile(filepath.Join(dir, c.name+".png"), picture, 0o644))
	}
}

// indexed is a picture reduced to its 256 most frequent colours. It is much smaller and looks the same.
func indexed(t *testing.T, shown image.Image) []byte {
	t.Helper()
	counts := map[color.Color]int{}
	for y := range shown.Bounds().Dy() {
		for x := range shown.Bounds().Dx() {
			counts[shown.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	to := image.NewPaletted(shown.Bounds(), color.Palette(colours[:min(len(colours), 256)]))
	draw.Draw(to, to.Rect, shown, image.Point{}, draw.Src)
	var out bytes.Buffer
	lab.Must(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}

// follow follows the first link that begins with a text.
func (b *browser) follow(text string) {
	b.t.Helper()
	to := ask[string](b, `[...document.querySelectorAll('main a[href]')].filter(
		(a) => a.textContent.trim().startsWith(`+quoted(text)+`)).map((a) => a.href)[0] || ''`)
	if to == "" {
		b.t.Fatalf("no link %q: %s", text, ask[string](b, "document.body.innerText"))
	}
	if status := b.open(to); status != 200 {
		b.t.Fatalf("%s is answered with %d", to, status)
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }
