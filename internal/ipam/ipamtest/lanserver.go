package ipamtest

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"berth/internal/ipam"
)

// LANServer is a DHCP server with the edge that asks it. It knows which client has which address until when. It
// follows RFC 2131, 4.3: it refuses a client that asks again for another client's address, or for one outside its
// LAN. About a forgotten address it says nothing, unless it is the only server.
type LANServer struct {
	Now     func() time.Time
	Subnet  netip.Prefix
	Gateway netip.Addr
	Server  netip.Addr
	First   netip.Addr // of its range
	Size    int        // of its range
	Lasts   time.Duration

	mu      sync.Mutex
	leases  map[netip.Addr]*lanLease
	failure ipam.LANFailure
	alone   bool
	blocks  chan struct{}
	asks    []ipam.LANAsk
}

type lanLease struct {
	client ipam.LANClient
	until  time.Time
}

// NewLANServer returns a server of 10.0.0.0/24 that gives 10.0.0.100 to .109, for two minutes each.
func NewLANServer(now func() time.Time) *LANServer {
	return &LANServer{Now: now, Subnet: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"),
		Server: netip.MustParseAddr("10.0.0.2"), First: netip.MustParseAddr("10.0.0.100"), Size: 10,
		Lasts: 2 * time.Minute, leases: map[netip.Addr]*lanLease{}, alone: true}
}

// Fail makes all questions end with f. With an empty f they are answered again.
func (s *LANServer) Fail(f ipam.LANFailure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = f
}

// Block holds all questions until end is called.
func (s *LANServer) Block() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	blocks := make(chan struct{})
	s.blocks = blocks
	return sync.OnceFunc(func() {
		s.mu.Lock()
		s.blocks = nil
		s.mu.Unlock()
		close(blocks)
	})
}

// Forget makes the server forget all leases. If alone, it is the only server of its LAN, and refuses questions
// about addresses that it does not know.
func (s *LANServer) Forget(alone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.leases)
	s.alone = alone
}

// Give gives an address to a foreign client.
func (s *LANServer) Give(addr netip.Addr, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[addr] = &lanLease{ipam.LANClient{ID: id}, s.Now().Add(24 * time.Hour)}
}

// Has returns the client that has an address, by the server, or "" for none.
func (s *LANServer) Has(addr netip.Addr) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[addr]; l != nil && l.until.After(s.Now()) {
		if l.client.ID == "" {
			return l.client.MAC.String()
		}
		return l.client.ID
	}
	return ""
}

// Until returns when a lease ends, by the server.
func (s *LANServer) Until(addr netip.Addr) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[addr]; l != nil {
		return l.until
	}
	return time.Time{}
}

// Asked returns the questions since the last call.
func (s *LANServer) Asked() (asks []ipam.LANAsk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asks, s.asks = s.asks, nil
	return asks
}

// Ask is an ipam.AskLAN.
func (s *LANServer) Ask(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	s.mu.Lock()
	s.asks = append(s.asks, ask)
	blocks := s.blocks
	s.mu.Unlock()
	if blocks != nil {
		select {
		case <-blocks:
		case <-ctx.Done():
			return ipam.LANAnswer{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != "" {
		return failedLAN(s.failure, "3 tries on "+ask.Parent), nil
	}
	switch ask.Verb {
	case ipam.LANOffer:
		return s.answer(s.choose(ask)), nil
	case ipam.LANTake:
		addr := s.choose(ask)
		if !addr.IsValid() {
			return failedLAN(ipam.LANRefused, "no address is left"), nil
		}
		s.leases[addr] = &lanLease{ask.Client, s.Now().Add(s.Lasts)}
		return s.answer(addr), nil
	case ipam.LANConfirm:
		return s.confirm(ask), nil
	case ipam.LANRelease:
		if l := s.leases[ask.Address]; l != nil && l.client.SameClient(ask.Client) {
			delete(s.leases, ask.Address)
		}
	case ipam.LANDecline:
		s.leases[ask.Address] = &lanLease{ipam.LANClient{ID: "declined"}, s.Now().Add(time.Hour)}
	}
	return ipam.LANAnswer{}, nil
}

func failedLAN(f ipam.LANFailure, why string) ipam.LANAnswer {
	return ipam.LANAnswer{Failure: f, Error: why}
}

func (s *LANServer) confirm(ask ipam.LANAsk) ipam.LANAnswer {
	l := s.leases[ask.Address]
	switch {
	case l != nil && l.client.SameClient(ask.Client):
		l.until = s.Now().Add(s.Lasts)
		l.client = ask.Client
		return s.answer(ask.Address)
	case l == nil && !s.alone:
		return failedLAN(ipam.LANSilent, "3 tries on "+ask.Parent)
	}
	return failedLAN(ipam.LANRefused, "wrong address")
}

// choose returns the client's own address, the wished one, or the lowest free one.
func (s *LANServer) choose(ask ipam.LANAsk) netip.Addr {
	free := func(addr netip.Addr) bool {
		l := s.leases[addr]
		return l == nil || !l.until.After(s.Now())
	}
	var lowest netip.Addr
	addr := s.First
	for range s.Size {
		if l := s.leases[addr]; l != nil && l.client.SameClient(ask.Client) {
			return addr
		}
		if free(addr) && (!lowest.IsValid() || addr == ask.Address) {
			lowest = addr
		}
		addr = addr.Next()
	}
	return lowest
}

func (s *LANServer) answer(addr netip.Addr) ipam.LANAnswer {
	return ipam.LANAnswer{Lease: ipam.LANLease{Address: addr, Subnet: s.Subnet, Gateway: s.Gateway, Server: s.Server,
		Lasts: ipam.Duration(s.Lasts), T1: ipam.Duration(s.Lasts / 2), T2: ipam.Duration(s.Lasts * 7 / 8)}}
}
