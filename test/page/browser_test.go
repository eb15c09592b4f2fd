//go:build page

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"berth/test/lab"
)

// look is a mode in which a page is viewed.
type look struct {
	width, height int64
	scheme        string // dark or light
	scripts       bool
}

func (l look) String() string {
	with := "without"
	if l.scripts {
		with = "with"
	}
	return fmt.Sprintf("%d px, %s, %s scripts", l.width, l.scheme, with)
}

// browser is a page of a chromium, with its complaints.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

// openBrowsers starts a chromium. Each call of the returned function opens a page with separate cookies.
func openBrowsers(t *testing.T) func(t *testing.T, l look) *browser {
	t.Helper()
	home, err := os.MkdirTemp("", "berth-chromium")
	lab.Must(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(home), chromedp.Env("HOME="+home),
		chromedp.Flag("disable-dev-shm-usage", true), // a container's /dev/shm is small
		chromedp.Flag("hide-scrollbars", false), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.WSURLReadTimeout(time.Minute))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // chromium refuses a sandbox as root
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	first, endFirst := chromedp.NewContext(ctx)
	if err := chromedp.Do(first); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	t.Cleanup(func() { // waits for its end, so that its files can be removed
		lab.Check(t, chromedp.Cancel(first))
		endFirst()
		end()
		lab.Check(t, os.RemoveAll(home))
	})
	return func(t *testing.T, l look) *browser {
		t.Helper()
		ctx, end := chromedp.NewContext(first, chromedp.WithNewBrowserContext())
		t.Cleanup(end)
		b := &browser{t: t, ctx: ctx}
		lab.Must(t, chromedp.Listen(ctx, b.hear))
		tell(b, log.Enable, cdp.Empty{})
		tell(b, network.Enable, network.EnableParams{})
		tell(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width,
			Height: l.height, DeviceScaleFactor: 1})
		tell(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		tell(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !l.scripts})
		return b
	}
}

// tell sends a command to the browser.
func tell[P, R any](b *browser, cmd cdp.Command[P, R], params P) R {
	b.t.Helper()
	answer, err := chromedp.Call(b.ctx, cmd, params)
	lab.Must(b.t, err)
	return answer
}

// do runs actions, with half a minute for each.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, a := range actions {
		ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
		err := chromedp.Do(ctx, a)
		cancel()
		lab.Must(b.t, err)
	}
}

// hear records a page's complaints, and its requests to other hosts.
func (b *browser) hear(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded: // blocked by the policy, not found and so on
		if e.Entry.Level != log.EntryLevelVerbose && e.Entry.Level != log.EntryLevelInfo {
			b.complain("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *runtime.EventExceptionThrown:
		b.complain("exception: %s at %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		var said []string
		for _, a := range e.Args {
			said = append(said, string(a.Value))
		}
		b.complain("console: %s", strings.Join(said, " "))
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Hostname() != "127.0.0.1" {
			b.complain("it asks for %s", e.Request.URL)
		}
	}
}

func (b *browser) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, fmt.Sprintf(format, args...))
}

// heard returns the complaints since the last call.
func (b *browser) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.complaints
	b.complaints = nil
	return all
}

// open goes to a view and returns the status of its answer.
func (b *browser) open(address string) int64 {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	res, err := chromedp.RunResponse(ctx, chromedp.Navigate(address))
	if err != nil {
		b.t.Fatalf("%s: %v", address, err)
	}
	return res.Status
}

// ask evaluates an expression as the browser, not as the page: it also works without scripts.
func ask[T any](b *browser, expression string) (answer T) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("JSON.stringify("+expression+")"))
	if err != nil {
		b.t.Fatalf("%.80s: %v", expression, err)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		b.t.Fatalf("%.80s is %s: %v", expression, text, err)
	}
	return answer
}
