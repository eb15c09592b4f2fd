//go:build page

package page

import (
	"context"
	_ "embed"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"berth/test/lab"
)

//go:embed checks.js
var checks string

// looks are the modes in which each view is checked.
var looks = []look{
	{320, 640, "light", true}, {400, 800, "dark", true}, {400, 800, "light", false}, {800, 900, "light", true},
	{800, 900, "dark", false}, {1280, 900, "light", false}, {1280, 900, "dark", true},
}

// likeEach is how many views of one kind are checked: there may be thousands of networks, for example.
const likeEach = 2

// variable matches the segments of a path, and the parameters, that identify one view of a kind.
var variable = regexp.MustCompile(`^([0-9a-f]{16,}|[0-9a-f.:]+(/[0-9]+)?|.*[.:%].*)$`)

// kindOf is the part of an address that all views of a kind share.
func kindOf(u *url.URL) string {
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	for i, s := range segments {
		if i > 0 || variable.MatchString(s) {
			segments[i] = "*"
		}
	}
	var names []string
	for name := range u.Query() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(segments, "/") + "?" + strings.Join(names, "&")
}

// TestWalk opens the link and follows all links from there, in each mode.
func TestWalk(t *testing.T) {
	s := openSite(t)
	browsers := openBrowsers(t)
	for _, l := range looks {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			b := browsers(t, l)
			if status := b.open(s.link); status != 200 {
				t.Fatalf("the link is answered with %d", status)
			}
			if here := ask[string](b, "location.href"); strings.Contains(here, "secret") {
				t.Errorf("the secret stays in the address bar: %s", here)
			}
			views := walk(b, ask[string](b, "location.href"), func(view string) {
				check(b, view)
				stops(b, view)
			})
			t.Logf("%d views", len(views))
			if len(views) < leastViews {
				t.Errorf("only %d views were found: %q", len(views), views)
			}
		})
	}
}

// leastViews is the minimum number of views: a walk must find links.
const leastViews = 2

// walk opens a view and all views that links lead to from there. It calls see with each open view.
func walk(b *browser, from string, see func(view string)) (views []string) {
	seen, kinds := map[string]bool{from: true}, map[string]int{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		view := queue[0]
		u, err := url.Parse(view)
		lab.Must(b.t, err)
		if kinds[kindOf(u)]++; kinds[kindOf(u)] > likeEach {
			continue
		}
		if status := b.open(view); status != 200 {
			b.t.Errorf("%s is answered with %d", view, status)
			b.heard()
			continue
		}
		views = append(views, view)
		see(view)
		for _, link := range ask[[]string](b, `[...document.querySelectorAll('a[href]')].map(
			(a) => new URL(a.getAttribute('href'), document.baseURI).href.split('#')[0])`) {
			u, err := url.Parse(link)
			lab.Must(b.t, err)
			f := u.Query().Get("format")
			if seen[link] || f == "json" || f == "csv" || u.Path == "/docs" { // not a view: a description, or data
				continue
			}
			seen[link] = true
			queue = append(queue, link)
		}
	}
	return views
}

// check runs the checks on an open view, and expects no complaints of the browser.
func check(b *browser, view string) {
	b.t.Helper()
	b.holdTo(checks, view)
	b.holdTo(fits, view)
	for _, said := range b.heard() {
		b.t.Errorf("%s: %s", view, said)
	}
}

// holdTo runs a script's checks on an open view.
func (b *browser) holdTo(script, view string) {
	b.t.Helper()
	found := ask[struct{ Wrong, Checks []string }](b, script)
	if len(found.Checks) == 0 {
		b.t.Fatal("nothing was checked")
	}
	for _, wrong := range found.Wrong {
		b.t.Errorf("%s: %s", view, wrong)
	}
}

// awaits waits until an expression is true on the page, even while another page loads.
func (b *browser) awaits(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!document.body && !!("+expression+")"))
		if err == nil && is {
			return
		}
		if ctx.Err() != nil {
			b.t.Fatalf("never: %s (%v)\n%s", expression, err, ask[string](b, "document.body.innerText"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}
