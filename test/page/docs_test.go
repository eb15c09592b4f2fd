//go:build page

package page

import (
	"net/url"
	"testing"

	"berth/test/lab"
)

// TestDocs runs the checks of each view on the API description, which is a separate page.
func TestDocs(t *testing.T) {
	s := openSite(t)
	browsers := openBrowsers(t)
	for _, l := range looks {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := browsers(t, l)
			if status := b.open(s.link); status != 200 {
				t.Fatalf("the link is answered with %d", status)
			}
			here, err := url.Parse(ask[string](b, "location.href"))
			lab.Must(t, err)
			docs := here.ResolveReference(&url.URL{Path: "/docs"}).String()
			if status := b.open(docs); status != 200 {
				t.Fatalf("%s is answered with %d", docs, status)
			}
			check(b, docs)
			stops(b, docs)
		})
	}
}
