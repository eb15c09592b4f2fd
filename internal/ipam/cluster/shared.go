package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
)

// Shared is one host's part of a cluster: the Service over the shared store, and what the host does while that store is
// unreachable. Meanwhile the host's own store holds what must not be lost: releases that have yet to be delivered
// (outbox.go), and addresses claimed in advance (headroom.go).
//
// Two rules make that safe. The host delivers everything before it makes another request, so a delivery can never
// concern a later lease. And an address enters the host's own store only after it is claimed in the shared one, and
// leaves it before it is released there.
type Shared struct {
	own   store.Store // of the host
	mark  [4]byte
	host  string
	now   func() time.Time
	reach func() store.Reach
	open  func(context.Context) (*service.Service, error)
	warn  func(error)

	written   func(context.Context) (store.Written, error)
	forgotten func()

	recalling   sync.Mutex // for remembering; held while the disk writes
	recall      recall
	recallStale bool // what is remembered differs from what was written last

	openMend func(ctx context.Context, dry bool) (MendStore, error)
	trust    func(store.Trace)
	see      func(context.Context) (*ipam.EngineView, error)
	mending  sync.Mutex // held while the store is being mended

	turn    sync.Mutex    // for writes to own; held while the disk writes
	telling chan struct{} // holds a token during a delivery to the shared store
	wake    chan struct{} // makes Run look at once
	tried   chan struct{} // closed after the first attempt to open the store
	once    sync.Once     // closes tried
	asking  keyedLock[endpoint]
	started time.Time

	mu       sync.Mutex       // guards the following fields; never held during a wait
	doubted  time.Time        // since when the store is not trusted, as in own; zero: trusted
	svc      *service.Service // nil: not opened yet
	fault    error            // why it is not opened, or why Run has ended
	since    time.Time        // of the fault
	outbox   []queuedRelease  // as in own, in order
	nextSeq  uint64
	headroom map[ipam.ID]*headroom // as in own, by attachment
	inUse    int                   // number of headroom addresses to report to the shared store
}

// SharedConfig is what a Shared needs.
type SharedConfig struct {
	Own  store.Store // the host's own
	Mark [4]byte     // of the cluster; zero if unknown
	Host string
	// Open opens the Service over the shared store. It is called again after a while if it fails with store.ErrAway.
	Open  func(ctx context.Context) (*service.Service, error)
	Reach func() store.Reach
	// Written returns the changed records of the shared store, for remembering. Forgotten makes the next call return
	// all of them (recall.go). nil: nothing is remembered.
	Written   func(context.Context) (store.Written, error)
	Forgotten func()
	// Mend opens the shared store for mending; the writes of a dry run are lost. Trust marks the store as trusted up to
	// the trace. See returns what runs on this host; nil if nobody knows. If all are nil, this host cannot mend.
	Mend  func(ctx context.Context, dry bool) (MendStore, error)
	Trust func(store.Trace)
	See   func(context.Context) (*ipam.EngineView, error)
	Now   func() time.Time // default: time.Now
	// Warn receives problems for a person that no caller sees; nil: they are dropped.
	Warn func(error)
}

