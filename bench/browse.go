package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watching is how many browsers look on while requests are timed.
const watching = 20

// browsers are programs that do what browsers do that show the page, and keep it fresh.
type browsers struct {
	http  *http.Client
	view  string
	all   []*shownView
	drawn atomic.Int64 // views that were asked for

	looking sync.WaitGroup
	stop    context.CancelFunc
	errs    chan error
}

// shownView is what one browser shows.
type shownView struct {
	news string    // the link that tells when it is old
	next time.Time // before then it is not asked for again
}

// openBrowsers has browsers load a view.
func openBrowsers(admin, view string) (*browsers, error) {
	b := &browsers{view: view, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: watching,
		DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", admin)
		}}}}
	for range watching {
		one := new(shownView)
		if err := b.show(context.Background(), one); err != nil {
			return nil, err
		}
		b.all = append(b.all, one)
	}
	return b, nil
}

// look has them ask to be told when what they show is old, as a browser does whose page comes to the front.
func (b *browsers) look() error {
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	b.errs = make(chan error, len(b.all))
	for _, one := range b.all {
		b.looking.Go(func() {
			if err := b.follow(ctx, one); ctx.Err() == nil {
				b.errs <- err
			}
		})
	}
	return nil
}

// away ends that. They show what they have shown.
func (b *browsers) away() error {
	b.stop()
	b.looking.Wait()
	b.http.CloseIdleConnections()
	select {
	case err := <-b.errs:
		return fmt.Errorf("a browser has ended early: %w", err)
	default:
		return nil
	}
}

var liveLink = regexp.MustCompile(`data-live="([^"]*)"`)

// show loads the view. A browser has a machine of its own: what it does with an answer is not done here, but for the
// look at its beginning, where the link is.
func (b *browsers) show(ctx context.Context, one *shownView) error {
	res, err := b.get(ctx, b.view)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b.drawn.Add(1)
	packed, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	head := make([]byte, 4096)
	n, err := io.ReadFull(text, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	link := liveLink.FindSubmatch(head[:n])
	if link == nil {
		return fmt.Errorf("%s tells nowhere when it is old", b.view)
	}
	one.news = strings.TrimLeft(html.UnescapeString(string(link[1])), ".")
	return nil
}

// follow loads the view again each time that it is old, as live.js does.
func (b *browsers) follow(ctx context.Context, one *shownView) error {
	res, err := b.get(ctx, one.news)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if lines.Text() != "event: changed" {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(one.next)):
		}
		begun := time.Now()
		if err := b.show(context.WithoutCancel(ctx), one); err != nil {
			return err
		}
		one.next = time.Now().Add(max(2*time.Second, 10*time.Since(begun)))
	}
	return io.ErrUnexpectedEOF
}

func (b *browsers) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://berth"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, fmt.Errorf("%s is answered with %s", path, res.Status)
	}
	return res, nil
}
