package cluster

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// The calls of the engine, as those of Service. Out of reach of the store they answer within 2 s: a new pool or address
// is refused with ErrAway, unless the headroom has one; a release succeeds and is queued. Where the outcome is unknown
// nothing is given, and the release of exactly what may have been made is queued.

// RequestPool is that of Service.
func (s *Shared) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	svc, err := s.ready(ctx)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	grant, err := svc.RequestPool(ctx, req)
	switch {
	case err == nil:
		s.poke() // its headroom
		return grant, nil
	case isUnknown(err) && grant.ID != (ipam.ID{}):
		return ipam.PoolGrant{}, s.takeBack(ctx, queuedRelease{Pool: grant.ID}, "the subnet "+grant.CIDR.String(), err)
	case isAway(err):
		err = s.away(err)
	}
	return ipam.PoolGrant{}, err
}

// takeBack queues the release of what may have been made, and says so.
func (s *Shared) takeBack(ctx context.Context, p queuedRelease, what string, unknown error) error {
	if err := s.queue(ctx, p); err != nil {
		return errors.Join(unknown, err)
	}
	s.poke()
	return ipam.Refuse(store.ErrUnknown,
		"the shared store did not answer in time (%v), so that %s is not given; should it have been taken all the "+
			"same, it is given back as soon as the store answers: ask again then",
		unknown, what)
}

// ReleasePool is that of Service. The release is queued in any case, with which the attachment's headroom is the host's
// no more: before it ends in the shared store, and so that none is claimed for it meanwhile.
func (s *Shared) ReleasePool(ctx context.Context, pool ipam.ID) error {
	if err := s.queuePool(ctx, pool); err != nil {
		return err
	}
	_, err := s.ready(ctx)
	s.poke()
	if ctx.Err() != nil || isAway(err) || isUnknown(err) || errors.Is(err, ipam.ErrHost) {
		return nil // it is told later
	}
	return err
}

// RequestAddress is that of Service. What an endpoint has lost it gets out of reach of the store, too.
func (s *Shared) RequestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	given, err := s.requestAddress(ctx, req)
	if err != nil {
		s.leaveBehind(ctx, req)
	}
	return given, err
}

func (s *Shared) requestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	if req.MAC != (ipam.MAC{}) {
		defer s.asking.lock(endpoint{req.Pool, req.MAC})()
	}
	begun := time.Now()
	svc, err := s.ready(ctx)
	if err == nil {
		var given netip.Prefix
		var made *ipam.Lease
		given, made, err = allocator.RequestAddress(ctx, svc.Ledger, req)
		switch {
		case err == nil:
			return given, nil
		case isUnknown(err) && made != nil:
			return s.addressLost(ctx, svc, req, made, err)
		case errors.Is(err, ipam.ErrExhausted) || errors.Is(err, ipam.ErrInUse):
			return s.lastResort(ctx, svc, req, begun, err)
		}
	}
	if isAway(err) || isUnknown(err) {
		return s.addressAway(ctx, req, s.away(err))
	}
	return netip.Prefix{}, err
}

// addressLost answers a request of which it is not known whether it was carried out: once the release of what it may
// have taken is kept, out of the headroom.
func (s *Shared) addressLost(ctx context.Context, svc *service.Service, req ipam.AddressRequest, made *ipam.Lease,
	unknown error) (netip.Prefix, error) {
	refused := s.takeBack(ctx, queuedRelease{Pool: req.Pool, Address: made.Address, Lease: made.ID},
		made.Address.String(), unknown)
	if !s.isQueued(queuedRelease{Pool: req.Pool, Address: made.Address, Lease: made.ID}) {
		return netip.Prefix{}, refused
	}
	given, err := s.fromHeadroom(ctx, svc, req)
	if err != nil || !given.IsValid() {
		return netip.Prefix{}, refused
	}
	return given, nil
}

