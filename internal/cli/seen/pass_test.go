package seen

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shown is a served page, with a daemon under it that answers with handle.
type shown struct {
	link    string
	browser *http.Client
	end     func() error // ends the command as a signal does, and returns what it returned
}

func show(t *testing.T, handle http.HandlerFunc) *shown {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	daemon := &http.Server{Handler: handle, ReadHeaderTimeout: time.Minute}
	go func() { _ = daemon.Serve(l) }()
	t.Cleanup(func() { daemon.Close() })
	c := client.New(socket)
	t.Cleanup(c.Close)
	in, out := io.Pipe()
	p := cli.New("test")
	p.Out, p.Stderr = out, io.Discard
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := serve(&cli.Run{Context: ctx, Program: p, Client: c}, netip.MustParseAddrPort("127.0.0.1:0"))
		out.CloseWithError(err)
		ended <- err
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &shown{link: strings.TrimSuffix(line, "\n"), browser: &http.Client{Jar: jar, Transport: &http.Transport{}}}
	t.Cleanup(s.browser.CloseIdleConnections)
	stopped := false
	s.end = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// address is the page's address, without the secret.
func (s *shown) address() string { address, _, _ := strings.Cut(s.link, "?"); return address }

func (s *shown) get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := s.browser.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// TestPassOn: the daemon gets only requests of the page, without what the browser knows of this server.
func TestPassOn(t *testing.T) {
	var came []*http.Request
	s := show(t, func(w http.ResponseWriter, r *http.Request) {
		came = append(came, r)
		_, _ = io.WriteString(w, "daemon")
	})
	if status, _ := s.get(t, s.address()); status != http.StatusForbidden {
		t.Errorf("without the link: %d", status)
	}
	if status, body := s.get(t, s.link); status != http.StatusOK || body != "daemon" {
		t.Fatalf("with the link: %d %q", status, body)
	}
	r := came[0]
	if r.URL.RequestURI() != "/" || r.Host != strings.Trim(strings.TrimPrefix(s.address(), "http:"), "/") {
		t.Errorf("the daemon was asked for %s at %q", r.URL, r.Host)
	}
	for _, name := range []string{"Cookie", "Origin", "Referer", "Authorization"} {
		if r.Header.Get(name) != "" {
			t.Errorf("the daemon was sent %s: %q", name, r.Header.Get(name))
		}
	}
	came = nil
	for _, path := range []string{"v1/status", "v1", "v1/edits", "metrics", "healthz", "readyz", "%76%31/status",
		"x/../v1/status", "x", "favicon.ico"} {
		if status, _ := s.get(t, s.address()+path); status != http.StatusNotFound {
			t.Errorf("/%s is answered with %d", path, status)
		}
	}
	if len(came) > 0 {
		t.Errorf("the daemon was asked for %s", came[0].URL)
	}
}

// TestFollowsUntilTheEnd: news of the daemon appear at once, and all streams end with the command.
func TestFollowsUntilTheEnd(t *testing.T) {
	gone := make(chan struct{})
	s := show(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: one\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	})
	s.get(t, s.link)
	res, err := s.browser.Get(s.address() + "live")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	if line, err := lines.ReadString('\n'); line != "data: one\n" {
		t.Fatalf("%q %v", line, err)
	}
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	<-gone
	if _, err := io.ReadAll(lines); err == nil {
		t.Error("what was followed ended as if all had been said")
	}
}

// TestDaemonGone: if the daemon is gone, the browser shows that.
func TestDaemonGone(t *testing.T) {
	s := show(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	status, body := s.get(t, s.link)
	if status != http.StatusBadGateway || !strings.Contains(body, "The daemon does not answer") {
		t.Errorf("%d %s", status, body)
	}
}
