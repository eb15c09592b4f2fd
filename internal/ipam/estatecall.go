package ipam

import (
	"context"
	"net/netip"
)

// RequestPool is Service.RequestPool in the store that the request is about: of the network that it names, else of its space.
func (e *Estate) RequestPool(ctx context.Context, req PoolRequest) (PoolGrant, error) {
	own, err := e.ownsRequest(&req)
	switch {
	case err != nil:
		return PoolGrant{}, err
	case own:
		return e.local.RequestPool(ctx, req)
	}
	return e.shared.RequestPool(ctx, req)
}

// ownsRequest tells whether a request for a pool is the host's own store's. A network that neither store is known to have is
// the cluster's: somebody may just have made it.
func (e *Estate) ownsRequest(req *PoolRequest) (bool, error) {
	if req.Network == "" {
		return e.local.ownsSpace(req.Space), nil
	}
	if req.Swarm {
		if e.local.repeats(*req) {
			return true, nil
		}
		if s, err := e.shared.service(); err == nil && s.repeats(*req) {
			return false, nil
		}
	}
	n, own, err := e.find(req.Network, req.Space)
	return n != nil && own, err
}

// repeats tells whether a swarm manager's request repeats one whose attachment is here: it says the name that a network had then.
func (s *Service) repeats(req PoolRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	(&change{ix: s.ix}).sinceRenamed(&req)
	return req.Network != req.asked.network
}

// ReleasePool is Service.ReleasePool in the store that has the pool.
func (e *Estate) ReleasePool(ctx context.Context, pool ID) error {
	if e.local.knows(pool) {
		return e.local.ReleasePool(ctx, pool)
	}
	return e.shared.ReleasePool(ctx, pool)
}

// RequestAddress is Service.RequestAddress in the store that has the pool.
func (e *Estate) RequestAddress(ctx context.Context, req AddressRequest) (netip.Prefix, error) {
	if e.local.knows(req.Pool) {
		return e.local.RequestAddress(ctx, req)
	}
	return e.shared.RequestAddress(ctx, req)
}

// ReleaseAddress is Service.ReleaseAddress in the store that has the pool.
func (e *Estate) ReleaseAddress(ctx context.Context, pool ID, addr netip.Addr) error {
	if e.local.knows(pool) {
		return e.local.ReleaseAddress(ctx, pool, addr)
	}
	return e.shared.ReleaseAddress(ctx, pool, addr)
}

// NameLeases is Service.NameLeases, of each lease in the store that has it.
func (e *Estate) NameLeases(ctx context.Context, names []LeaseName) error {
	of := map[*Service][]LeaseName{}
	for _, name := range names {
		s, err := e.leasing(name.LeaseRef)
		if err != nil {
			return err
		}
		of[s] = append(of[s], name)
	}
	for _, s := range e.stores() {
		if err := s.NameLeases(ctx, of[s]); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseLease is Service.ReleaseLease in the store that has the lease.
func (e *Estate) ReleaseLease(ctx context.Context, ref LeaseRef) (done bool, err error) {
	s, err := e.leasing(ref)
	if err != nil {
		return false, err
	}
	return s.ReleaseLease(ctx, ref)
}

// ForgetMemory is Service.ForgetMemory in the store that has the memory.
func (e *Estate) ForgetMemory(ctx context.Context, ref LeaseRef) (done bool, err error) {
	s, err := e.leasing(ref)
	if err != nil {
		return false, err
	}
	return s.ForgetMemory(ctx, ref)
}

// leasing is the Service with the subnet that an address is in. A space may be in both stores, until it is copied.
func (e *Estate) leasing(ref LeaseRef) (*Service, error) {
	if ref.Space == LocalSpace || e.local.covers(ref.Space, ref.Address) {
		return e.local, nil
	}
	return e.cluster(ref.Address.String())
}

// covers tells whether a subnet here holds the address.
func (s *Service) covers(space string, addr netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ix.subnetWith(space, addr) != nil
}
