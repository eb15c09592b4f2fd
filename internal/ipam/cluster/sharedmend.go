package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// MendStore is a Service over the shared store that mends: nothing is refused to it, however far the store went back.
type MendStore struct {
	Service *service.Service
	Trace   func() store.Trace // how far the store is now
	Close   func() error
}

// mendTime is how long it is waited, after a mending, until this daemon trusts the store again.
const mendTime = 5 * time.Second

// Mend does this host's part in mending a shared store that was put back to an earlier state. What it has put back
// stays when an error cuts it off, and the same call goes on.
func (s *Shared) Mend(ctx context.Context, opt ipam.MendOptions) (ipam.MendReport, error) {
	if s.openMend == nil {
		return ipam.MendReport{}, ipam.ErrNoShared
	}
	s.mending.Lock()
	defer s.mending.Unlock()
	back, mark, err := s.trouble()
	if err != nil {
		return ipam.MendReport{}, err
	}
	if back == nil && mark == nil {
		return ipam.MendReport{Host: s.host, DryRun: opt.DryRun, Accepted: opt.Accept, Nothing: true, Remembers: true},
			nil
	}
	if err := s.rememberOnce(ctx); err != nil { // what the last second brought
		return ipam.MendReport{}, err
	}
	m := &mender{ahead: back != nil, opt: opt, used: s.usedAddrs()}
	if m.mem, err = readRecalled(ctx, s.own); err != nil {
		return ipam.MendReport{}, err
	}
	if s.see != nil {
		if m.view, err = s.see(ctx); err != nil {
			return ipam.MendReport{}, err
		}
	}
	st, err := s.openMend(ctx, opt.DryRun)
	if err != nil {
		return ipam.MendReport{}, err
	}
	m.s = st.Service
	report, err := m.run(ctx)
	trace := st.Trace()
	err = errors.Join(err, st.Close())
	if opt.DryRun || err != nil {
		return report, err
	}
	return report, s.trustAgain(ctx, trace, m.done)
}

// trouble is why the store is not trusted: it went back, or is being mended. An error is one that comes before either.
func (s *Shared) trouble() (back *store.Back, mark *ipam.Mending, err error) {
	svc, err := s.service()
	if svc != nil {
		err = s.reach().Err
		mark = svc.Ledger.BeingMended()
	}
	switch {
	case errors.As(err, &back):
		return back, mark, nil
	case err != nil && mark == nil:
		return nil, nil, err
	}
	return nil, mark, nil
}

// trustAgain notes how far the store is that was mended, and has it be trusted as that. done is when this host's part
// was.
func (s *Shared) trustAgain(ctx context.Context, trace store.Trace, done time.Time) error {
	s.recalling.Lock()
	s.recallStale = true
	head, err := readRecallHead(ctx, s.own)
	if head == nil {
		head = &recallHead{}
	}
	head.Trace = trace
	var n note
	if err == nil {
		n, err = noteJSON(recallHeadKey(), head)
	}
	if err == nil {
		err = s.keepNotes(ctx, []note{n})
	}
	s.recalling.Unlock()
	if err != nil {
		return fmt.Errorf("how far the store is now could not be written to the host's own; mend again: %w", err)
	}
	if s.trust != nil {
		s.trust(trace)
	}
	s.poke()
	return s.awaitTrust(ctx, done)
}

// awaitTrust waits until this daemon has read the store afresh: until it knows that its own part is done.
func (s *Shared) awaitTrust(ctx context.Context, done time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		back, _, err := s.trouble()
		if back == nil && err == nil && s.knowsDone(done) {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			switch {
			case back != nil:
				err = back
			case err == nil:
				err = ctx.Err()
			}
			return ipam.Help(fmt.Errorf("this host's part is done, and its daemon does not use the store yet: %w", err),
				ipam.Advise(ipam.DoShowStatus))
		}
	}
}

// knowsDone tells whether the mark is known by which this host's part was done at a time.
func (s *Shared) knowsDone(at time.Time) bool {
	svc, err := s.service()
	if svc == nil || err != nil {
		return err == nil
	}
	return ledger.Ask(svc.Ledger, func(ix *ledger.Index) bool {
		m := markOf(ix)
		return m != nil && m.Hosts[s.host] != nil && !m.Hosts[s.host].At.Before(at)
	})
}

// usedAddrs are the addresses that this host has given out of its headroom, of which the store has not heard.
func (s *Shared) usedAddrs() map[netip.Addr]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[netip.Addr]bool{}
	for _, st := range s.headroom {
		for addr, sp := range st.addrs {
			if sp.held() {
				all[addr] = true
			}
		}
	}
	return all
}
