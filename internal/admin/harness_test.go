package admin

import (
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store/bolt"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a server on a socket, with what is behind it.
type house struct {
	server  *Server
	service *ipam.Service
	store   *bolt.Store
	socket  string
	temp    string
	client  *Client
	stop    func() error // ends Serve and returns what it answered; called at the end of the test unless before
}

// start serves on a fresh state. edit may change the server before it begins.
func start(t testing.TB, edit func(*Server)) *house {
	t.Helper()
	h := &house{socket: filepath.Join(t.TempDir(), "admin.sock"), temp: t.TempDir()}
	var err error
	if h.store, err = bolt.Open(t.Context(), bolt.Config{Path: filepath.Join(h.temp, "berth.db"), NoSync: true}); err != nil {
		t.Fatal(err)
	}
	if h.service, err = ipam.Open(t.Context(), ipam.Config{Store: h.store, Host: "alpha"}); err != nil {
		t.Fatal(err)
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	var asked Service = h.service
	if overEstate {
		asked = newEstate(t, h)
	}
	h.server = New(Config{Service: asked, Log: logrus.NewEntry(quiet), GID: -1, TempDir: h.temp,
		Version: Version{Version: "v1", Host: "alpha", Store: "bolt", StoreID: h.store.ID(), State: h.store.Path(), PID: 7, Started: time.Now()},
		Backup:  h.store.Backup,
		Fsck: func(ctx context.Context) (FileReport, error) {
			r, err := h.store.Check(ctx)
			return FileReport{Path: r.Path, StoreID: r.ID, Format: r.Format, Commit: r.Commit, Size: r.Size, Records: r.Records}, err
		}})
	if edit != nil {
		edit(h.server)
	}
	h.client = NewClient(h.socket)
	h.serve(t)
	return h
}

func (h *house) serve(t testing.TB) {
	t.Helper()
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
