// Package drain ends an HTTP server on a unix socket without losing a request. A request whose bytes have arrived is
// answered. Whoever connects or writes later gets an error at once, so it knows that nobody has read its request.
//
// Serve (drain.go) serves until its context ends. Then the gate (gate.go) takes no new connections: it removes the path
// of a socket that this process has bound, and accepts those that are already waiting. If another process keeps the
// socket, such as systemd, they wait there for the next daemon. The connections (conns.go) get a short time to send a
// request. Then the reading side of a silent one is closed. The kernel does that in one step: a later write of the
// client fails, and what was written before is read and answered.
package drain

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Quiet and First are the usual times that a connection has for a request after the stop. A client connects in order to
// send one, so it is only slow. Docker repeats a request that it could not send with an empty body.
const (
	Quiet = 100 * time.Millisecond
	First = time.Second
)

// Config says how a server ends.
type Config struct {
	// Quiet is the time that a connection without a request stays open after the stop, and First that of one which has
	// not sent any request yet.
	Quiet, First time.Duration
	// Longest bounds the wait for requests in progress.
	Longest time.Duration
	// Limit wraps the listener; nil: not at all. Its connections have a method NetConn that returns the inner one.
	Limit func(net.Listener) net.Listener
}

// Serve runs a server on l until ctx ends. Then it answers what has arrived, and returns nil after the last handler has
// returned. The handlers should set the header "Connection: close" from then on. A listener that is not a Bound has its
// socket from another process. Serve sets ConnState of the server.
func Serve(ctx context.Context, server *http.Server, l net.Listener, cfg Config) error {
	g := newGate(l, cfg.Quiet)
	conns := newConns()
	server.ConnState = conns.changed
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(closed)
		g.close()
	})
	limited := net.Listener(g)
	if cfg.Limit != nil {
		limited = cfg.Limit(g)
	}
	err := server.Serve(limited) // it also closes l
	stopped := time.Now()
	if !stop() {
		<-closed
		stopped, err = g.closed, g.err
	}
	if !conns.wait(stopped, cfg) {
		err = errors.Join(err, server.Close()) // the remaining clients do not send or read
		conns.wait(stopped, cfg)               // for the handlers
	}
	return err
}
