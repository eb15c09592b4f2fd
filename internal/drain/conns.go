package drain

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// conns are the open connections of a server.
type conns struct {
	mu      sync.Mutex
	silent  map[net.Conn]silence
	changes chan struct{} // receives a token after a connection has ended
}

// silence is that of a connection that sends no request.
type silence struct {
	since time.Time // zero: a request is in progress
	first bool      // the first request is still to come
}

func newConns() *conns {
	return &conns{silent: map[net.Conn]silence{}, changes: make(chan struct{}, 1)}
}

// changed is the ConnState of the server. A connection has ended when its handler has returned.
func (a *conns) changed(c net.Conn, state http.ConnState) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch state {
	case http.StateNew, http.StateIdle:
		a.silent[c] = silence{since: time.Now(), first: state == http.StateNew}
	case http.StateActive:
		a.silent[c] = silence{}
	case http.StateClosed, http.StateHijacked:
		delete(a.silent, c)
		select {
		case a.changes <- struct{}{}:
		default:
		}
	}
}

// wait waits until all connections have ended. It gives silent ones some time after the stop, and then closes their
// reading side. It returns false if that takes too long.
func (a *conns) wait(stopped time.Time, cfg Config) bool {
	over := time.NewTimer(cfg.Longest)
	defer over.Stop()
	for {
		next, open := a.closeSilent(stopped, cfg)
		if open == 0 {
			return true
		}
		again := time.NewTimer(next)
		select {
		case <-a.changes:
		case <-again.C:
		case <-over.C:
			again.Stop()
			return false
		}
		again.Stop()
	}
}

// closeSilent closes the reading side of connections that have been silent for long enough since the stop. It returns
// the time until the next one, and the number of open connections.
func (a *conns) closeSilent(stopped time.Time, cfg Config) (next time.Duration, open int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next = cfg.Quiet
	for c, s := range a.silent {
		if s.since.IsZero() {
			continue
		}
		left := cfg.Quiet
		if s.first {
			left = cfg.First
		}
		if s.since.Before(stopped) {
			s.since = stopped
		}
		left -= time.Since(s.since)
		if left > 0 {
			next = min(next, left)
			continue
		}
		closeRead(c)
	}
	return next, len(a.silent)
}

// closeRead makes the peer's later writes fail. What it has written before can still be read.
func closeRead(c net.Conn) {
	for {
		outer, is := c.(interface{ NetConn() net.Conn })
		if !is {
			break
		}
		c = outer.NetConn()
	}
	if half, is := c.(interface{ CloseRead() error }); is {
		_ = half.CloseRead() // it fails only if the connection has ended
		return
	}
	_ = c.Close()
}