// OpenShared reads what the host has stored and returns at once. Run opens the shared store.
func OpenShared(ctx context.Context, cfg SharedConfig) (*Shared, error) {
	s := &Shared{own: cfg.Own, mark: cfg.Mark, host: cfg.Host, now: cfg.Now, reach: cfg.Reach, open: cfg.Open,
		warn:    cfg.Warn,
		written: cfg.Written, forgotten: cfg.Forgotten, openMend: cfg.Mend, trust: cfg.Trust, see: cfg.See,
		telling: make(chan struct{}, 1), wake: make(chan struct{}, 1), tried: make(chan struct{}),
		headroom: map[ipam.ID]*headroom{}}
	if s.now == nil {
		s.now = time.Now
	}
	if s.warn == nil {
		s.warn = func(error) {}
	}
	s.started = s.now()
	s.fault, s.since = errors.New("the daemon has not reached it since the daemon started"), s.now()
	err := s.own.View(ctx, func(tx store.Tx) (err error) {
		if s.outbox, s.nextSeq, err = readOutbox(tx); err != nil {
			return err
		}
		if s.doubted, err = readDoubted(tx); err != nil {
			return err
		}
		if !s.doubted.IsZero() {
			s.fault = &store.Back{Why: "this host found that out when it last reached the store", Since: s.doubted}
			s.since = s.doubted
		}
		s.headroom, err = readHeadroom(tx)
		for _, hr := range s.headroom {
			s.inUse += len(hr.toTell())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what this host keeps for the shared store: %w", err)
	}
	return s, nil
}

// service returns the Service over the shared store, or the reason why there is none yet. Once opened, it is available
// during an outage, too. Its data then have the age that State returns.
func (s *Shared) service() (*service.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.svc != nil {
		return s.svc, nil
	}
	if errors.Is(s.fault, ipam.ErrHost) {
		return nil, s.fault
	}
	return nil, &outOfReach{Why: s.fault, Since: s.since}
}

// within returns the Service if the store seems reachable, or else the reason.
func (s *Shared) within() (*service.Service, error) {
	svc, err := s.service()
	if err != nil {
		return nil, err
	}
	if r := s.reach(); r.Err != nil {
		return nil, &outOfReach{Why: r.Err, Since: s.doubtedSince(r.Err, r.Since)}
	}
	if mark := svc.Ledger.BeingMended(); mark != nil {
		return nil, &outOfReach{Why: mark, Since: mark.Since}
	}
	return svc, nil
}

// untrusted returns the refusal for a store that is not trusted, or nil.
func (s *Shared) untrusted() error {
	if r := s.reach(); untrusted(r.Err) {
		return &outOfReach{Why: r.Err, Since: s.doubtedSince(r.Err, r.Since)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if untrusted(s.fault) {
		return &outOfReach{Why: s.fault, Since: s.since}
	}
	if s.svc != nil {
		if mark := s.svc.Ledger.BeingMended(); mark != nil {
			return &outOfReach{Why: mark, Since: mark.Since}
		}
	}
	return nil
}

// isAway reports whether a request failed because the store was unreachable, without any change.
func isAway(err error) bool { return errors.Is(err, ipam.ErrAway) && !isUnknown(err) }

// patience bounds how long a request waits for deliveries. With the time that the store itself takes to answer or fail,
// that makes less than 2 s.
const patience = 400 * time.Millisecond

// ready returns the Service after everything is delivered. If the store is unreachable the error wraps ErrAway; if that
// is known, it returns at once.
func (s *Shared) ready(ctx context.Context) (*service.Service, error) {
	s.awaitFirst(ctx)
	svc, err := s.within()
	if err != nil {
		return svc, err
	}
	if !s.keeps() {
		return svc, nil
	}
	begun := time.Now()
	hurried, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.tell(hurried, svc)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded), err == nil && time.Since(begun) > patience:
		return nil, &outOfReach{Why: errors.New("this host's kept releases take too long to send"),
			Since: s.now()}
	case isAway(err), isUnknown(err):
		return nil, s.away(err)
	case err != nil:
		return nil, err
	}
	return svc, nil
}

// firstPatience bounds how long a request waits for the first attempt to open the store. An engine asks as soon as the
// daemon listens, and does not retry the start of a container that is refused.
const firstPatience = 1500 * time.Millisecond

func (s *Shared) awaitFirst(ctx context.Context) {
	select {
	case <-s.tried:
		return
	default:
	}
	over := time.NewTimer(firstPatience)
	defer over.Stop()
	select {
	case <-s.tried:
	case <-ctx.Done():
	case <-over.C:
	}
}

// endFirst ends the wait for the first attempt.
func (s *Shared) endFirst() { s.once.Do(func() { close(s.tried) }) }

// away returns the refusal for a request that the store answered with ErrAway.
func (s *Shared) away(err error) error {
	var told *outOfReach
	if errors.As(err, &told) {
		return err
	}
	if untrusted(err) && !isUnknown(err) { // it may be trusted again by now, but was not when it was asked
		return &outOfReach{Why: err, Since: s.doubtedSince(err, s.now())}
	}
	if r := s.reach(); r.Err != nil {
		return &outOfReach{Why: r.Err, Since: r.Since}
	}
	return &outOfReach{Why: errors.New(err.Error()), Since: s.now()} // the outcome of this request is known
}

// poke makes Run look at once. It never waits.
func (s *Shared) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
