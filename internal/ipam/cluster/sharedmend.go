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

// MendStore is a Service over the shared store for mending. It refuses nothing, however far the store went back.
type MendStore struct {
	Service *service.Service
	Trace   func() store.Trace // returns the store's current trace
	Close   func() error
}

// mendTime bounds the wait after a mending until this daemon trusts the store again.
const mendTime = 5 * time.Second

// Mend does this host's part in mending a shared store that went back to an earlier state. After an error, what it
// restored stays, and the same call continues.
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
	if err := s.rememberOnce(ctx); err != nil { // the changes of the last second
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
	if err == nil && !opt.DryRun { // another host may have some of the headroom in the state that came back
		var all map[ipam.ID]*claimed
		if all, err = allClaimed(ctx, st.Service.Ledger); err == nil {
			err = s.dropUnclaimed(ctx, all)
		}
	}
	trace := st.Trace()
	err = errors.Join(err, st.Close())
	if opt.DryRun || err != nil {
		return report, err
	}
	return report, s.trustAgain(ctx, trace, m.done)
}

// trouble returns why the store is not trusted: it went back, or is being mended. An error means that this could not be
// determined.
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

// trustAgain records the trace of the mended store and trusts it. done is when this host's part was done.
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
		return fmt.Errorf("cannot write the shared store's position to the host's own store; mend again: %w", err)
	}
	if s.trust != nil {
		s.trust(trace)
	}
	s.poke()
	return s.awaitTrust(ctx, done)
}

// awaitTrust waits until this daemon has read the store again and sees that its own part is done.
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
			return ipam.Help(fmt.Errorf("this host's part is done, but its daemon does not use the store yet: %w", err),
				ipam.Advise(ipam.DoShowStatus))
		}
	}
}

// knowsDone reports whether the daemon has read the mark that this host wrote at a time.
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

// usedAddrs returns the headroom addresses that this host has leased and not yet reported to the store. It waits for a
// request that chose one before the store was known to have gone back.
func (s *Shared) usedAddrs() map[netip.Addr]bool {
	s.turn.Lock()
	defer s.turn.Unlock()
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
