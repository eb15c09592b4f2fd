package doors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// engine takes and releases addresses one after the other, as Docker does when containers start and end. Each call
// must be answered, whatever else comes through the doors.
type engine struct {
	t     testing.TB
	kept  *http.Client // keeps its connection
	fresh *http.Client // opens a connection for each call
	pool  string
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	calls   int // answered calls
	full    int // how often the socket could not take a connection at once
	slowest time.Duration
	err     error
	more    chan struct{} // closed after each call
}

// newEngine starts to take addresses.
func newEngine(d *daemon) *engine {
	d.t.Helper()
	e := &engine{t: d.t, done: make(chan struct{}), more: make(chan struct{})}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx, d.plugin()) }
	e.kept = &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial}}
	e.fresh = &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	var pool struct{ PoolID string }
	request := map[string]any{"AddressSpace": "local", "Pool": "10.7.0.0/16"}
	lab.Must(d.t, lab.Call(e.kept, "RequestPool", request, &pool))
	e.pool = pool.PoolID
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = func() { cancel(); <-e.done; e.kept.CloseIdleConnections() }
	d.t.Cleanup(e.stop)
	go func() {
		defer close(e.done)
		for n := 0; ctx.Err() == nil; n++ {
			if err := e.takeAndGive(n); err != nil {
				e.mu.Lock()
				e.err = err
				close(e.more)
				e.mu.Unlock()
				return
			}
		}
	}()
	return e
}

// dial connects like the engine, which tries again after a second if it gets no answer (moby, pkg/plugins).
func (e *engine) dial(ctx context.Context, path string) (net.Conn, error) {
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		e.mu.Lock()
		e.full++
		e.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (e *engine) takeAndGive(n int) error {
	begun := time.Now()
	var got struct{ Address string }
	mac := fmt.Sprintf("02:42:0a:07:%02x:%02x", n>>8&0xff, n&0xff)
	if err := lab.Call(e.fresh, "RequestAddress", map[string]any{"PoolID": e.pool,
		"Options": map[string]string{"com.docker.network.endpoint.macaddress": mac}}, &got); err != nil {
		return err
	}
	addr, _, _ := net.ParseCIDR(got.Address)
	request := map[string]any{"PoolID": e.pool, "Address": addr.String()}
	if err := lab.Call(e.kept, "ReleaseAddress", request, nil); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	e.slowest = max(e.slowest, time.Since(begun))
	close(e.more)
	e.more = make(chan struct{})
	return nil
}

// takes waits until n more addresses have been taken and released.
func (e *engine) takes(n int) error {
	late := time.After(patience)
	e.mu.Lock()
	want := e.calls + n
	e.mu.Unlock()
	for {
		e.mu.Lock()
		calls, err, more := e.calls, e.err, e.more
		e.mu.Unlock()
		if err != nil || calls >= want {
			return err
		}
		select {
		case <-more:
		case <-late:
			return fmt.Errorf("only %d of %d addresses were taken within %s", calls+n-want, n, patience)
		}
	}
}