// lastResort gives an address of this host's own headroom where nothing else is free, or exactly that is asked for, and
// tells the store of it if that takes no time.
func (s *Shared) lastResort(ctx context.Context, svc *service.Service, req ipam.AddressRequest, begun time.Time,
	refused error) (netip.Prefix, error) {
	given, err := s.fromHeadroom(ctx, svc, req)
	if err != nil || !given.IsValid() {
		return netip.Prefix{}, refused
	}
	if left := patience - time.Since(begun); left > 0 {
		hurried, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_ = s.tell(hurried, svc) // else it is told later: the address is claimed, and its use is durable
	}
	s.poke()
	return given, nil
}

// addressAway answers out of reach of the store: a repetition with what there is, and the rest out of the headroom.
func (s *Shared) addressAway(ctx context.Context, req ipam.AddressRequest, refused error) (netip.Prefix, error) {
	if untrusted(refused) {
		return netip.Prefix{}, refused
	}
	if s.isQueued(queuedRelease{Pool: req.Pool}) {
		return netip.Prefix{}, ipam.Refuse(ipam.ErrNotFound, "pool %s was released", req.Pool)
	}
	// First here: what is not here any more is there since before.
	if given, err := s.usedBefore(ctx, req); err != nil {
		return given, err
	} else if given.IsValid() {
		return given, nil
	}
	svc, _ := s.service()
	if svc != nil {
		given, err := given(ctx, svc.Ledger, req, s.untold(req.Pool))
		if err != nil {
			return given, err
		}
		if given.IsValid() {
			return given, nil
		}
	}
	given, err := s.fromHeadroom(ctx, svc, req)
	if err == nil && !given.IsValid() {
		err = refused
	}
	return given, err
}

// untold tells of which leases of an attachment this host has nothing to tell the store: neither that they end, nor who
// has them. It is asked before the leases are read: what is told in between is not there any more, or here.
func (s *Shared) untold(pool ipam.ID) func(*ipam.Lease) bool {
	released, claimed := s.queuedFor(pool), s.headroomOf(pool)
	return func(l *ipam.Lease) bool {
		if claimed != nil && claimed.addrs[l.Address].Lease == l.ID {
			// the store may know who has it by an answer that got lost; what became of him since is known here
			return false
		}
		return !slices.ContainsFunc(released, func(p queuedRelease) bool { return p.isOf(l) })
	}
}

// given is what a request was given before and has lost, as far as is known here, out of the leases that last; the zero
// prefix where there is nothing.
func given(ctx context.Context, s *ledger.Ledger, req ipam.AddressRequest,
	lasts func(*ipam.Lease) bool) (given netip.Prefix, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		t, err := allocator.OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		addr, lease, err := alreadyGiven(t, req, lasts)
		if addr.IsValid() {
			given = netip.PrefixFrom(addr, t.Sub.CIDR.Bits())
		}
		if lease != 0 {
			c.Index().MarkAnswered(lease)
		}
		return err
	})
	return given, err
}

// alreadyGiven is the address that req is answered with without anything being taken, the zero one where there is none,
// and the lease that an endpoint has again with it.
func alreadyGiven(t *allocator.Target, req ipam.AddressRequest, lasts func(*ipam.Lease) bool) (addr netip.Addr,
	lease uint64, err error) {
	if gateway := t.Sub.Gateway; req.Gateway && gateway.IsValid() &&
		(!req.Preferred.IsValid() || req.Preferred == gateway) {
		return gateway, 0, nil
	}
	switch {
	case req.Gateway && req.Preferred.IsValid():
		held, err := t.Lease(t.Sub.ID, req.Preferred)
		if err == nil && held.Held() && lasts(held) && held.Kind == ipam.Gateway && held.Attachment == t.At.ID {
			return req.Preferred, 0, nil
		}
		return netip.Addr{}, 0, err
	case req.Gateway, req.MAC == (ipam.MAC{}) && !req.Preferred.IsValid():
		return netip.Addr{}, 0, nil // of requests without a MAC none waits for the other (endpoint)
	}
	lost, err := t.Repeated(&req, lasts)
	if err != nil || lost == nil {
		return netip.Addr{}, 0, err
	}
	return lost.Address, lost.ID, nil
}

