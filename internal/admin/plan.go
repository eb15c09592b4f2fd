package admin

import (
	"cmp"
	"context"
	"net/netip"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// planRoutes lists the operations of the plan: networks and their contents. Edits make all changes.
func (s *Server) planRoutes() []route {
	return []route{
		raw(api.PostEdits, s.edits),
		bind(api.GetNetworks, s.networks),
		shown(api.GetNetwork, s.network),
		shown(api.GetNetworkSubnets, s.networkSubnets),
		shown(api.GetPools, s.pools),
		shown(api.GetExclusions, s.exclusions),
		shown(api.GetReservations, s.reservations),
		shown(api.GetNetworkReservations, s.reservations),
		shown(api.GetAddresses, s.addresses),
		shown(api.GetNetworkAddresses, s.addresses),
		bind(api.GetEnvironment, s.environment),
		bind(api.GetFree, s.free),
		bind(api.GetNextFree, s.nextFree),
		bind(api.PostScan, s.scan),
		shown(api.GetSubnet, s.subnet),
		bind(api.GetAvailable, s.available),
		raw(api.PostAvailable, s.takeNext),
	}
}

func (s *Server) networks(ctx context.Context, req api.NetworksRequest) (list api.NetworkList, err error) {
	if err := s.knowsSpace(ctx, req.Space); err != nil {
		return list, err
	}
	f := ipam.NetworkFilter{Space: req.Space, Limit: req.Most + 1}
	after, err := part(req.Cursor, 1)
	if err != nil {
		return list, err
	}
	if after != nil {
		f.After = after[0]
	}
	all, err := s.cfg.Service.Networks(ctx, f)
	if err != nil {
		return list, err
	}
	list.Networks, list.Next, err = take(req.Most, yes(all),
		func(n *ipam.NetworkInfo) string { return cursor(cmp.Or(n.Recorded, n.Name)) })
	return list, err
}

func (s *Server) network(ctx context.Context, req api.OfNetwork) (ipam.NetworkInfo, uint64, error) {
	n, err := s.shownNetwork(ctx, req.Network)
	return n, n.Revision, err
}

func (s *Server) networkSubnets(ctx context.Context, req api.PartsRequest) (list api.SubnetPlanList, rev uint64,
	err error) {
	n, err := s.cfg.Service.Network(ctx, req.Network)
	if err != nil {
		return list, 0, err
	}
	list.Subnets, list.Next, err = pageOf(req.Page, n.Subnets,
		func(sub *ipam.SubnetPlan) netip.Addr { return sub.CIDR.Addr() })
	return list, n.Revision, err
}

func (s *Server) pools(ctx context.Context, req api.PartsRequest) (list api.PoolList, rev uint64, err error) {
	n, err := s.cfg.Service.Network(ctx, req.Network)
	if err != nil {
		return list, 0, err
	}
	var all []api.PoolEntry
	for _, sub := range n.Subnets {
		for _, pool := range sub.Pools {
			all = append(all, api.PoolEntry{Subnet: sub.CIDR, PoolPlan: pool})
		}
	}
	list.Pools, list.Next, err = pageOf(req.Page, all, func(e *api.PoolEntry) netip.Addr { return e.Start })
	return list, n.Revision, err
}

func (s *Server) exclusions(ctx context.Context, req api.PartsRequest) (list api.ExclusionList, rev uint64,
	err error) {
	n, err := s.cfg.Service.Network(ctx, req.Network)
	if err != nil {
		return list, 0, err
	}
	var all []api.ExclusionEntry
	for _, sub := range n.Subnets {
		for _, x := range sub.Exclusions {
			all = append(all, api.ExclusionEntry{Subnet: sub.CIDR, ExclusionPlan: x})
		}
	}
	list.Exclusions, list.Next, err = pageOf(req.Page, all, func(e *api.ExclusionEntry) netip.Addr { return e.Start })
	return list, n.Revision, err
}

// filtered returns the filter for addresses and the revision of their network; 0: all networks.
func (s *Server) filtered(ctx context.Context, req *api.OwnedRequest) (f ipam.AddressFilter, rev uint64, err error) {
	f = ipam.AddressFilter{Network: req.Network, Owner: req.Owner, Limit: req.Most + 1}
	if f.AfterNetwork, f.AfterOwner = ownerOf(req.Cursor); f.AfterNetwork == "" {
		f.AfterSpace, f.After, err = placeOf(req.Cursor)
	}
	if err != nil || f.Network == "" {
		return f, 0, err
	}
	rev, err = s.cfg.Service.Revision(ctx, f.Network)
	return f, rev, err
}

func (s *Server) reservations(ctx context.Context, req api.OwnedRequest) (list api.ReservationList, rev uint64,
	err error) {
	f, rev, err := s.filtered(ctx, &req)
	if err != nil {
		return list, 0, err
	}
	list.Reservations, list.Next, err = take(req.Most, s.cfg.Service.Reservations(ctx, f),
		func(i *ipam.ReservationInfo) string {
			if i.Dynamic {
				return ownerCursor(i.Network, i.Owner)
			}
			return cursor(i.Space, i.Address.String())
		})
	return list, rev, err
}

func (s *Server) addresses(ctx context.Context, req api.OwnedRequest) (list api.AddressList, rev uint64, err error) {
	f, rev, err := s.filtered(ctx, &req)
	if err == nil && f.AfterNetwork != "" {
		err = notNext()
	}
	if err != nil {
		return list, 0, err
	}
	list.Addresses, list.Next, err = take(req.Most, s.cfg.Service.Taken(ctx, f),
		func(i *ipam.TakenAddress) string { return cursor(i.Space, i.Address.String()) })
	return list, rev, err
}

func (s *Server) environment(ctx context.Context, req api.EnvironmentRequest) (api.VariableList, error) {
	all, err := s.cfg.Service.Environment(ctx, req.Network, req.Owner)
	return api.VariableList{Variables: all}, err
}
