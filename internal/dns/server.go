package dns

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"berth/internal/ipam"

	"github.com/miekg/dns"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// Limits for clients.
const (
	mostConns   = 128 // total number of TCP connections
	mostOfOne   = 16  // per address
	mostQueries = 256 // per connection
	idle        = 10 * time.Second
	readWrite   = 2 * time.Second
	udpBuffer   = 1 << 20 // receive buffer in bytes, for bursts; the kernel drops what exceeds it
)

// pause is the time before the next attempt to read the names after an error.
const pause = time.Second

// Service supplies named addresses. It is a service.Service or, if the host shares a store, a cluster.Service.
type Service interface {
	NameNews(context.Context) iter.Seq2[ipam.NameNews, error]
	Partial() error
}

// Config is what a Server needs. Everything but Allow is mandatory.
type Config struct {
	Index   *Index
	Service Service
	Listen  []netip.AddrPort
	Allow   []netip.Prefix // clients in addition to this host and the planned networks
	Log     *logrus.Entry
	// Towards returns the address of this host from which it would send to another one, or the zero Addr if it would
	// not. nil: the kernel's.
	Towards func(netip.Addr) netip.Addr
	// Own returns the addresses of this host; nil: the kernel's. Now is the clock; nil: the system's.
	Own func() ([]netip.Addr, error)
	Now func() time.Time
}

// Server answers queries over UDP and TCP.
type Server struct {
	cfg    Config
	tcp    []*dns.Server
	udp    []*net.UDPConn
	bound  []netip.AddrPort
	turn   atomic.Uint64 // for the rotation of several addresses
	counts counts
	own    own
	limit  limit
}

// codes are the codes of the answers.
var codes = [...]int{dns.RcodeSuccess, dns.RcodeFormatError, dns.RcodeServerFailure, dns.RcodeNameError,
	dns.RcodeNotImplemented, dns.RcodeRefused, dns.RcodeBadVers}

// counts has the number of answers by code.
type counts [len(codes)]atomic.Uint64

// Queries returns the number of answered queries since the daemon's start, by the code of the answer.
func (s *Server) Queries() map[string]uint64 {
	all := make(map[string]uint64, len(codes))
	for i, code := range codes {
		all[codeText(code)] = s.counts[i].Load()
	}
	return all
}

// codeText returns the name of a code. Code 16 has two names, and this is the one of EDNS (RFC 6891, 9).
func codeText(code int) string {
	if code == dns.RcodeBadVers {
		return "BADVERS"
	}
	return dns.RcodeToString[code]
}

// Partial returns why a missing name may exist after all.
func (c *Config) Partial() error {
	if c.Service == nil {
		return nil
	}
	return c.Service.Partial()
}

// Listen binds the addresses. From then on queries wait.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	s := newServer(cfg)
	for _, at := range cfg.Listen {
		if err := s.bind(ctx, at); err != nil {
			s.Close()
			return nil, fmt.Errorf("cannot listen on %s: %w", at, rootOf(err))
		}
	}
	return s, nil
}

func newServer(cfg Config) *Server {
	if cfg.Towards == nil {
		cfg.Towards = towards
	}
	if cfg.Own == nil {
		cfg.Own = hostAddrs
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Server{cfg: cfg, limit: limit{seed: maphash.MakeSeed()}}
}

// rootOf returns the reason why an address cannot be bound, and what helps.
func rootOf(err error) error {
	no := syscall.Errno(0)
	if !errors.As(err, &no) {
		return err
	}
	switch no {
	case syscall.EADDRINUSE:
		return fmt.Errorf("%w: another server uses it (`ss -lnptu` shows which); name another address or port", no)
	case syscall.EACCES:
		return fmt.Errorf("%w: ports below 1024 need CAP_NET_BIND_SERVICE (see docs/dns.md); or name "+
			"another port, such as 5354", no)
	}
	return no
}

// bind binds one address for both protocols. Port 0 is a port that is free for both.
func (s *Server) bind(ctx context.Context, at netip.AddrPort) error {
	lc := net.ListenConfig{Control: freely}
	l, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return err
	}
	bound := netip.AddrPortFrom(at.Addr(), uint16(l.Addr().(*net.TCPAddr).Port))
	p, err := lc.ListenPacket(ctx, "udp", bound.String())
	if err != nil {
		return errors.Join(err, l.Close())
	}
	udp := p.(*net.UDPConn)
	_ = udp.SetReadBuffer(udpBuffer)
	if err := tellsWhere(udp); err != nil {
		return errors.Join(err, l.Close(), udp.Close())
	}
	s.tcp = append(s.tcp, s.overTCP(&bounded{Listener: l, allows: s.allows, of: map[netip.Addr]int{}}))
	s.udp, s.bound = append(s.udp, udp), append(s.bound, bound)
	s.cfg.Log.WithField("address", bound.String()).Info("the DNS server answers over UDP and TCP")
	return nil
}

