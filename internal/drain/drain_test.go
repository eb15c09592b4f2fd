package drain

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is much longer than any test here takes. It only ends a test that hangs.
const patience = time.Minute

// bound is a socket that the test has bound.
type bound struct{ *net.UnixListener }

func (b bound) Unlink() error { return os.Remove(b.Addr().String()) }

// socket is a path on which a test listens.
type socket struct {
	t    *testing.T
	path string
	kept *os.File // the socket that is handed over, like systemd's; nil: each server binds its own
}

func newSocket(t *testing.T, handed bool) *socket {
	t.Helper()
	dir, err := os.MkdirTemp("", "drain") // the path of a socket must be short
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &socket{t: t, path: filepath.Join(dir, "s")}
	if handed {
		l := s.bind()
		s.kept, err = l.File()
		must(t, err)
		must(t, l.Close())
		t.Cleanup(func() { s.kept.Close() })
	}
	return s
}

func (s *socket) bind() *net.UnixListener {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	must(s.t, err)
	l.SetUnlinkOnClose(false)
	return l
}

// listen returns the listener of the next server.
func (s *socket) listen() net.Listener {
	if s.kept == nil {
		return bound{s.bind()}
	}
	l, err := net.FileListener(s.kept)
	must(s.t, err)
	return l
}

const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

// tally counts what became of the requests of clients.
type tally struct{ answered, refused, cut, lost atomic.Int64 }

// client sends requests until over is set, on new connections, or on one for as long as the server keeps it.
func (s *socket) client(n *tally, keeps bool, over *atomic.Bool) {
	for !over.Load() {
		conn, err := net.Dial("unix", s.path)
		if err != nil {
			n.refused.Add(1)
			if s.kept != nil {
				s.t.Errorf("a socket that stays refuses a connection: %v", err)
			}
			return
		}
		must(s.t, conn.SetDeadline(time.Now().Add(patience)))
		for s.ask(conn, n) && keeps && !over.Load() {
		}
		conn.Close()
	}
}

// ask sends one request and counts it. It returns whether the connection can have another one.
func (s *socket) ask(conn net.Conn, n *tally) bool {
	if _, err := io.WriteString(conn, request); err != nil {
		n.cut.Add(1) // the client knows that nobody has read it
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if err != nil {
		n.lost.Add(1)
		s.t.Errorf("a request that was written was not answered: %v", err)
		return false
	}
	n.answered.Add(1)
	return !res.Close
}

var rounds = flag.Int("rounds", 0, "rounds of TestStops; 0: 300, or 40 with -short")

// TestStops stops servers at any moment. Each request that clients have written is answered, by that server or, on a
// socket that is handed over, by the next one.
func TestStops(t *testing.T) {
	count := *rounds
	switch {
	case count > 0:
	case testing.Short():
		count = 40
	default:
		count = 300
	}
	for _, c := range []struct {
		name          string
		handed, keeps bool
	}{
		{name: "own socket, new connections"},
		{name: "own socket, kept connections", keeps: true},
		{name: "handed over, new connections", handed: true},
		{name: "handed over, kept connections", handed: true, keeps: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, n := newSocket(t, c.handed), &tally{}
			for range count {
				s.round(n, c.keeps)
			}
			t.Logf("answered %d, dials refused %d, writes refused %d, lost %d", n.answered.Load(), n.refused.Load(),
				n.cut.Load(), n.lost.Load())
			if n.answered.Load() == 0 {
				t.Error("nothing was answered")
			}
		})
	}
}

// round starts a server and six clients, and stops the server after some answers. A socket that is handed over gets a
// second server, which ends after the clients.
func (s *socket) round(n *tally, keeps bool) {
	l := s.listen()
	var over atomic.Bool
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() { s.client(n, keeps, &over) })
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	s.serve(ctx, l, keeps, cancel)
	if s.kept != nil {
		ctx, cancel = context.WithCancel(s.t.Context())
		s.serve(ctx, s.listen(), keeps, sync.OnceFunc(func() {
			over.Store(true)
			go func() { clients.Wait(); cancel() }()
		}))
	}
	clients.Wait()
}

