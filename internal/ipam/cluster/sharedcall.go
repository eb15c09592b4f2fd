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

// The engine's calls, like those of Service. During an outage they answer within 2 s. A new pool or address is refused
// with ErrAway, unless the headroom has an address. A release succeeds and is queued. If an outcome is unknown nothing
// is leased, and the release of exactly what may have been made is queued.

// RequestPool is Service.RequestPool.
func (s *Shared) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	svc, err := s.ready(ctx)
	if err != nil {
		return ipam.PoolGrant{}, err
	}
	grant, err := svc.RequestPool(ctx, req)
	switch {
	case err == nil:
		s.poke() // to claim headroom
		return grant, nil
	case isUnknown(err) && grant.ID != (ipam.ID{}):
		return ipam.PoolGrant{}, s.takeBack(ctx, queuedRelease{Pool: grant.ID}, "the subnet "+grant.CIDR.String(), err)
	case isAway(err):
		err = s.away(err)
	}
	return ipam.PoolGrant{}, err
}

// takeBack queues the release of what may have been made, and returns the refusal.
func (s *Shared) takeBack(ctx context.Context, p queuedRelease, what string, unknown error) error {
	if err := s.queue(ctx, p); err != nil {
		return errors.Join(unknown, err)
	}
	s.poke()
	return ipam.Refuse(store.ErrUnknown,
		"the shared store did not answer in time (%v), so Berth does not give %s; if the store recorded it anyway, "+
			"Berth releases it once the store answers: try again then",
		unknown, what)
}

// ReleasePool is Service.ReleasePool. It queues the release in any case, which ends the attachment's headroom on this
// host first. So the headroom is not used after the release, and none is claimed.
func (s *Shared) ReleasePool(ctx context.Context, pool ipam.ID) error {
	if err := s.queuePool(ctx, pool); err != nil {
		return err
	}
	_, err := s.ready(ctx)
	s.poke()
	if ctx.Err() != nil || isAway(err) || allocator.CannotWrite(err) || errors.Is(err, ipam.ErrHost) {
		return nil // it is delivered later
	}
	return err
}

// RequestAddress is Service.RequestAddress. An endpoint gets back an address that it lost, even during an outage.
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

// addressLost answers a request whose outcome is unknown. It queues the release of what may have been taken, and then
// uses the headroom.
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

// lastResort leases an address of this host's own headroom if no other is free, or if exactly that one is requested. It
// reports the use to the store at once if time allows.
func (s *Shared) lastResort(ctx context.Context, svc *service.Service, req ipam.AddressRequest, begun time.Time,
	refused error) (netip.Prefix, error) {
	given, err := s.fromHeadroom(ctx, svc, req)
	if err != nil || !given.IsValid() {
		return netip.Prefix{}, refused
	}
	if left := patience - time.Since(begun); left > 0 {
		hurried, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		_ = s.tell(hurried, svc) // otherwise later: the address is claimed and its use is durable
	}
	s.poke()
	return given, nil
}

// addressAway answers during an outage: a repeated request with its lease, any other from the headroom.
func (s *Shared) addressAway(ctx context.Context, req ipam.AddressRequest, refused error) (netip.Prefix, error) {
	if untrusted(refused) {
		return netip.Prefix{}, refused
	}
	if s.isQueued(queuedRelease{Pool: req.Pool}) {
		return netip.Prefix{}, ipam.Refuse(ipam.ErrNotFound, "pool %s was released", req.Pool)
	}
	// This comes first. A delivery can only move a use from here to the store.
	if given, err := s.usedBefore(ctx, req); err != nil {
		return given, err
	} else if given.IsValid() {
		return given, nil
	}
	svc, _ := s.service()
	if svc != nil {
		given, err := given(ctx, svc.Ledger, req, s.unreported(req.Pool))
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

// unreported returns a function. It reports whether this host has nothing to deliver about a lease of an attachment:
// neither its end nor its holder. Call unreported before you read the leases, because a delivery in between removes the
// entry here.
func (s *Shared) unreported(pool ipam.ID) func(*ipam.Lease) bool {
	released, claimed := s.queuedFor(pool), s.headroomOf(pool)
	return func(l *ipam.Lease) bool {
		if claimed != nil && claimed.addrs[l.Address].Lease == l.ID {
			// the store may know the holder although its answer was lost, but this host knows what happened since
			return false
		}
		return !slices.ContainsFunc(released, func(p queuedRelease) bool { return p.isOf(l) })
	}
}

// given returns the address that the requester had and lost, as far as known here. lasts selects leases that are still
// valid. It returns the zero prefix if there is none.
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

// alreadyGiven returns the address that answers req without a new lease, or the zero address. It also returns the id of
// the lease that the endpoint has again.
func alreadyGiven(t *allocator.Target, req ipam.AddressRequest, lasts func(*ipam.Lease) bool) (addr netip.Addr,
	lease uint64, err error) {
	if gateway := t.Sub.Gateway; req.Gateway && gateway.IsValid() &&
		(!req.Preferred.IsValid() || req.Preferred == gateway) {
		return gateway, 0, nil
	}
	switch {
	case req.Gateway && req.Preferred.IsValid():
		held, err := t.Record(req.Preferred)
		if err == nil && held.Held() && lasts(held) && held.Kind == ipam.Gateway && held.Attachment == t.At.ID {
			return req.Preferred, 0, nil
		}
		return netip.Addr{}, 0, err
	case req.Gateway, req.MAC == (ipam.MAC{}) && !req.Preferred.IsValid():
		return netip.Addr{}, 0, nil // requests without a MAC do not wait for one another (endpoint)
	}
	lost, err := t.Repeated(&req, lasts)
	if err != nil || lost == nil {
		return netip.Addr{}, 0, err
	}
	return lost.Address, lost.ID, nil
}

// ReleaseAddress is Service.ReleaseAddress.
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

// releaseLater queues a release. It names the lease, unless the daemon has not reached the store yet. Then the
// attachment suffices, because nothing is taken through it before the release is delivered.
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
	p.Lease, err = allocator.HeldLease(ctx, svc.Ledger, pool, addr)
	if isAway(err) { // the latest commits cannot be read yet, as before the store is opened
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

// queueUnopened queues a release if the shared store was not opened yet. The store cannot be opened and used before the
// release is queued.
func (s *Shared) queueUnopened(ctx context.Context, p queuedRelease) (queued bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if svc, _ := s.service(); svc != nil {
		return false, nil
	}
	return true, s.queueInTurn(ctx, p)
}

// Edit makes edits in the shared store, after everything is delivered.
func (s *Shared) Edit(ctx context.Context, opt ipam.EditOptions, edits ...ipam.Edit) (ipam.Outcome, error) {
	svc, err := s.ready(ctx)
	if err != nil {
		return ipam.Outcome{}, err
	}
	out, err := svc.Edit(ctx, opt, edits...)
	if isAway(err) {
		err = s.away(err)
	}
	s.poke() // a network's headroom may have changed
	return out, err
}

// endpoint identifies who requests an address, as far as possible. Requests of one endpoint run one after the other.
// Otherwise the second could be answered with a lease whose release the first one queues.
type endpoint struct {
	pool ipam.ID
	mac  ipam.MAC
}

// keyedLock is a mutex for each key.
type keyedLock[K comparable] struct {
	mu   sync.Mutex
	held map[K]*keyLock
}

type keyLock struct {
	sync.Mutex
	users int
}

// lock locks a key and returns the function that unlocks it.
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
