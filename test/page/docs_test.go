//go:build page

package page

import (
	"net/url"
	"testing"

	"berth/test/lab"
)

// TestDocs holds the description of the API, which is a page of its own, to the same checks as each view.
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
