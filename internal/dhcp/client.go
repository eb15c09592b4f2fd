// Package dhcp requests addresses from a LAN's DHCP servers for others, over an interface of the host. The containers
// need neither an interface nor a namespace. Requests run in parallel, and each ends before its deadline, with an
// answer that names the interface and the number of tries. Malformed packets are ignored. The package keeps no leases.
//
// Do (client.go) takes an ipam.LANAsk and returns an ipam.LANAnswer. An exchange (exchange.go) sends a DHCP (ask4.go,
// message4.go) or DHCPv6 (ask6.go, message6.go) message up to four times and reads replies with its transaction ID. A
// station (station.go) owns the packet socket of an interface and reopens it when the interface is replaced. It sends
// and receives whole frames (frame.go), and a kernel filter drops foreign ones (filter.go).
package dhcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/internal/ipam"
)

// usually is the default time limit of a question.
const usually = 10 * time.Second

// Client asks the DHCP servers on the host's LANs. The zero Client is ready.
type Client struct {
	mu       sync.Mutex
	stations map[place]*station
}

// place identifies a station. DHCP and DHCPv6 share nothing but the interface.
type place struct {
	parent string
	ipv6   bool
}

// Do answers a question. It returns within the question's time limit, or when ctx ends.
func (c *Client) Do(ctx context.Context, ask ipam.LANAsk) ipam.LANAnswer {
	within := time.Duration(ask.Within)
	if within <= 0 {
		within = usually
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	s := c.enter(place{ask.Parent, ask.IPv6})
	defer c.leave(s)
	x := s.begin(within)
	defer s.end(x)
	var lease *ipam.LANLease
	var err error
	if ask.IPv6 {
		lease, err = (&ask6{LANAsk: ask, exchange: x}).do(ctx)
	} else {
		lease, err = (&ask4{LANAsk: ask, exchange: x}).do(ctx)
	}
	return answered(ask, lease, err)
}

// Close ends all questions and closes the sockets.
func (c *Client) Close() {
	c.mu.Lock()
	stations := c.stations
	c.stations = nil
	c.mu.Unlock()
	for _, s := range stations {
		s.close()
	}
}

// enter returns the station of a place and counts one more user of it. It creates the station if there is none.
func (c *Client) enter(at place) *station {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stations == nil {
		c.stations = map[place]*station{}
	}
	s := c.stations[at]
	if s == nil {
		s = newStation(at)
		c.stations[at] = s
	}
	s.users++
	if s.rest != nil {
		s.rest.Stop()
	}
	return s
}

// leave ends a question. A station without questions closes its socket after a while.
func (c *Client) leave(s *station) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.users--; s.users > 0 {
		return
	}
	s.rest = time.AfterFunc(restful, func() { c.retire(s) })
}

func (c *Client) retire(s *station) {
	c.mu.Lock()
	resting := s.users == 0
	if resting && c.stations[s.place] == s {
		delete(c.stations, s.place)
	}
	c.mu.Unlock()
	if resting {
		s.close()
	}
}

// failure is why a question failed.
type failure struct {
	kind  ipam.LANFailure
	text  string
	lease *ipam.LANLease // an offer that was not accepted
	soon  bool           // a retry may succeed soon
}

// Error implements error.
func (f *failure) Error() string { return f.text }

func answered(ask ipam.LANAsk, lease *ipam.LANLease, err error) ipam.LANAnswer {
	a := ipam.LANAnswer{ID: ask.ID}
	var f *failure
	switch {
	case errors.As(err, &f):
		a.Failure, a.Error, lease = f.kind, f.text, f.lease
	case err != nil:
		a.Failure, a.Error = ipam.LANParent, err.Error()
	}
	if lease != nil {
		a.Lease = *lease
	}
	return a
}
