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

// Shared is one host's half of a cluster: the Service over the shared store, and what the host does while that is out
// of reach. It keeps what it must not forget meanwhile in the host's own store: releases that the shared store has not
// been told of (outbox.go), and addresses that are claimed there in advance (headroom.go).
//
// Two rules make that safe. What the host has kept is told before it asks for anything else, so that nothing of it can
// be about a later lease. And what it takes to be its own is so: an address enters the host's own store after it was
// claimed in the shared one, and leaves it before it is given back there.
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

	recalling   sync.Mutex // of remembering; held while the disk writes
	recall      recall
	recallStale bool // what is remembered is another thing than what was written last

	openMend func(ctx context.Context, dry bool) (MendStore, error)
	trust    func(store.Trace)
	see      func(context.Context) (*ipam.EngineView, error)
	mending  sync.Mutex // held while the store is mended

	turn    sync.Mutex    // of writing to own; held while the disk writes
	telling chan struct{} // holds a token while the shared store is told what was kept
	wake    chan struct{} // has Run look at once
	tried   chan struct{} // closed when the store was opened for the first time, or could not be
	once    sync.Once     // closes it
	asking  keyedLock[endpoint]
	started time.Time

	mu       sync.Mutex       // guards what follows, and is never held while anything waits
	doubted  time.Time        // since when the store is not trusted, as in own; zero: it is
	svc      *service.Service // nil: it was not opened yet
	fault    error            // why it was not, or why Run has ended
	since    time.Time        // of the fault
	outbox   []queuedRelease  // as in own, in order
	nextSeq  uint64
	headroom map[ipam.ID]*headroom // likewise, by attachment
	inUse    int                   // addresses of them of which the shared store is to be told
}

// SharedConfig is what a Shared needs.
type SharedConfig struct {
	Own  store.Store // the host's own
	Mark [4]byte     // of the cluster; zero where it is not known yet
	Host string
	// Open opens the Service over the shared store. It is called again, after a while, as long as it fails with
	// store.ErrAway.
	Open  func(ctx context.Context) (*service.Service, error)
	Reach func() store.Reach
	// Written tells what has become of the shared store's records, to be remembered, and Forgotten has it tell all of
	// them the next time (recall.go). nil: nothing is remembered.
	Written   func(context.Context) (store.Written, error)
	Forgotten func()
	// Mend opens the shared store to be mended; what is written to one that is opened for a dry run is lost. Trust has
	// the store be trusted again, which is as far as the trace says. See tells what runs on this host; nil where nobody
	// knows. nil, all: it is not mended here.
	Mend  func(ctx context.Context, dry bool) (MendStore, error)
	Trust func(store.Trace)
	See   func(context.Context) (*ipam.EngineView, error)
	Now   func() time.Time // default: time.Now
	// Warn is told what a person should know of and no caller hears; nil: nobody is.
	Warn func(error)
}

// OpenShared reads what the host has kept, and returns at once; Run opens the shared store.
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
	s.fault, s.since = errors.New("it has not been reached since the daemon began"), s.now()
	err := s.own.View(ctx, func(tx store.Tx) (err error) {
		if s.outbox, s.nextSeq, err = readOutbox(tx); err != nil {
			return err
		}
		if s.doubted, err = readDoubted(tx); err != nil {
			return err
		}
		s.headroom, err = readHeadroom(tx)
		for _, hr := range s.headroom {
			s.inUse += len(hr.toTell())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what this host kept for the shared store: %w", err)
	}
	return s, nil
}

// service is the Service over the shared store, or the reason why there is none yet. It is there while the store is out
// of reach, too, once it was opened: what is read from it then has the age that State tells.
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

// within is the Service where the store is in reach, as far as is known, and else why it is not.
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

// untrusted is the refusal of a store that is not trusted; nil: it is, as far as is known.
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

// isAway tells whether a request failed because the store was out of reach, with nothing changed.
func isAway(err error) bool { return errors.Is(err, ipam.ErrAway) && !isUnknown(err) }

// patience is how long a request waits until the store has been told what was kept. With the time that the store itself
// takes to answer, or to give up, that makes less than 2 s.
const patience = 400 * time.Millisecond

// ready is the Service, once it has been told what this host kept. Out of reach of it the error wraps ErrAway, at once
// where that is known.
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
		return nil, &outOfReach{Why: errors.New("it is being told what this host has kept, which takes long"),
			Since: s.now()}
	case isAway(err), isUnknown(err):
		return nil, s.away(err)
	case err != nil:
		return nil, err
	}
	return svc, nil
}

// firstPatience is how long a request waits for the first attempt to open the store: an engine that starts asks as soon
// as the daemon listens, and starts a container that is refused no second time.
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

// endFirst ends the waiting for the first attempt.
func (s *Shared) endFirst() { s.once.Do(func() { close(s.tried) }) }

// away is the refusal that a request gets which the store answered with ErrAway.
func (s *Shared) away(err error) error {
	var told *outOfReach
	if errors.As(err, &told) {
		return err
	}
	if r := s.reach(); r.Err != nil {
		return &outOfReach{Why: r.Err, Since: r.Since}
	}
	return &outOfReach{Why: errors.New(err.Error()), Since: s.now()} // of this request nothing is unknown
}

// poke has Run look at once. It never waits.
func (s *Shared) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