// freely allows to bind an address that the host does not have yet. The engine may create its bridge later, and may
// even wait for this daemon.
func freely(_, _ string, c syscall.RawConn) (err error) {
	failed := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
	return errors.Join(failed, err)
}

func (s *Server) overTCP(l net.Listener) *dns.Server {
	return &dns.Server{Listener: l, Handler: s, ReadTimeout: readWrite, WriteTimeout: readWrite,
		IdleTimeout: func() time.Duration { return idle }, MaxTCPQueries: mostQueries, MsgAcceptFunc: accept}
}

// Addrs returns the bound addresses.
func (s *Server) Addrs() []netip.AddrPort { return s.bound }

// Close closes what Listen has bound, if Run was never called.
func (s *Server) Close() {
	for _, one := range s.tcp {
		_ = one.Listener.Close()
	}
	for _, one := range s.udp {
		_ = one.Close()
	}
}

// Run answers until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(s.tcp)+len(s.udp))
	var wg sync.WaitGroup
	for i, one := range s.udp {
		wg.Go(func() {
			if errs[len(s.tcp)+i] = s.serveUDP(ctx, one); errs[len(s.tcp)+i] != nil {
				cancel()
			}
		})
	}
	for i, one := range s.tcp {
		started := make(chan struct{})
		one.NotifyStartedFunc = func() { close(started) }
		wg.Go(func() {
			if err := one.ActivateAndServe(); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("the DNS server stopped: %w", err)
				cancel()
			}
		})
		wg.Go(func() {
			select {
			case <-started:
				<-ctx.Done()
				_ = one.ShutdownContext(ended()) // the client repeats its query
			case <-ctx.Done():
				s.Close() // a server that is just starting ends at once
			}
		})
	}
	wg.Go(func() { s.follow(ctx) })
	wg.Wait()
	return errors.Join(errs...)
}

// ended returns a cancelled context, for calls that must not wait.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// follow updates the index with what is committed, until ctx ends.
func (s *Server) follow(ctx context.Context) {
	for ctx.Err() == nil {
		for news, err := range s.cfg.Service.NameNews(ctx) {
			if err != nil {
				if ctx.Err() == nil {
					s.cfg.Log.WithError(err).Warnf(
						"the names cannot be read; the server answers with the previous ones, and the next try is "+
							"in %s", pause)
				}
				break
			}
			s.cfg.Index.Apply(&news)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// accept accepts every question. The answer reports what is wrong with it.
func accept(h dns.Header) dns.MsgAcceptAction {
	const response = 1 << 15
	if h.Bits&response != 0 {
		return dns.MsgIgnore
	}
	return dns.MsgAccept
}

// ServeDNS implements dns.Handler for TCP.
func (s *Server) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	from := addrOf(w.RemoteAddr())
	local := addrOf(w.LocalAddr())
	m := s.answer(q, asker{allowed: s.allows(from, local), server: s.serverFor(from, local)})
	if m == nil {
		return
	}
	s.count(m.Rcode)
	_ = w.WriteMsg(m) // a client without an answer repeats its query
}

// serverFor returns the address of this server as a client reaches it.
func (s *Server) serverFor(from, local netip.Addr) func() netip.Addr {
	return func() netip.Addr {
		if local.IsUnspecified() {
			return s.cfg.Towards(from)
		}
		return local
	}
}

func (s *Server) count(code int) {
	if i := slices.Index(codes[:], code); i >= 0 {
		s.counts[i].Add(1)
	}
}

func addrOf(a net.Addr) netip.Addr {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	case *net.TCPAddr:
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// towards returns the address of this host from which it would send to another one. For an address of this host it is
// that one. It sends nothing. The zero Addr means that it would not send.
func towards(to netip.Addr) netip.Addr {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 53)))
	if err != nil {
		return netip.Addr{}
	}
	defer c.Close()
	return addrOf(c.LocalAddr())
}
