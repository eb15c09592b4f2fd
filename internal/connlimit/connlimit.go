// Package connlimit limits the connections of an HTTP server and still admits new clients. If there are too many, or
// too many bytes wait, it closes a connection that has no request in progress. So idle clients, slow clients and
// endless requests keep nobody out.
//
// A connection is admitted when it is accepted (listener.go). The server adds it to the context of its requests
// (Context). The handler reports when a request is complete and when it is answered (Answering); in between the
// connection is safe. Other connections are silent (never answered) or idle. The larger of the two groups loses the
// connection that has waited longest. If too many bytes wait, the connection with the most bytes is closed.
package connlimit

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// grace is the time during which a connection of a listener is safe: after it was accepted, and after each answer.
const grace = time.Second

// Limit bounds the connections of one server.
type Limit struct {
	most      int // connections
	mostBytes int // received on all of them, without those of requests in progress

	mu      sync.Mutex
	changed *sync.Cond // a connection ended or may be closed, or the listener was closed
	open    int
	bytes   int
	silent  list.List // of *conn without any answer so far, oldest first
	idle    list.List // of *conn with an answer, in the order of the last one
	closed  bool
}

// New returns a limit of most connections, on which at most mostBytes wait in all.
func New(most, mostBytes int) *Limit {
	l := &Limit{most: most, mostBytes: mostBytes}
	l.changed = sync.NewCond(&l.mu)
	return l
}

// conn is an admitted connection.
type conn struct {
	net.Conn
	limit *Limit
	in    *list.List // silent or idle; nil: a request is in progress, or the connection has ended
	at    *list.Element
	since time.Time // when it joined that list
	bytes int
	ended bool
}

// Admit adds a connection. It returns nil if the limit is reached and each connection has a request in progress.
func (l *Limit) Admit(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		next := l.next()
		if next == nil {
			return nil
		}
		next.end()
	}
	return l.enter(c)
}

// enter adds a connection. The caller holds the lock.
func (l *Limit) enter(c net.Conn) *conn {
	one := &conn{Conn: c, limit: l}
	l.open++
	one.wait(&l.silent)
	return one
}

// next returns the connection to close next, or nil if each has a request in progress. The caller holds the lock.
func (l *Limit) next() *conn {
	more := &l.silent
	if l.idle.Len() > l.silent.Len() {
		more = &l.idle
	}
	if more.Len() == 0 {
		return nil
	}
	return more.Front().Value.(*conn)
}

// end closes a connection; its server notices. The caller holds the lock.
func (c *conn) end() {
	c.leave()
	_ = c.Conn.Close()
}

// largest returns the connection with the most waiting bytes, or nil if none wait. The caller holds the lock.
func (l *Limit) largest() (most *conn) {
	for _, waiting := range []*list.List{&l.silent, &l.idle} {
		for e := waiting.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); c.bytes > 0 && (most == nil || c.bytes > most.bytes) {
				most = c
			}
		}
	}
	return most
}

// wait adds a connection to one of the lists, from which it may be closed. The caller holds the lock.
func (c *conn) wait(in *list.List) {
	c.in, c.at, c.since = in, in.PushBack(c), time.Now()
	c.limit.changed.Signal()
}

// keep removes a connection from its list, so that it is safe. The caller holds the lock.
func (c *conn) keep() {
	if c.in != nil {
		c.in.Remove(c.at)
		c.in = nil
	}
}

// leave ends the count of a connection. The caller holds the lock.
func (c *conn) leave() {
	if c.ended {
		return
	}
	c.keep()
	c.ended = true
	c.limit.open--
	c.limit.bytes -= c.bytes
	c.limit.changed.Signal()
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	l := c.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.in == nil { // the handler limits what it reads
		return n, err
	}
	c.bytes += n
	l.bytes += n
	if l.bytes > l.mostBytes {
		l.largest().end() // not nil: this connection has some
	}
	return n, err
}

// NetConn returns the connection without the limit.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn.
func (c *conn) Close() error {
	c.limit.mu.Lock()
	c.leave()
	c.limit.mu.Unlock()
	return c.Conn.Close()
}

type key struct{}

// Context is an http.Server's ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Answering keeps the connection of a request safe until answered is called. A handler calls it as soon as the request
// is complete.
func Answering(ctx context.Context) (answered func()) {
	c, ok := ctx.Value(key{}).(*conn)
	if !ok { // a connection without a limit
		return func() {}
	}
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.keep()
	return c.answered
}

func (c *conn) answered() {
	l := c.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.ended || c.in != nil {
		return
	}
	l.bytes -= c.bytes
	c.bytes = 0
	c.wait(&l.idle)
}
