package dns

import (
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"time"
)

// allows reports whether a client gets answers: this host, planned networks, and allowed clients.
func (s *Server) allows(from, local netip.Addr) bool {
	if !from.IsValid() {
		return false
	}
	for _, p := range s.cfg.Allow {
		if p.Contains(from) {
			return true
		}
	}
	return s.cfg.Index.has(from) || s.isOwn(from, local)
}

// isOwn reports whether the client is this host. A packet with an address of this host as its source comes from this
// host, because the kernel drops others. The source can differ from the queried address, because the engine's
// masquerading changes it.
func (s *Server) isOwn(from, local netip.Addr) bool {
	return from.IsLoopback() || from == local || s.own.has(from, s.cfg.Now(), s.cfg.Own)
}

// ownFor is how long the list of the host's addresses is cached. A read for each query would let strangers cause work.
const ownFor = time.Second

// own is the cached set of this host's addresses.
type own struct {
	mu    sync.Mutex
	until time.Time
	all   map[netip.Addr]bool
}

func (o *own) has(a netip.Addr, now time.Time, read func() ([]netip.Addr, error)) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.until) {
		o.until = now.Add(ownFor)
		if all, err := read(); err == nil { // after an error, the old set stays
			o.all = make(map[netip.Addr]bool, len(all))
			for _, one := range all {
				o.all[one] = true
			}
		}
	}
	return o.all[a]
}

// hostAddrs returns the addresses of this host's interfaces.
func hostAddrs() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	for _, one := range all {
		if p, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(p.IP); ok {
				addrs = append(addrs, a.Unmap())
			}
		}
	}
	return addrs, nil
}

// Limits for UDP answers that are larger than their questions. They prevent amplification attacks with forged source
// addresses.
const (
	mostLarger = 200  // per second and source
	limitRows  = 4096 // number of counters; sources that share a counter share its limit
)

// limit counts such answers per source. Its size is constant.
type limit struct {
	seed maphash.Seed // so that nobody can predict who shares a counter
	mu   sync.Mutex
	rows [limitRows]struct {
		second int64
		given  uint32
	}
}

// take reports whether a source may get another such answer.
func (l *limit) take(from netip.Addr, now time.Time) bool {
	if from.Is6() {
		from = netip.PrefixFrom(from, 64).Masked().Addr() // one machine can have any number of addresses of a /64
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	row := &l.rows[maphash.Comparable(l.seed, from)%limitRows]
	if row.second != now.Unix() {
		row.second, row.given = now.Unix(), 0
	}
	if row.given >= mostLarger {
		return false
	}
	row.given++
	return true
}
