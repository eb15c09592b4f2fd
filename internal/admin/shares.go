package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"berth/internal/admin/api"

	"github.com/sirupsen/logrus"
)

// shares bounds the connections of one listener so that nobody takes them all: each user of the socket, and each
// address of the network, has a share of them at most, and root has room of his own. Who has more than his share is
// refused at once, so that nobody waits behind him; root alone waits, for root.
type shares struct {
	each, all int // connections of one user or address, and of all of them
	who       func(net.Conn) (name string, root bool)
	refuse    func(c net.Conn, reason string) // it closes c; nil: c is closed without a word
	log       *logrus.Entry
	roots     chan struct{} // holds a token for each connection of root's

	mu   sync.Mutex
	open map[string]int
	sum  int
	told map[string]bool // who was refused since he last had a connection to spare: that is logged once
}

// A listener of n connections has so many for one user or address, and for all that are not root's.
func newShares(n int, log *logrus.Entry) *shares {
	return &shares{each: max(n/4, 1), all: max(n-n/4, 1), log: log, roots: make(chan struct{}, n),
		open: map[string]int{}, told: map[string]bool{}}
}

// take gives somebody a connection, or says why not.
func (s *shares) take(name string) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[name] >= s.each:
		reason = fmt.Sprintf("%s has %d connections open, which is all that one may have: end some of them", name,
			s.each)
	case s.sum >= s.all:
		reason = fmt.Sprintf("all %d connections that are not root's are taken: try again later, or as root on "+
			"the host", s.all)
	default:
		s.open[name]++
		s.sum++
		return ""
	}
	if !s.told[name] {
		s.told[name] = true
		s.log.WithField("peer", name).Warn("connections to the admin API are refused: " + reason)
	}
	return reason
}

func (s *shares) give(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum--
	if s.open[name]--; s.open[name] == 0 {
		delete(s.open, name)
		delete(s.told, name)
	}
}

// sharedListener hands out the connections that have a share.
type sharedListener struct {
	net.Listener
	*shares
	closed chan struct{}
	once   sync.Once
}

func (s *shares) over(l net.Listener) net.Listener {
	return &sharedListener{Listener: l, shares: s, closed: make(chan struct{})}
}

// Close implements net.Listener.
func (l *sharedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Accept implements net.Listener.
func (l *sharedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		name, root := l.who(c)
		if root {
			return l.acceptRoot(c)
		}
		reason := l.take(name)
		if reason == "" {
			return &sharedConn{Conn: c, give: sync.OnceFunc(func() { l.give(name) })}, nil
		}
		if l.refuse == nil {
			_ = c.Close()
			continue
		}
		l.refuse(c, reason)
	}
}

func (l *sharedListener) acceptRoot(c net.Conn) (net.Conn, error) {
	select {
	case l.roots <- struct{}{}:
		return &sharedConn{Conn: c, give: sync.OnceFunc(func() { <-l.roots })}, nil
	case <-l.closed:
		_ = c.Close()
		return nil, net.ErrClosed
	}
}

// sharedConn gives its share back when it is closed.
type sharedConn struct {
	net.Conn
	give func()
}

// Close implements net.Conn.
func (c *sharedConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}

// userOf names the user at the other end of the socket. Root's are root's own, and those of the daemon's user.
func userOf(c net.Conn) (name string, root bool) {
	p, _ := c.RemoteAddr().(*peer)
	if p == nil || p.err != nil {
		return "somebody unknown", false
	}
	return "user " + strconv.Itoa(p.uid), p.uid == 0 || p.uid == os.Geteuid()
}

// networkOf names where a connection comes from: an address or, since one machine has as many as it likes, an IPv6 /64.
func networkOf(c net.Conn) (name string, root bool) {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String(), false
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String(), false
	}
	return netip.PrefixFrom(addr, 64).Masked().String(), false
}

// Bounds on refusals that are said in words.
const (
	refusalTime = time.Second
	maxRefusals = 16 // at a time; beyond that a connection is closed without a word
)

// refusing answers one request of a connection with the reason why it is refused, and closes it. It never waits.
func refusing() func(c net.Conn, reason string) {
	places := make(chan struct{}, maxRefusals)
	return func(c net.Conn, reason string) {
		select {
		case places <- struct{}{}:
		default:
			_ = c.Close()
			return
		}
		go func() {
			defer func() { <-places }()
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(refusalTime))
			if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
				return
			}
			body, err := json.Marshal(&api.Problem{Title: http.StatusText(http.StatusServiceUnavailable),
				Status: http.StatusServiceUnavailable,
				Code:   api.CodeBusy, Detail: reason})
			if err != nil {
				return
			}
			fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nConnection: "+
				"close\r\nContent-Length: %d\r\n\r\n%s",
				len(body), body)
		}()
	}
}
