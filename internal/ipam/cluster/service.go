package cluster

import (
	"context"
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// Service serves a host that shares a store, in the same way as the service.Service of a host that does not. Reads go
// to the ledgers that have the records (ledger.Homes). The engine's requests and changes of the plan go to one of the
// two stores. A Shared makes those of the cluster, and continues while its store is unreachable.
type Service struct {
	*service.Service
	homes  ledger.Homes
	local  *service.Service // over the host's own store
	shared *Shared
}

// NewService combines a host's own Service with its Shared.
func NewService(local *service.Service, shared *Shared) *Service {
	homes := ledger.Sharing(local.Ledger, func() (*ledger.Ledger, error) {
		s, err := shared.service()
		if err != nil {
			return nil, err
		}
		return s.Ledger, nil
	})
	return &Service{service.Over(homes), homes, local, shared}
}

// RequestPool is Service.RequestPool in the store of the network that the request names, or else of its space.
func (e *Service) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	own, err := e.ownsRequest(&req)
	switch {
	case err != nil:
		return ipam.PoolGrant{}, err
	case own:
		if l, is := e.homes.Reached(); is {
			req.Docker = allocator.LessHeld(l, req.Docker)
		}
		return e.local.RequestPool(ctx, req)
	}
	req.Docker = allocator.LessHeld(e.local.Ledger, req.Docker)
	return e.shared.RequestPool(ctx, req)
}

// ownsRequest reports whether a pool request belongs to the host's own store. A network that neither store has belongs
// to the cluster, because another host may just have created it.
func (e *Service) ownsRequest(req *ipam.PoolRequest) (bool, error) {
	if req.Network == "" {
		return e.homes.OwnsSpace(req.Space), nil
	}
	if req.Swarm {
		if repeats(e.local.Ledger, *req) {
			return true, nil
		}
		if l, is := e.homes.Reached(); is && repeats(l, *req) {
			return false, nil
		}
	}
	n, own, err := e.homes.Find(req.Network, req.Space)
	return n != nil && own, err
}

// repeats reports whether a swarm manager's request repeats one whose attachment is in this store. The request has the
// name that the network had then.
func repeats(s *ledger.Ledger, req ipam.PoolRequest) bool {
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		allocator.SinceRenamed(ix, &req)
		return req.Network != req.Asked.Network
	})
}

// ReleasePool is Service.ReleasePool in the store that has the pool.
func (e *Service) ReleasePool(ctx context.Context, pool ipam.ID) error {
	if e.local.Ledger.Knows(pool) {
		return e.local.ReleasePool(ctx, pool)
	}
	return e.shared.ReleasePool(ctx, pool)
}

// RequestAddress is Service.RequestAddress in the store that has the pool.
func (e *Service) RequestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	if e.local.Ledger.Knows(req.Pool) {
		return e.local.RequestAddress(ctx, req)
	}
	return e.shared.RequestAddress(ctx, req)
}

// ReleaseAddress is Service.ReleaseAddress in the store that has the pool.
func (e *Service) ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	if e.local.Ledger.Knows(pool) {
		return e.local.ReleaseAddress(ctx, pool, addr)
	}
	return e.shared.ReleaseAddress(ctx, pool, addr)
}

// Waiting is Service.Waiting of both stores. For the cluster's, it also counts uses of headroom.
func (e *Service) Waiting() int { return e.local.Waiting() + e.shared.State().Waiting }

// Import is Service.Import in the store that the plan concerns. It refuses a plan that concerns both.
func (e *Service) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	own, err := e.ownsPlan(&p)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	if own {
		return e.local.Import(ctx, p, opt)
	}
	s, err := e.shared.service()
	if err != nil {
		return ipam.ImportReport{}, ipam.Refuse(err, "the plan is not for this host's own store, and %s", err)
	}
	return s.Import(ctx, p, opt)
}

// ownsPlan reports whether a plan concerns the host's own store.
func (e *Service) ownsPlan(p *ipam.Plan) (own bool, err error) {
	var wrong ipam.PlanError
	of := map[bool]*ipam.PlannedNetwork{} // the first network of each store
	for i := range p.Networks {
		n := &p.Networks[i]
		own, err := e.ownsPlanned(n)
		if err != nil {
			wrong.Add(n.Line, "%s", err)
		} else if of[own] == nil {
			of[own] = n
		}
	}
	if err := wrong.Err(); err != nil {
		return false, err
	}
	for i := range p.Networks {
		n := &p.Networks[i]
		if of[true] != nil && n.Elastic != "" && n.Elastic != ipam.ElasticOff.String() {
			wrong.Add(n.Line, "network %s would be in this host's own store; a cluster maps elastic addresses only "+
				"on networks of its own spaces; leave elastic out, or choose another space", called(n))
		}
	}
	if err := wrong.Err(); err != nil {
		return false, err
	}
	if p.Elastic != nil && of[true] != nil {
		return false, ipam.Refuse(ipam.ErrInvalid, "the plan has networks of this host's own store (%s), and "+
			"elastic addresses, which belong to the cluster; import each store's part separately", called(of[true]))
	}
	if of[true] != nil && of[false] != nil {
		return false, ipam.Refuse(ipam.ErrInvalid,
			"the plan has networks of this host's own store (%s) and of the cluster's (%s); import each store's "+
				"part separately",
			called(of[true]), called(of[false]))
	}
	return of[false] == nil && p.Elastic == nil, nil
}

// ownsPlanned reports whether a network of a plan belongs to the host's own store. An existing network stays in its
// store, and a new one follows its space.
func (e *Service) ownsPlanned(p *ipam.PlannedNetwork) (bool, error) {
	own := e.homes.OwnsSpace(p.Space)
	if p.Name == "" {
		return own, nil
	}
	n, has, err := e.homes.Find(p.Name, p.Space)
	switch {
	case err != nil:
		return false, err
	case n == nil:
		return own, nil
	case p.Space == "" || p.Space == n.Space || has == own:
		return has, nil
	}
	return false, ipam.Refuse(ipam.ErrInUse,
		"network %s already exists in the space %s, and names are unique; choose another", p.Name, n.Space)
}

// called names a network of a plan for a person.
func called(p *ipam.PlannedNetwork) string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Space == "":
		return "without a name in the space " + ipam.LocalSpace
	}
	return "without a name in the space " + p.Space
}

// Check is Service.Check of both stores, and CheckOwn. If the cluster's store was never reached, that is a problem,
// too, because nothing is known of it.
func (e *Service) Check(ctx context.Context) ([]string, error) {
	problems, err := e.local.Check(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := CheckOwn(ctx, e.shared.own)
	if err != nil {
		return nil, err
	}
	problems = append(problems, kept...)
	s, away := e.shared.service()
	if away != nil {
		return append(problems, "the cluster's store was not checked: "+away.Error()), nil
	}
	theirs, err := s.Check(ctx)
	for _, p := range theirs {
		problems = append(problems, "in the cluster's store: "+p)
	}
	return problems, err
}
