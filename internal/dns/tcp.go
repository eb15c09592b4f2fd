package dns

import (
	"net"
	"net/netip"
	"sync"
)

// bounded limits the number of connections. It accepts only allowed clients, so strangers take no place.
type bounded struct {
	net.Listener
	allows func(from, local netip.Addr) bool
	mu     sync.Mutex
	all    int
	of     map[netip.Addr]int
}

// Accept implements net.Listener. It closes excess connections and those of strangers at once.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addrOf(c.RemoteAddr())
		local := addrOf(c.LocalAddr())
		if b.allows(from, local) && b.take(from) {
			return &counted{Conn: c, gone: sync.OnceFunc(func() { b.leave(from) })}, nil
		}
		_ = c.Close()
	}
}

func (b *bounded) take(from netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all >= mostConns || b.of[from] >= mostOfOne {
		return false
	}
	b.all++
	b.of[from]++
	return true
}

func (b *bounded) leave(from netip.Addr) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.of[from]--; b.of[from] == 0 {
		delete(b.of, from)
	}
}

type counted struct {
	net.Conn
	gone func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.gone()
	return c.Conn.Close()
}
