package lan

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"berth/internal/ipam"
)

// Sharing sends equal questions of parallel callers once. A caller whose ctx ends returns, and the question continues
// for the others.
func Sharing(ask ipam.AskLAN) ipam.AskLAN {
	if ask == nil {
		return nil
	}
	s := &sharing{ask: ask, asked: map[question]*asked{}}
	return s.do
}

// question is the key: equal questions are sent once.
type question struct {
	verb            ipam.LANVerb
	parent          string
	ipv6            bool
	client          ipam.LANClient
	subnet          netip.Prefix
	address, server netip.Addr
}

type sharing struct {
	ask   ipam.AskLAN
	mu    sync.Mutex
	asked map[question]*asked
}

// asked is a question in progress.
type asked struct {
	done   chan struct{}
	answer ipam.LANAnswer
	err    error
}

func (s *sharing) do(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
	q := question{ask.Verb, ask.Parent, ask.IPv6, ask.Client, ask.Subnet, ask.Address, ask.Server}
	s.mu.Lock()
	a := s.asked[q]
	if a == nil {
		a = &asked{done: make(chan struct{})}
		s.asked[q] = a
		go s.run(context.WithoutCancel(ctx), q, a, ask)
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.answer, a.err
	case <-ctx.Done():
		return ipam.LANAnswer{}, ctx.Err()
	}
}

func (s *sharing) run(ctx context.Context, q question, a *asked, ask ipam.LANAsk) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(ask.Within)+2*time.Second)
	defer cancel()
	a.answer, a.err = s.ask(ctx, ask)
	s.mu.Lock()
	delete(s.asked, q)
	s.mu.Unlock()
	close(a.done)
}