// ReleaseAddress is that of Service.
func (s *Shared) ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	if is, err := s.releaseHeadroom(ctx, pool, addr); is || err != nil {
		s.poke()
		return err
	}
	svc, err := s.ready(ctx)
	if err != nil {
		return s.releaseLater(ctx, pool, addr)
	}
	ended, err := allocator.ReleaseAddress(ctx, svc.Ledger, pool, addr)
	switch {
	case err == nil || hopeless(err):
		return err
	case isUnknown(err) && ended != 0:
		return s.queue(ctx, queuedRelease{Pool: pool, Address: addr, Lease: ended})
	}
	return s.releaseLater(ctx, pool, addr)
}

// releaseLater queues a release. It names the lease, unless the daemon has not reached the store yet: then what it
// knows is that it was taken through this host's attachment, through which nothing is taken before the release is
// delivered.
func (s *Shared) releaseLater(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	ctx = context.WithoutCancel(ctx)
	p := queuedRelease{Pool: pool, Address: addr}
	if queued, err := s.queueUnopened(ctx, p); queued || err != nil {
		return err
	}
	svc, err := s.service()
	if err != nil {
		return err
	}
	p.Lease, err = heldThrough(ctx, svc.Ledger, pool, addr)
	if isAway(err) { // what was committed last cannot be read yet: as where nothing could be read so far
		return s.queue(ctx, p)
	}
	if err != nil {
		return err
	}
	if p.Lease == 0 {
		return nil
	}
	return s.queue(ctx, p)
}

// queueUnopened queues a release if the shared store was not opened yet. It is not opened, and asked for something,
// before the release is in the queue.
func (s *Shared) queueUnopened(ctx context.Context, p queuedRelease) (queued bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if svc, _ := s.service(); svc != nil {
		return false, nil
	}
	return true, s.queueInTurn(ctx, p)
}

// heldThrough is the id of the lease of an address that an attachment has, as far as is known here; 0 where it has
// none.
func heldThrough(ctx context.Context, s *ledger.Ledger, pool ipam.ID, addr netip.Addr) (lease uint64, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		t, err := allocator.OpenTarget(c, pool)
		if errors.Is(err, ipam.ErrNotFound) || err == nil && !t.Sub.CIDR.Contains(addr) {
			return nil
		}
		if err != nil {
			return err
		}
		held, err := t.Lease(t.Sub.ID, addr)
		if err == nil && held.Held() && held.Attachment == pool && held.Kind != ipam.Headroom {
			lease = held.ID
		}
		return err
	})
	return lease, err
}

// Edit makes edits in the shared store, after what waits was delivered.
func (s *Shared) Edit(ctx context.Context, opt ipam.EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
	svc, err := s.ready(ctx)
	if err != nil {
		return ipam.Outcome{}, err
	}
	out, err := svc.Edit(ctx, opt, edits...)
	if isAway(err) {
		err = s.away(err)
	}
	s.poke() // a network's headroom may be another
	return out, err
}

// endpoint is who asks for an address, as far as it can be told. Of several requests of one endpoint each sees what
// became of the one before: the second one must not be answered with a lease whose release the first one queues.
type endpoint struct {
	pool ipam.ID
	mac  ipam.MAC
}

// keyedLock is a mutex for each key. The zero key locks nothing but itself.
type keyedLock[K comparable] struct {
	mu   sync.Mutex
	held map[K]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock returns what unlocks.
func (l *keyedLock[K]) lock(k K) (unlock func()) {
	l.mu.Lock()
	if l.held == nil {
		l.held = map[K]*keyLock{}
	}
	one := l.held[k]
	if one == nil {
		one = &keyLock{}
		l.held[k] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.held, k)
		}
	}
}