// serve serves until ctx ends. It calls stop after some answers.
func (s *socket) serve(ctx context.Context, l net.Listener, keeps bool, stop func()) {
	var served atomic.Int64
	last := rand.Int64N(200)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) > last {
			stop()
		}
		if !keeps || ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
	})}
	must(s.t, Serve(ctx, server, l, Config{Quiet: 20 * time.Millisecond, First: 20 * time.Millisecond,
		Longest: patience}))
}

// TestSilent: after the stop, a connection that was silent so far may still send its request. Then its answer comes. A
// client that writes later gets an error, and no connection.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		name         string
		quiet, first time.Duration
		before       bool // it has had an answer before the stop
		write        bool
	}{
		{name: "its first request", first: patience, write: true},
		{name: "no request", quiet: patience, first: time.Millisecond},
		{name: "its second request", quiet: patience, before: true, write: true},
		{name: "no second request", quiet: time.Millisecond, first: patience, before: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSocket(t, true) // nothing has to be waited for
			ctx, cancel := context.WithCancel(t.Context())
			seen, ended := make(chan struct{}), make(chan error, 1)
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if ctx.Err() != nil {
					w.Header().Set("Connection", "close")
				}
			}), ConnContext: func(ctx context.Context, _ net.Conn) context.Context { close(seen); return ctx }}
			l := s.listen()
			go func() { ended <- Serve(ctx, server, l, Config{Quiet: c.quiet, First: c.first, Longest: patience}) }()
			conn, err := net.Dial("unix", s.path)
			must(t, err)
			defer conn.Close()
			<-seen
			var n tally
			if c.before {
				s.ask(conn, &n)
			}
			cancel()
			n = tally{}
			if c.write {
				s.ask(conn, &n)
			}
			must(t, <-ended)
			if _, err := io.WriteString(conn, request); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("a write after the end: %v", err)
			}
			if got := n.answered.Load() == 1; got != c.write {
				t.Errorf("answered: %t", got)
			}
		})
	}
}

// TestInProgress: Serve returns after the last handler, even if its client has hung up, and after a limit cuts the
// connections of clients that do not go on.
func TestInProgress(t *testing.T) {
	for _, c := range []struct {
		name            string
		longest         time.Duration
		hangsUp, stalls bool
	}{
		{name: "a slow handler", longest: patience},
		{name: "its client hangs up", longest: patience, hangsUp: true},
		{name: "its client does not go on", longest: time.Millisecond, stalls: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSocket(t, false)
			ctx, cancel := context.WithCancel(t.Context())
			begun, gone := make(chan struct{}), make(chan struct{})
			var over atomic.Bool
			server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				close(begun)
				<-ctx.Done()
				if c.stalls {
					_, _ = io.ReadAll(r.Body) // ends when the connection is cut
				}
				if c.hangsUp {
					<-gone
				}
				over.Store(true)
			})}
			l, ended := s.listen(), make(chan error, 1)
			go func() { ended <- Serve(ctx, server, l, Config{Quiet: time.Millisecond, Longest: c.longest}) }()
			conn, err := net.Dial("unix", s.path)
			must(t, err)
			defer conn.Close()
			text := request
			if c.stalls {
				text = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
			}
			_, err = io.WriteString(conn, text)
			must(t, err)
			<-begun
			cancel()
			if c.hangsUp {
				must(t, conn.Close())
				close(gone)
			}
			must(t, <-ended)
			if !over.Load() {
				t.Error("Serve returned before the handler")
			}
			if _, err := os.Lstat(s.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

// TestAcceptFails: a server whose listener fails returns the error.
func TestAcceptFails(t *testing.T) {
	s := newSocket(t, false)
	l := s.listen()
	must(t, l.Close())
	if err := Serve(t.Context(), &http.Server{}, l, Config{Quiet: time.Millisecond, Longest: patience}); !errors.Is(err,
		net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
