package dns

import (
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"time"
)

// allows tells whether somebody may ask: this host, who is in a planned network, and who is allowed.
func (s *Server) allows(from, local netip.Addr) bool {
	if !from.IsValid() {
		return false
	}
	for _, p := range s.cfg.Allow {
		if p.Contains(from) {
			return true
		}
	}
	return s.cfg.Index.Has(from) || s.isOwn(from, local)
}

// isOwn tells whether it is this host that asks. What comes from an address of this host comes from this host: the
// kernel takes no such packet from elsewhere. It need not be the address that was asked: the engine's masquerading
// gives what the host asks at a bridge's address another one of its own.
func (s *Server) isOwn(from, local netip.Addr) bool {
	return from.IsLoopback() || from == local || s.own.has(from, s.cfg.Now(), s.cfg.Own)
}

// ownFor is how long the host's addresses are taken to be what they were. To ask the kernel for each question would
// let strangers choose how much work it has.
const ownFor = time.Second

// own are the addresses of this host.
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
		if all, err := read(); err == nil { // else they are what they were
			o.all = make(map[netip.Addr]bool, len(all))
			for _, one := range all {
				o.all[one] = true
			}
		}
	}
	return o.all[a]
}

// hostAddrs are the addresses of this host's devices.
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

// Bounds on answers by UDP that are larger than their questions. Who asks under somebody else's address would have this
// server flood him with them.
const (
	mostLarger = 200  // in a second, for one source
	limitRows  = 4096 // sources that are told apart; those that share a row share what it allows
)

// limit counts such answers. It has one size, however many ask.
type limit struct {
	seed maphash.Seed // so that nobody knows with whom he shares a row
	mu   sync.Mutex
	rows [limitRows]struct {
		second int64
		given  uint32
	}
}

// take tells whether a source may be given one more.
func (l *limit) take(from netip.Addr, now time.Time) bool {
	if from.Is6() {
		from = netip.PrefixFrom(from, 64).Masked().Addr() // one machine has as many as it likes
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
