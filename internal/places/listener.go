package places

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// listener gives each connection that it accepts a place.
type listener struct {
	net.Listener
	of *Places
}

// Over is a listener whose connections have these places. Whoever connects waits while on all of them something is being
// answered, or the one that yields next has just come: many that connect at once would cut one another off.
func (p *Places) Over(l net.Listener) net.Listener { return &listener{l, p} }

// Accept implements net.Listener. Where the process may open no more files, a connection yields as well.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		switch {
		case err == nil:
			return l.of.await(c)
		case !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE), !l.of.shrink():
			return nil, err
		}
	}
}

// await gives a connection a place as soon as there is one.
func (p *Places) await(c net.Conn) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open >= p.most && !p.closed {
		p.makeRoom()
	}
	if p.closed {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	return p.enter(c), nil
}

// makeRoom ends the connection that yields next, or waits until that may be another one. The lock is held.
func (p *Places) makeRoom() {
	next := p.next()
	if next == nil {
		p.free.Wait()
		return
	}
	left := moment - time.Since(next.since)
	if left <= 0 {
		next.end()
		return
	}
	defer time.AfterFunc(left, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free.Signal()
	}).Stop()
	p.free.Wait()
}

// shrink ends a connection, and tells whether there was one that yields.
func (p *Places) shrink() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := p.next()
	if next != nil {
		next.end()
	}
	return next != nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.of.mu.Lock()
	l.of.closed = true
	l.of.free.Broadcast()
	l.of.mu.Unlock()
	return l.Listener.Close()
}
