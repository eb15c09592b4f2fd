package cluster

import (
	"cmp"
	"context"
	"iter"
	"net/netip"
	"strings"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/ipam/view"
)

// In which store a space is.
const (
	HostStore    = "host"    // this host's own
	ClusterStore = "cluster" // the one that it shares with others
)

// Spaces is Service.Spaces of both stores. A space that both have networks in stands there twice, until it is copied.
func (e *Estate) Spaces(ctx context.Context) ([]ipam.SpaceInfo, error) {
	return merged(e, func(a, b ipam.SpaceInfo) int { return strings.Compare(a.Name, b.Name) },
		func(s *service.Service) (kept []ipam.SpaceInfo, err error) {
			all, err := s.Spaces(ctx)
			for _, info := range all {
				info.Store = ClusterStore
				if s == e.local {
					info.Store = HostStore
				}
				if s != e.local || ownsSpace(s.Ledger, info.Name) { // `global` is in each store from the beginning
					kept = append(kept, info)
				}
			}
			return kept, err
		})
}

// Totals is the sum of both stores' Totals.
func (e *Estate) Totals(ctx context.Context) (sum ipam.Totals, err error) {
	for _, s := range e.stores() {
		t, err := s.Totals(ctx)
		if err != nil {
			return ipam.Totals{}, err
		}
		sum.Networks += t.Networks
		sum.Subnets += t.Subnets
		sum.Leases += t.Leases
		sum.Reserved += t.Reserved
		sum.Docker += t.Docker
	}
	spaces, err := e.Spaces(ctx)
	sum.Spaces = len(spaces)
	return sum, err
}

// Told is the sum of both stores' Told.
func (e *Estate) Told() map[ipam.Verb]uint64 { return service.Told(e.stores()) }

// LANLeases is the sum of both stores' LANLeases.
func (e *Estate) LANLeases() map[string]map[ipam.LANState]uint64 {
	return service.LANLeases(e.stores())
}

// Use is Service.Use of both stores.
func (e *Estate) Use(ctx context.Context) ([]ipam.PoolUse, error) {
	return merged(e, func(a, b ipam.PoolUse) int { return strings.Compare(a.Network, b.Network) },
		func(s *service.Service) ([]ipam.PoolUse, error) { return s.Use(ctx) })
}

// Networks is Service.Networks of both stores. Two of one name are not parted by the limit.
func (e *Estate) Networks(ctx context.Context, f ipam.NetworkFilter) ([]ipam.NetworkInfo, error) {
	byName := func(a, b ipam.NetworkInfo) int { return strings.Compare(a.Recorded, b.Recorded) }
	all, err := merged(e, byName, func(s *service.Service) ([]ipam.NetworkInfo, error) { return s.Networks(ctx, f) })
	return upTo(all, f.Limit, byName), err
}

// ToProbe is Service.ToProbe of both stores.
func (e *Estate) ToProbe(ctx context.Context, most int) ([]ipam.Unprobed, error) {
	return merged(e, func(a, b ipam.Unprobed) int { return strings.Compare(a.Name, b.Name) },
		func(s *service.Service) ([]ipam.Unprobed, error) { return s.ToProbe(ctx, most) })
}

// Network is Service.Network in the store that has it.
func (e *Estate) Network(ctx context.Context, ref string) (ipam.NetworkInfo, error) {
	s, err := e.with(ref)
	if err != nil {
		return ipam.NetworkInfo{}, err
	}
	return s.Network(ctx, ref)
}

// Revision is Service.Revision in the store that has the network.
func (e *Estate) Revision(ctx context.Context, network string) (uint64, error) {
	s, err := e.with(network)
	if err != nil {
		return 0, err
	}
	return s.Revision(ctx, network)
}

// Environment is Service.Environment in the store that has the network.
func (e *Estate) Environment(ctx context.Context, network, owner string) ([]string, error) {
	s, err := e.with(network)
	if err != nil {
		return nil, err
	}
	return s.Environment(ctx, network, owner)
}

// Subnets is Service.Subnets of both stores.
func (e *Estate) Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error) {
	return merged(e, view.OrderSubnets,
		func(s *service.Service) ([]ipam.SubnetInfo, error) { return s.Subnets(ctx, space) })
}

// Subnet is Service.Subnet in the store that has it.
func (e *Estate) Subnet(ctx context.Context, id ipam.ID) (ipam.SubnetInfo, uint64, error) {
	s, err := e.having(id)
	if err != nil {
		return ipam.SubnetInfo{}, 0, err
	}
	return s.Subnet(ctx, id)
}

// Layout is Service.Layout in the store that has the subnet.
func (e *Estate) Layout(ctx context.Context, id ipam.ID, f ipam.LayoutFilter) (ipam.Layout, error) {
	s, err := e.having(id)
	if err != nil {
		return ipam.Layout{}, err
	}
	return s.Layout(ctx, id, f)
}

// NetworkOf is Service.NetworkOf in the store that has the subnet.
func (e *Estate) NetworkOf(subnet ipam.ID) (ipam.ID, error) {
	s, err := e.having(subnet)
	if err != nil {
		return ipam.ID{}, err
	}
	return s.NetworkOf(subnet)
}

// Available is Service.Available in the store that has the subnet.
func (e *Estate) Available(ctx context.Context, subnet ipam.ID, limit int) ([]netip.Addr, error) {
	s, err := e.having(subnet)
	if err != nil {
		return nil, err
	}
	return s.Available(ctx, subnet, limit)
}

