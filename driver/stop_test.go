package driver

import (
	"context"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// held reports whether an address is leased.
func (b *bench) held(addr string) bool {
	b.t.Helper()
	for l, err := range b.service.Leases(context.Background(), ipam.LeaseFilter{}) {
		must(b.t, err)
		if l.Address.String() == addr {
			return true
		}
	}
	return false
}

// TestCloses tests that each answer ends its connection, because the engine can lose a request on a kept one.
func TestCloses(t *testing.T) {
	s := serveBench(t, newBench(t))
	for _, c := range []struct{ method, body string }{
		{"Plugin.Activate", ""},
		{"IpamDriver.GetCapabilities", ""},
		{"IpamDriver.RequestPool", `{"AddressSpace":"local"}`},
		{"IpamDriver.ReleasePool", ""}, // it is refused
		{"IpamDriver.Unknown", "{}"},
	} {
		res, err := s.client().Post("http://berth/"+c.method, "application/json", strings.NewReader(c.body))
		must(t, err)
		res.Body.Close()
		if !res.Close {
			t.Errorf("%s %s: the answer %s keeps its connection", c.method, c.body, res.Status)
		}
	}
}

// TestStopTakesBack tests that a Driver that ends takes back an address whose client has hung up, before Serve returns.
func TestStopTakesBack(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	given, gone := make(chan struct{}), make(chan struct{})
	d := New(b.config(&waitingService{b.service, given, gone}))
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, l) }()
	conn, err := net.Dial("unix", path)
	must(t, err)
	body := encode(t, map[string]any{"PoolID": p, "Address": "10.0.0.77", "Options": mac(1)})
	_, err = io.WriteString(conn, "POST /IpamDriver.RequestAddress HTTP/1.1\r\nHost: x\r\nContent-Length: "+
		strconv.Itoa(len(body))+"\r\n\r\n"+body)
	must(t, err)
	<-given
	if !b.held("10.0.0.77") {
		t.Fatal("nothing was given")
	}
	cancel()
	must(t, conn.Close())
	close(gone)
	must(t, <-ended)
	if b.held("10.0.0.77") {
		t.Error("Serve has returned, and the address of a client that hung up is still leased")
	}
}

// waitingService leases an address, and then waits before it says so.
type waitingService struct {
	Service
	given, gone chan struct{}
}

func (w *waitingService) RequestAddress(ctx context.Context, req ipam.AddressRequest) (p netip.Prefix, err error) {
	p, err = w.Service.RequestAddress(context.WithoutCancel(ctx), req)
	close(w.given)
	<-w.gone
	return p, err
}
