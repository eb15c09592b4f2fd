package cluster

import (
	"context"
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/view"
)

// RequestPool is Service.RequestPool in the store that the request is about: of the network that it names, else of its
// space.
func (e *Estate) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	own, err := e.ownsRequest(&req)
	switch {
	case err != nil:
		return ipam.PoolGrant{}, err
	case own:
		req.Docker = e.shared.lessHeld(req.Docker)
		return e.local.RequestPool(ctx, req)
	}
	req.Docker = allocator.LessHeld(e.local.Ledger, req.Docker)
	return e.shared.RequestPool(ctx, req)
}

// ownsRequest tells whether a request for a pool is the host's own store's. A network that neither store is known to
// have is the cluster's: somebody may just have made it.
func (e *Estate) ownsRequest(req *ipam.PoolRequest) (bool, error) {
	if req.Network == "" {
		return ownsSpace(e.local.Ledger, req.Space), nil
	}
	if req.Swarm {
		if repeats(e.local.Ledger, *req) {
			return true, nil
		}
		if s, err := e.shared.service(); err == nil && repeats(s.Ledger, *req) {
			return false, nil
		}
	}
	n, own, err := e.find(req.Network, req.Space)
	return n != nil && own, err
}

// repeats tells whether a swarm manager's request repeats one whose attachment is here: it says the name that a network
// had then.
func repeats(s *ledger.Ledger, req ipam.PoolRequest) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		allocator.SinceRenamed(ix, &req)
		return req.Network != req.Asked.Network
	})
}

// ReleasePool is Service.ReleasePool in the store that has the pool.
func (e *Estate) ReleasePool(ctx context.Context, pool ipam.ID) error {
	if e.local.Ledger.Knows(pool) {
		return e.local.ReleasePool(ctx, pool)
	}
	return e.shared.ReleasePool(ctx, pool)
}

// RequestAddress is Service.RequestAddress in the store that has the pool.
func (e *Estate) RequestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	if e.local.Ledger.Knows(req.Pool) {
		return e.local.RequestAddress(ctx, req)
	}
	return e.shared.RequestAddress(ctx, req)
}

// ReleaseAddress is Service.ReleaseAddress in the store that has the pool.
func (e *Estate) ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	if e.local.Ledger.Knows(pool) {
		return e.local.ReleaseAddress(ctx, pool, addr)
	}
	return e.shared.ReleaseAddress(ctx, pool, addr)
}

// NameLeases is Service.NameLeases, of each lease in the store that has it.
func (e *Estate) NameLeases(ctx context.Context, names []ipam.LeaseName) error {
	of := map[*service.Service][]ipam.LeaseName{}
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

// TellStrays is Service.TellStrays, of each lease in the store that has it.
func (e *Estate) TellStrays(ctx context.Context, strays []ipam.Stray) error {
	of := map[*service.Service][]ipam.Stray{}
	for _, stray := range strays {
		s, err := e.leasing(stray.LeaseRef)
		if err != nil {
			return err
		}
		of[s] = append(of[s], stray)
	}
	for _, s := range e.stores() {
		if err := s.TellStrays(ctx, of[s]); err != nil {
			return err
		}
	}
	return nil
}

// StandIns lists those of both stores, the host's own first.
func (e *Estate) StandIns(ctx context.Context) (all []ipam.StandIn, err error) {
	for _, s := range e.stores() {
		some, err := s.StandIns(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// EndStandIns is Service.EndStandIns in both stores.
func (e *Estate) EndStandIns(ctx context.Context, gone []ipam.StandIn) error {
	for _, s := range e.stores() {
		if err := s.EndStandIns(ctx, gone); err != nil {
			return err
		}
	}
	return nil
}

// Guesses is the sum of both stores' Guesses.
func (e *Estate) Guesses() (sum ipam.GuessCounts) {
	for _, s := range e.stores() {
		n := s.Guesses()
		sum.Made += n.Made
		sum.Wrong += n.Wrong
	}
	return sum
}

// ReplaceLease is Service.ReplaceLease in the store that has the lease.
func (e *Estate) ReplaceLease(ctx context.Context, ref ipam.LeaseRef, req ipam.AddressRequest) (done bool, err error) {
	s, err := e.leasing(ref)
	if err != nil {
		return false, err
	}
	return s.ReplaceLease(ctx, ref, req)
}

// ReleaseLease is Service.ReleaseLease in the store that has the lease.
func (e *Estate) ReleaseLease(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	s, err := e.leasing(ref)
	if err != nil {
		return false, err
	}
	return s.ReleaseLease(ctx, ref)
}

// ForgetMemory is Service.ForgetMemory in the store that has the memory.
func (e *Estate) ForgetMemory(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	s, err := e.leasing(ref)
	if err != nil {
		return false, err
	}
	return s.ForgetMemory(ctx, ref)
}

// leasing is the Service with the subnet that an address is in. A space may be in both stores, until it is copied.
func (e *Estate) leasing(ref ipam.LeaseRef) (*service.Service, error) {
	if ref.Space == ipam.LocalSpace || covers(e.local.Ledger, ref.Space, ref.Address) {
		return e.local, nil
	}
	return e.cluster(ref.Address.String())
}

// covers tells whether a subnet here holds the address.
func covers(s *ledger.Ledger, space string, addr netip.Addr) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		return view.SubnetWith(ix, space, addr) != nil
	})
}
