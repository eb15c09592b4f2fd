package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/service"
)

// lookEvery is how often Run checks whether the store is reachable again, and reviewEvery how often it checks the
// headroom. openFirst and openMost bound the pause before it opens the store again. claimAgain is the pause after a
// claim that found nothing free.
const (
	lookEvery   = 200 * time.Millisecond
	reviewEvery = time.Second
	openFirst   = 100 * time.Millisecond
	openMost    = 5 * time.Second
	claimAgain  = 5 * time.Second
	upkeepAgain = time.Minute
)

// Run opens the shared Service, delivers what is queued whenever the store is reachable, keeps the headroom full and
// runs the Service's housekeeping. It returns nil when ctx ends. It returns an error that waiting does not solve: the
// store belongs to another cluster, or the host is refused. It may be called again after it has returned.
func (s *Shared) Run(ctx context.Context) error {
	err := s.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	s.setFault(err)
	if errors.Is(err, ipam.ErrHost) {
		// Others may have what was this host's. When the host joins again, it finds in the shared store what is still
		// its own.
		err = errors.Join(err, s.dropUnclaimed(ctx, nil))
	}
	return err
}

// setFault records why the store is not open; nil: it is. A store that went back stays untrusted while it is away.
func (s *Shared) setFault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if untrusted(s.fault) && isAway(err) && !untrusted(err) {
		return
	}
	if s.fault == nil || err == nil {
		s.since = s.now()
	}
	s.fault = err
	if untrusted(err) && !s.doubted.IsZero() {
		s.since = s.doubted
	}
}

func (s *Shared) run(ctx context.Context) error {
	svc, err := s.opened(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan error, 1)
	var ended sync.WaitGroup
	ended.Go(func() { kept <- s.keepUp(ctx, svc) })
	ended.Go(func() { svc.KeepSystem(ctx, s.systemFails) })
	ended.Go(func() { svc.KeepLeases(ctx, s.leasesFail) })
	if s.written != nil {
		ended.Go(func() { s.remember(ctx) })
	}
	defer ended.Wait()
	defer cancel()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	var look looking
	for {
		if err := s.look(ctx, svc, &look); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-kept:
			return err
		case <-s.wake:
			look.reviewed = time.Time{}
		case <-again.C:
		}
	}
}

// opened opens the store. It retries until the store answers, or an error comes that waiting does not solve.
func (s *Shared) opened(ctx context.Context) (*service.Service, error) {
	s.mu.Lock()
	svc := s.svc
	s.mu.Unlock()
	if svc != nil {
		s.setFault(nil)
		return svc, nil
	}
	for wait := openFirst; ; wait = min(2*wait, openMost) {
		svc, err := s.open(ctx)
		if err == nil {
			s.setService(svc)
			s.endFirst()
			return svc, nil
		}
		s.keepDoubt(ctx, err)
		s.setFault(err)
		s.endFirst()
		if !isAway(err) && !isUnknown(err) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.wake: // it was mended
			wait = openFirst
		case <-time.After(wait):
		}
	}
}

// setService makes a Service available.
func (s *Shared) setService(svc *service.Service) {
	s.turn.Lock() // queueUnopened
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.svc, s.fault, s.since = svc, nil, time.Time{}
	if svc.Ledger.Member() != nil {
		s.mark = svc.Ledger.Member().Mark
	}
}

// keepUp runs the housekeeping of the Service and retries it after a failure.
func (s *Shared) keepUp(ctx context.Context, svc *service.Service) error {
	for {
		err := svc.Run(ctx)
		if err == nil || errors.Is(err, ipam.ErrHost) {
			return err
		}
		wait := reviewEvery
		if !isAway(err) && !isUnknown(err) {
			s.warn(fmt.Errorf("housekeeping of the shared store failed (removing old events, finishing removals "+
				"and releases): %w; the next try is in a minute", err))
			wait = upkeepAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// systemFails warns about system addresses that are not kept. An unreachable store is reported elsewhere.
func (s *Shared) systemFails(err error) {
	if !isAway(err) && !isUnknown(err) && !errors.Is(err, ipam.ErrHost) {
		s.warn(fmt.Errorf("cannot give or take back system addresses; the next try is in a few seconds: %w", err))
	}
}

// leasesFail is systemFails for leases of DHCP servers.
func (s *Shared) leasesFail(err error) {
	if !isAway(err) && !isUnknown(err) && !errors.Is(err, ipam.ErrHost) {
		s.warn(fmt.Errorf("cannot record the result of a DHCP server's lease; the next try is in a second: %w",
			err))
	}
}

// looking is what Run remembers from one look to the next.
type looking struct {
	reviewed time.Time // the headroom
	warned   string    // the last problem that was reported
}

// look does the work for a reachable store. It warns once about a problem that may pass. It returns an error that
// waiting does not solve.
func (s *Shared) look(ctx context.Context, svc *service.Service, l *looking) error {
	why := s.reach().Err
	if why == nil || untrusted(why) {
		s.keepDoubt(ctx, why)
	}
	if why != nil || svc.Ledger.BeingMended() != nil {
		return nil
	}
	err := s.doAll(ctx, svc, l)
	switch {
	case err == nil:
		l.warned = ""
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ipam.ErrHost):
		return err
	case !isAway(err) && !isUnknown(err) && err.Error() != l.warned:
		l.warned = err.Error()
		s.warn(fmt.Errorf("Berth cannot process this host's notes for the shared store: %w", err))
	}
	return nil
}

func (s *Shared) doAll(ctx context.Context, svc *service.Service, l *looking) error {
	if err := speaks(svc.Ledger); err != nil {
		return err
	}
	if hostState(svc.Ledger) == ipam.HostLeaving {
		return s.inTellingTurn(ctx, func() error { return s.depart(ctx, svc) })
	}
	if s.keeps() {
		if err := s.tell(ctx, svc); err != nil {
			return err
		}
	}
	if time.Since(l.reviewed) < reviewEvery {
		return nil
	}
	l.reviewed = time.Now()
	return s.review(ctx, svc)
}

// depart gives back all that this host has, and then removes the host from the cluster, as requested. The order
// matters, because a removed host cannot write any more.
func (s *Shared) depart(ctx context.Context, svc *service.Service) error {
	if err := s.giveBack(ctx, svc); err != nil {
		return err
	}
	if err := edit.ReleasePools(ctx, svc.Ledger); err != nil {
		return err
	}
	_, err := svc.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveHost{Name: s.host, Off: true})
	return err
}
