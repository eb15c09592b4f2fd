package admin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/connlimit"

	"github.com/sirupsen/logrus"
)

// shares limits the connections of one listener, so that nobody takes them all. Each user of the socket, and each
// network address, may have a share of them; root has its own. A connection over the share is refused at once, so
// nobody waits for it.
//
// A caller that has passed authentication has a place of its own (known). The others are strangers, and their
// connections can be ended. If all places of strangers are taken, a newcomer gets the place of the oldest connection of
// the stranger with the most. Of root's connections, an idle one yields to a new one of root. So idle connections keep
// nobody out.
type shares struct {
	each, all int // per user or address, and in total without root's
	who       func(net.Conn) (name string, root bool)
	refuse    func(c net.Conn, reason string) // it closes c; nil: c is closed without a reply
	log       *logrus.Entry
	most      int // connections for root
	roots     *connlimit.Limit

	mu    sync.Mutex
	open  map[string]int
	sum   int
	told  map[string]bool          // names with a logged refusal, until they have a free connection
	queue map[string][]*sharedConn // connections of strangers, the oldest first
	came  uint64                   // counts additions to the queue
	known map[string]int           // connections of authenticated callers
	knows int                      // their sum
}

// newShares returns the limits for a listener of n connections.
func newShares(n int, log *logrus.Entry) *shares {
	return &shares{each: max(n/4, 1), all: max(n-n/4, 1), log: log, most: n, roots: connlimit.New(n, n*maxHeader/4),
		open: map[string]int{}, told: map[string]bool{}, queue: map[string][]*sharedConn{}, known: map[string]int{}}
}

// take gives a connection to a name, or returns why not.
func (s *shares) take(name string) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open[name] >= s.each:
		reason = fmt.Sprintf("%s has %d connections open, the maximum: end some of them", name,
			s.each)
	case s.sum >= s.all && !s.makeRoom(name):
		reason = fmt.Sprintf("all %d connections for users other than root are in use: try again later, or as root "+
			"on the host", s.all)
	default:
		s.open[name]++
		s.sum++
		return ""
	}
	s.tell(name, reason)
	return reason
}

// tell logs a refusal once. The lock is held.
func (s *shares) tell(name, reason string) {
	if !s.told[name] {
		s.told[name] = true
		s.log.WithField("peer", name).Warn("connections to the admin API are refused: " + reason)
	}
}

// takeRoot gives root a connection, or returns why not.
func (s *shares) takeRoot(name string, c net.Conn) (_ net.Conn, reason string) {
	one := s.roots.Admit(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if one != nil {
		delete(s.told, name)
		return one, ""
	}
	reason = fmt.Sprintf("all %d connections for root are in use: end some of them", s.most)
	s.tell(name, reason)
	return nil, reason
}

// give ends a connection of name. The lock is held.
func (s *shares) give(name string) {
	s.sum--
	if s.open[name]--; s.open[name] == 0 {
		delete(s.open, name)
		delete(s.told, name)
	}
}

// makeRoom ends the oldest connection of the stranger with the most connections, unless that is the newcomer. The lock
// is held.
func (s *shares) makeRoom(newcomer string) bool {
	most := newcomer
	for name, all := range s.queue {
		has, had := len(all), len(s.queue[most])
		if has > had || has == had && most != newcomer && all[0].turn < s.queue[most][0].turn {
			most = name
		}
	}
	if most == newcomer {
		return false
	}
	oldest := s.queue[most][0]
	s.leave(oldest)
	_ = oldest.Conn.Close() // its goroutine notices
	return true
}

// comes adds a stranger's connection, which has a share, to the queue.
func (s *shares) comes(c *sharedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came++
	c.turn = s.came
	s.queue[c.from] = append(s.queue[c.from], c)
}

// leave removes a stranger's connection from the queue and frees its share. The lock is held.
func (s *shares) leave(c *sharedConn) {
	if c.class == gone {
		return
	}
	c.class = gone
	s.queue[c.from] = slices.DeleteFunc(s.queue[c.from], func(one *sharedConn) bool { return one == c })
	if len(s.queue[c.from]) == 0 {
		delete(s.queue, c.from)
	}
	s.give(c.from)
}

// recognized moves a connection to the places of authenticated callers, if its caller has one free.
func (s *shares) recognized(c *sharedConn, actor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.class != strangers || s.known[actor] >= s.each || s.knows >= s.all {
		return
	}
	s.leave(c)
	c.class, c.actor = knowns, actor
	s.known[actor]++
	s.knows++
}

// ended frees the place of a connection.
func (s *shares) ended(c *sharedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.class != knowns {
		s.leave(c)
		return
	}
	c.class = gone
	s.knows--
	if s.known[c.actor]--; s.known[c.actor] == 0 {
		delete(s.known, c.actor)
	}
}

// sharedListener accepts the connections that have a share.
type sharedListener struct {
	net.Listener
	*shares
}

func (s *shares) over(l net.Listener) net.Listener { return &sharedListener{l, s} }

// Accept implements net.Listener.
func (l *sharedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		one, reason := l.admit(c)
		switch {
		case one != nil:
			return one, nil
		case l.refuse == nil:
			_ = c.Close()
		default:
			l.refuse(c, reason)
		}
	}
}

// admit gives a connection its place, or returns why it has none.
func (l *sharedListener) admit(c net.Conn) (_ net.Conn, reason string) {
	name, root := l.who(c)
	if root {
		return l.takeRoot(name, c)
	}
	if reason = l.take(name); reason != "" {
		return nil, reason
	}
	one := &sharedConn{Conn: c, from: name, of: l.shares}
	one.give = sync.OnceFunc(func() { l.ended(one) })
	l.comes(one)
	return one, ""
}

// sharedConn frees its share when it is closed.
type sharedConn struct {
	net.Conn
	give func()

	of    *shares
	from  string // the name whose share it has
	turn  uint64 // its number in the order of arrival
	actor string // the authenticated caller
	class class
}

// class is the kind of place that a connection has.
type class int

const (
	strangers class = iota
	knowns
	gone // no place any more
)

type sharedKey struct{}

// withShare makes a connection available to its requests.
func withShare(ctx context.Context, c net.Conn) context.Context {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	return connlimit.Context(context.WithValue(ctx, sharedKey{}, c), c)
}

// recognize records the authenticated caller of a connection.
func recognize(ctx context.Context, who *caller) {
	if c, ok := ctx.Value(sharedKey{}).(*sharedConn); ok {
		c.of.recognized(c, who.actor)
	}
}

// NetConn returns the connection without the share.
func (c *sharedConn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn.
func (c *sharedConn) Close() error {
	defer c.give()
	return c.Conn.Close()
}

// userOf names the user at the other end of the socket. Root and the daemon's user count as root.
func userOf(c net.Conn) (name string, root bool) {
	p, _ := c.RemoteAddr().(*peer)
	if p == nil || p.err != nil {
		return "an unknown user", false
	}
	return "user " + strconv.Itoa(p.uid), p.uid == 0 || p.uid == os.Geteuid()
}

// networkOf names the origin of a connection. It is an IPv4 address or an IPv6 /64, because one machine can have any
// number of addresses of a /64.
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

// Limits for refusals with a reply.
const (
	refusalTime = time.Second
	maxRefusals = 16 // at a time; above that, connections are closed without a reply
)

// refusing returns a function that answers one request of a connection with the reason of its refusal, and closes it.
// It never blocks.
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
