package admin

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"
	"berth/store/storetest"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a server on a socket, with the service and the store under it.
type harness struct {
	server  *Server
	service *service.Service
	store   *bolt.Store
	socket  string
	temp    string
	client  *client.Client
	stop    func() error // ends Serve and returns its result; called at the end of the test unless before

	// Scripts send their requests to base with these headers. tags are the words of a script, and form is the form
	// of the last page.
	http   *http.Client
	base   string
	header http.Header
	tags   map[string]string
	form   url.Values
}

// start serves on a fresh state. edit may change the server before it begins.
func start(t testing.TB, edit func(*Server)) *harness {
	t.Helper()
	h := &harness{socket: filepath.Join(t.TempDir(), "admin.sock"), temp: t.TempDir(), base: "http://berth",
		tags: map[string]string{}}
	var err error
	if h.store, err = bolt.Open(t.Context(),
		bolt.Config{Path: filepath.Join(h.temp, "berth.db"), NoSync: true}); err != nil {
		t.Fatal(err)
	}
	if h.service, err = service.Open(t.Context(), service.Config{Store: h.store, Host: "alpha"}); err != nil {
		t.Fatal(err)
	}
	var asked Service = h.service
	if overTwo {
		asked = newJoined(t, h)
	}
	h.server = New(Config{Service: asked, Log: quiet(), GID: -1, TempDir: h.temp,
		Version: api.Version{Version: "v1", Host: "alpha", Driver: "berth", Drivers: []string{"berth", "berth-mac"},
			Store: "bolt", StoreID: h.store.ID(), State: h.store.Path(), PID: 7, Started: time.Now()},
		Writable: h.store.Writable,
		Save: func(context.Context) (api.SavedState, error) {
			return api.SavedState{Path: h.store.Path(), StoreID: h.store.ID(), Records: 7, Kept: h.store.Path() +
				".old", Restart: "a write failed"}, nil
		},
		Backup: h.store.Backup,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			_, _ = io.WriteString(w, "berth_build_info 1\n")
		}),
		Fsck: func(ctx context.Context) (api.FileReport, error) {
			r, err := h.store.Check(ctx)
			return api.FileReport{Path: r.Path, StoreID: r.ID, Format: r.Format, Commit: r.Commit, Size: r.Size,
				Records: r.Records}, err
		}})
	if edit != nil {
		edit(h.server)
	}
	h.client = client.New(h.socket)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	}
	h.http = &http.Client{Transport: &http.Transport{DialContext: dial}, CheckRedirect: redirected}
	h.serve(t)
	return h
}

// startFaulty serves over a store that fails on demand.
func startFaulty(t *testing.T) (*harness, *storetest.Faulty) {
	t.Helper()
	faulty := storetest.NewFaulty(storetest.NewModel())
	return start(t, func(s *Server) {
		service, err := service.Open(t.Context(), service.Config{Store: faulty, Host: "alpha"})
		must(t, err)
		s.cfg.Service = service
		s.cfg.Writable = func(ctx context.Context) error {
			return faulty.Update(ctx, func(store.Tx) error { return nil })
		}
	}), faulty
}

// redirected keeps an http.Client from following redirects.
func redirected(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// quiet is a log that discards everything.
func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

func (h *harness) serve(t testing.TB) {
	t.Helper()
	l, err := net.Listen("unix", h.socket)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.server.Serve(ctx, l) }()
	done := false
	h.stop = func() error {
		if done {
			return nil
		}
		done = true
		cancel()
		h.client.Close()
		h.http.CloseIdleConnections()
		return <-ended
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Errorf("Serve ended with %v", err)
		}
		if err := h.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// open sends a request, and returns the answer for the caller to read and close. A refusal is an *api.Problem.
func (h *harness) open(t testing.TB, asked string, body io.Reader) (*http.Response, error) {
	t.Helper()
	req := h.request(t, steps(asked + " -> 0")[0])
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(body), -1
		req.Header.Set("Content-Type", api.JSONType)
	}
	res, err := h.http.Do(req)
	if err != nil || res.StatusCode == http.StatusOK {
		return res, err
	}
	defer res.Body.Close()
	p := new(api.Problem)
	return nil, cmp.Or(json.NewDecoder(res.Body).Decode(p), error(p))
}

// stream reads the lines of an answer that stays open.
func (h *harness) stream(t testing.TB, asked string) *bufio.Scanner {
	t.Helper()
	res, err := h.open(t, asked, nil)
	must(t, err)
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return lines
}

// line is the next line of a stream.
func line(t testing.TB, lines *bufio.Scanner) string {
	t.Helper()
	if !lines.Scan() {
		t.Fatalf("the stream ended: %v", lines.Err())
	}
	return lines.Text()
}

// code is the code of a refusal, or empty.
func code(err error) string {
	var p *api.Problem
	if !errors.As(err, &p) {
		return ""
	}
	return p.Code
}

// furnish makes a space, subnets of both families, and every kind of lease, held and remembered.
func (h *harness) furnish(t *testing.T) {
	t.Helper()
	ctx := ipam.WithActor(t.Context(), "engine")
	quarantine := time.Hour
	engine := h.server.cfg.Service.(engine)
	pool, err := engine.RequestPool(ctx, ipam.PoolRequest{Space: "lab", CIDR: netip.MustParsePrefix("10.1.0.0/24"),
		Gateway: netip.MustParseAddr("10.1.0.1"), Quarantine: &quarantine, Tags: map[string]string{"team": "blue"}})
	must(t, err)
	_, err = engine.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, IPv6: true})
	must(t, err)
	for i, req := range []ipam.AddressRequest{
		{MAC: ipam.MAC{2, 0, 0, 0, 0, 1}, Name: "web"},
		{MAC: ipam.MAC{2, 0, 0, 0, 0, 2}},
		{Preferred: netip.MustParseAddr("10.1.0.99"), MAC: ipam.MAC{2, 0, 0, 0, 0, 3}},
		{Preferred: netip.MustParseAddr("10.1.0.100")},
	} {
		req.Pool = pool.ID
		got, err := engine.RequestAddress(ctx, req)
		must(t, err)
		if i == 1 {
			must(t, engine.ReleaseAddress(ctx, pool.ID, got.Addr()))
		}
	}
}

var must = ipamtest.Must