// Free is Service.Free in the store that has the network.
func (e *Estate) Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	s, err := e.with(network)
	if err != nil {
		return nil, err
	}
	return s.Free(ctx, network, f)
}

// NextFree is Service.NextFree in the store that has the network.
func (e *Estate) NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	s, err := e.with(network)
	if err != nil {
		return nil, err
	}
	return s.NextFree(ctx, network, f)
}

// Leases is Service.Leases of both stores.
func (e *Estate) Leases(ctx context.Context, f ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error] {
	return mergedEach(e, 0, func(a,
		b ipam.LeaseInfo) int {
		return orderPlaces(a.Space, a.Address, b.Space, b.Address)
	},
		func(s *service.Service) iter.Seq2[ipam.LeaseInfo, error] { return s.Leases(ctx, f) })
}

func orderPlaces(space string, addr netip.Addr, otherSpace string, other netip.Addr) int {
	return cmp.Or(strings.Compare(space, otherSpace), addr.Compare(other))
}

// Reservations is Service.Reservations of both stores, or of the one that has the network of the filter.
func (e *Estate) Reservations(ctx context.Context, f ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error] {
	order := func(a, b ipam.ReservationInfo) int {
		switch {
		case a.Dynamic != b.Dynamic:
			return view.AsInt(a.Dynamic) - view.AsInt(b.Dynamic)
		case a.Dynamic:
			return cmp.Or(strings.Compare(a.Network, b.Network), strings.Compare(a.Owner, b.Owner))
		}
		return orderPlaces(a.Space, a.Address, b.Space, b.Address)
	}
	return filteredEach(e, f, order,
		func(s *service.Service) iter.Seq2[ipam.ReservationInfo, error] { return s.Reservations(ctx, f) })
}

// Taken is Service.Taken of both stores, or of the one that has the network of the filter.
func (e *Estate) Taken(ctx context.Context, f ipam.AddressFilter) iter.Seq2[ipam.TakenAddress, error] {
	order := func(a, b ipam.TakenAddress) int { return orderPlaces(a.Space, a.Address, b.Space, b.Address) }
	return filteredEach(e, f, order,
		func(s *service.Service) iter.Seq2[ipam.TakenAddress, error] { return s.Taken(ctx, f) })
}

func filteredEach[T any](e *Estate, f ipam.AddressFilter, order func(a, b T) int,
	ask func(*service.Service) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if f.Network == "" {
		return mergedEach(e, f.Limit, order, ask)
	}
	s, err := e.with(f.Network)
	if err != nil {
		return refusedEach[T](err)
	}
	return ask(s)
}

// Attachments is Service.Attachments of both stores.
func (e *Estate) Attachments(ctx context.Context) ([]ipam.AttachmentInfo, error) {
	return merged(e, allocator.OrderAttachments,
		func(s *service.Service) ([]ipam.AttachmentInfo, error) { return s.Attachments(ctx) })
}

// Who is Service.Who of both stores.
func (e *Estate) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	return merged(e, view.OrderTenures, func(s *service.Service) ([]ipam.Tenure, error) { return s.Who(ctx, f) })
}

// Find is Service.Find of both stores. A space is found once, unless both have networks in it.
func (e *Estate) Find(ctx context.Context, f ipam.FindFilter) iter.Seq2[ipam.Found, error] {
	order := func(a, b ipam.Found) int { return a.Mark().Compare(b.Mark()) }
	return mergedEach(e, 0, order, func(s *service.Service) iter.Seq2[ipam.Found, error] {
		return func(yield func(ipam.Found, error) bool) {
			for one, err := range s.Find(ctx, f) {
				if one.Kind == ipam.FoundSpace && s == e.local && !ownsSpace(s.Ledger, one.What) {
					continue // `global` is in each store from the beginning
				}
				if !yield(one, err) {
					return
				}
			}
		}
	})
}

// Hosts is Service.Hosts of the cluster.
func (e *Estate) Hosts(ctx context.Context) ([]ipam.HostInfo, error) {
	s, err := e.shared.service()
	if err != nil {
		return nil, err
	}
	return s.Hosts(ctx)
}

// Export is Service.Export of both stores, or of the one that has the network. It is refused where the cluster's was
// never reached: what it yields is taken for the whole plan.
func (e *Estate) Export(ctx context.Context, network string) iter.Seq2[ipam.PlannedNetwork, error] {
	if network != "" {
		s, err := e.with(network)
		if err != nil {
			return refusedEach[ipam.PlannedNetwork](err)
		}
		return s.Export(ctx, network)
	}
	if err := e.Partial(); err != nil {
		return refusedEach[ipam.PlannedNetwork](ipam.Refuse(err,
			"the plan is in this host's own store and in that of the cluster, and the latter cannot be asked: %s", err))
	}
	return mergedEach(e, 0, func(a, b ipam.PlannedNetwork) int { return strings.Compare(a.Name, b.Name) },
		func(s *service.Service) iter.Seq2[ipam.PlannedNetwork, error] { return s.Export(ctx, "") })
}

// Check is Service.Check of both stores, and CheckOwn. That the cluster's was never reached is a problem, too: nothing
// is known of it.
func (e *Estate) Check(ctx context.Context) ([]string, error) {
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
		return append(problems, "the store of the cluster was not checked: "+away.Error()), nil
	}
	theirs, err := s.Check(ctx)
	for _, p := range theirs {
		problems = append(problems, "in the store of the cluster: "+p)
	}
	return problems, err
}
