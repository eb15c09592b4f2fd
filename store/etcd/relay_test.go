package etcd

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// relay is between a handle and a server, and does to each direction what a network may do. It does not
// interpret what passes.
type relay struct {
	t  testing.TB
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu       sync.Mutex
	changed  sync.Cond
	up, down way // requests, answers
	away     bool
	conns    map[net.Conn]bool
	closed   bool
}

// way is how one direction is treated.
type way int

const (
	pass way = iota
	lose     // data is read and thrown away
	hold     // data waits until it may pass again
)

// newRelay returns a relay to an endpoint.
func newRelay(t testing.TB, endpoint string) *relay {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, l: l, to: u.Host, conns: map[net.Conn]bool{}}
	r.changed.L = &r.mu
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *relay) endpoint() string { return "http://" + r.l.Addr().String() }

func (r *relay) accept() {
	for {
		in, err := r.l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		away := r.away
		r.mu.Unlock()
		if away {
			_ = in.Close()
			continue
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = in.Close()
			continue
		}
		if !r.add(in, out) {
			return
		}
		r.wg.Go(func() { r.copy(out, in, &r.up) })
		r.wg.Go(func() { r.copy(in, out, &r.down) })
	}
}

func (r *relay) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.closed {
			_ = c.Close()
		} else {
			r.conns[c] = true
		}
	}
	return !r.closed
}

func (r *relay) copy(to, from net.Conn, w *way) {
	defer r.drop(to, from)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		for *w == hold && r.conns[from] {
			r.changed.Wait()
		}
		lost := *w == lose
		r.mu.Unlock()
		if n > 0 && !lost {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (r *relay) drop(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(r.conns, c)
	}
	r.changed.Broadcast()
}

// set sets how each direction is treated from now on.
func (r *relay) set(up, down way) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.up, r.down = up, down
	r.changed.Broadcast()
}

// cut ends all connections and refuses new ones.
func (r *relay) cut() {
	r.mu.Lock()
	r.away = true
	r.mu.Unlock()
	r.kick()
}

// kick ends all connections.
func (r *relay) kick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
		delete(r.conns, c)
	}
	r.changed.Broadcast()
}

// heal lets everything pass again, on new connections.
func (r *relay) heal() {
	r.mu.Lock()
	r.up, r.down, r.away = pass, pass, false
	r.mu.Unlock()
	r.kick()
}

func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	_ = r.l.Close()
	r.kick()
	r.wg.Wait()
}
