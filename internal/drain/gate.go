package drain

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Bound is a listener on a socket that this process has bound.
type Bound interface {
	net.Listener
	// Unlink removes the path of the socket, so that nobody can connect any more.
	Unlink() error
	SetDeadline(time.Time) error
}

// gate is a listener that can be closed without losing a connection.
type gate struct {
	net.Listener
	bound Bound // nil: another process keeps the socket
	quiet time.Duration

	mu     sync.Mutex
	closed time.Time // when close was called; zero: not yet
	err    error     // of close
}

func newGate(l net.Listener, quiet time.Duration) *gate {
	bound, _ := l.(Bound)
	return &gate{Listener: l, bound: bound, quiet: quiet}
}

// close takes no new connections. Those that have reached a socket of our own are still accepted.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = time.Now()
	if g.bound == nil {
		g.err = g.Listener.Close() // an Accept that already has a connection returns it
		return
	}
	g.err = errors.Join(g.bound.Unlink(), g.bound.SetDeadline(g.closed.Add(g.quiet)))
}

// Accept implements net.Listener. After close it returns the connections that wait. If none comes for a while, all have
// been accepted, because nobody can connect any more. Then it returns net.ErrClosed.
func (g *gate) Accept() (net.Conn, error) {
	g.renew()
	c, err := g.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) { // only close sets one
		err = net.ErrClosed
	}
	return c, err
}

// renew gives the next connection its time after close. A passed deadline would fail even if connections wait.
func (g *gate) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bound != nil && !g.closed.IsZero() {
		_ = g.bound.SetDeadline(time.Now().Add(g.quiet)) // it fails only on a closed listener, as Accept does then
	}
}
