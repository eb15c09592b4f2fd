// Package places limits the connections of an HTTP server and still admits new clients. When all places are taken or
// too many bytes wait, it closes a connection that has no request in progress. So idle clients, slow clients and
// endless requests keep nobody out.
//
// A connection takes a place when it is accepted (listener.go). The server adds the place to the context of its
// requests (Context). The handler reports when a request is complete and when it is answered (Answering); in between
// the connection is safe. Other connections are silent (never answered) or idle. The larger of the two groups loses the
// connection that has waited longest. If too many bytes wait, the connection with the most bytes is closed.
package places

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// moment is how long a connection that comes through a listener has to say something, and to take an answer, before it
// yields.
const moment = time.Second

// Places are those of the connections of one server.
type Places struct {
	most      int // connections
	mostBytes int // that came on all of them, and are of no request that is answered

	mu     sync.Mutex
	free   *sync.Cond // a connection ended, or may be ended, or the listener is closed
	open   int
	bytes  int
	silent list.List // of *conn: on which nothing was ever answered, the oldest first
	idle   list.List // of *conn: on which something was, that which is idle for the longest time first
	closed bool
}

// New returns places for so many connections, and so many bytes that wait on all of them together.
func New(most, mostBytes int) *Places {
	p := &Places{most: most, mostBytes: mostBytes}
	p.free = sync.NewCond(&p.mu)
	return p
}

// conn is a connection that has a place.
type conn struct {
	net.Conn
	of    *Places
	in    *list.List // silent or idle; nil: it is being answered, or has no place any more
	at    *list.Element
	since time.Time // when it joined that list
	bytes int
	gone  bool // it has no place any more
}

// Take gives a connection a place; nil: all are of connections that are being answered.
func (p *Places) Take(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.most {
		next := p.next()
		if next == nil {
			return nil
		}
		next.end()
	}
	return p.enter(c)
}

// enter gives a connection one of the free places. The lock is held.
func (p *Places) enter(c net.Conn) *conn {
	one := &conn{Conn: c, of: p}
	p.open++
	one.wait(&p.silent)
	return one
}

// next is the connection that yields next; nil: on all of them something is being answered. The lock is held.
func (p *Places) next() *conn {
	more := &p.silent
	if p.idle.Len() > p.silent.Len() {
		more = &p.idle
	}
	if more.Len() == 0 {
		return nil
	}
	return more.Front().Value.(*conn)
}

// end ends a connection; whoever serves it notices. The lock is held.
func (c *conn) end() {
	c.leave()
	_ = c.Conn.Close()
}

// largest is the connection on which the most bytes wait; nil: none wait. The lock is held.
func (p *Places) largest() (most *conn) {
	for _, l := range []*list.List{&p.silent, &p.idle} {
		for e := l.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*conn); c.bytes > 0 && (most == nil || c.bytes > most.bytes) {
				most = c
			}
		}
	}
	return most
}

// wait lets a connection yield. The lock is held.
func (c *conn) wait(in *list.List) {
	c.in, c.at, c.since = in, in.PushBack(c), time.Now()
	c.of.free.Signal()
}

// stay lets it yield no more. The lock is held.
func (c *conn) stay() {
	if c.in != nil {
		c.in.Remove(c.at)
		c.in = nil
	}
}

// leave gives its place up. The lock is held.
func (c *conn) leave() {
	if c.gone {
		return
	}
	c.stay()
	c.gone = true
	c.of.open--
	c.of.bytes -= c.bytes
	c.of.free.Signal()
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	p := c.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.in == nil { // whoever answers bounds what he reads
		return n, err
	}
	c.bytes += n
	p.bytes += n
	if p.bytes > p.mostBytes {
		p.largest().end() // at least this one is
	}
	return n, err
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}

type key struct{}

// Context is an http.Server's ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, key{}, c)
}

// Answering has the connection of a request keep its place until the function is called that it returns. A handler
// calls it as soon as it has of the request what it waits for.
func Answering(ctx context.Context) (answered func()) {
	c, ok := ctx.Value(key{}).(*conn)
	if !ok { // it has none
		return func() {}
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.stay()
	return c.answered
}

func (c *conn) answered() {
	p := c.of
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.gone || c.in != nil {
		return
	}
	p.bytes -= c.bytes
	c.bytes = 0
	c.wait(&p.idle)
}
