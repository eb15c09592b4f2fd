package driver

import (
	"context"
	"log"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// exhausted is a listener that fails once, because no file descriptor is left. Then it ends the server.
type exhausted struct {
	net.Listener
	failed bool
	end    func()
}

func (e *exhausted) Accept() (net.Conn, error) {
	if !e.failed {
		e.failed = true
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: syscall.EMFILE}
	}
	e.end()
	return e.Listener.Accept()
}

// TestServersOwnLines tests that the log of http.Server goes to the driver's log.
func TestServersOwnLines(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "plugin.sock"))
	must(t, err)
	var said strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	d := New(Config{Errors: log.New(&said, "", 0)})
	if err := d.Serve(ctx, &exhausted{Listener: l, end: cancel}); err != nil {
		t.Error(err)
	}
	if text := said.String(); !strings.Contains(text, "http: Accept error") ||
		!strings.Contains(text, "too many open files") {
		t.Errorf("it says %q", text)
	}
}
