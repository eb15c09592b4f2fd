package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/bolt"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a server on a socket, with what is behind it.
type house struct {
	server  *Server
	service *service.Service
	store   *bolt.Store
	socket  string
	temp    string
	client  *client.Client
	http    *http.Client // for what the client does not ask
	stop    func() error // ends Serve and returns what it answered; called at the end of the test unless before
}

// start serves on a fresh state. edit may change the server before it begins.
func start(t testing.TB, edit func(*Server)) *house {
	t.Helper()
	h := &house{socket: filepath.Join(t.TempDir(), "admin.sock"), temp: t.TempDir()}
	var err error
	if h.store, err = bolt.Open(t.Context(),
		bolt.Config{Path: filepath.Join(h.temp, "berth.db"), NoSync: true}); err != nil {
		t.Fatal(err)
	}
	if h.service, err = service.Open(t.Context(), service.Config{Store: h.store, Host: "alpha"}); err != nil {
		t.Fatal(err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	var asked Service = h.service
	if overTwo {
		asked = newJoined(t, h)
	}
	h.server = New(Config{Service: asked, Log: logrus.NewEntry(quiet), GID: -1, TempDir: h.temp,
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
	h.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	}}}
	h.serve(t)
	return h
}

func (h *house) serve(t testing.TB) {
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

// open asks with a body of JSON, if any, and returns the answer, whose body is the caller's to close. A refusal is an
// *api.Problem.
func (h *house) open(ctx context.Context, method, target string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://berth"+target, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", api.JSONType)
	}
	res, err := h.http.Do(req)
	if err != nil || res.StatusCode == http.StatusOK {
		return res, err
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

// refusal reads a problem.
func refusal(res *http.Response) error {
	p := new(api.Problem)
	if err := json.NewDecoder(res.Body).Decode(p); err != nil || p.Code == "" {
		return fmt.Errorf("%s is no problem: %w", res.Status, err)
	}
	return p
}

// furnish makes a space of its own, subnets of both families, and every kind of lease, held and remembered.
func (h *house) furnish(t *testing.T) {
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

// number reads a cell of a table.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
