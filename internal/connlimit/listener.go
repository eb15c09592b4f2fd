package connlimit

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// listener admits each connection that it accepts.
type listener struct {
	net.Listener
	limit *Limit
}

// Listener returns l with this limit on its connections. If there is no room, Accept waits until a connection may be
// closed. A new connection is safe for the time of grace, or else many that connect at once would close one another.
func (l *Limit) Listener(inner net.Listener) net.Listener { return &listener{inner, l} }

// Accept implements net.Listener. It also closes a connection if the process has no more file descriptors.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return l.limit.await(c)
		case !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE), !l.limit.shrink():
			return nil, err
		}
	}
}

// await admits a connection as soon as there is room.
func (l *Limit) await(c net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && !l.closed {
		l.makeRoom()
	}
	if l.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return l.enter(c), nil
}

// makeRoom closes the next connection, or waits until another one may be next. The caller holds the lock.
func (l *Limit) makeRoom() {
	next := l.next()
	if next == nil {
		l.changed.Wait()
		return
	}
	left := grace - time.Since(next.since)
	if left <= 0 {
		next.end()
		return
	}
	defer time.AfterFunc(left, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Signal()
	}).Stop()
	l.changed.Wait()
}

// shrink closes a connection, and reports whether there was one that may be closed.
func (l *Limit) shrink() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.next()
	if next != nil {
		next.end()
	}
	return next != nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.limit.mu.Lock()
	l.limit.closed = true
	l.limit.changed.Broadcast()
	l.limit.mu.Unlock()
	return l.Listener.Close()
}
