package ipamtest

import (
	"context"
	"net/netip"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

var ctx = context.Background()

// MAC returns the MAC of the endpoint n.
func MAC(n int) ipam.MAC { return ipam.MAC{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)} }

// MustPool attaches a network, in the local space if none is named.
func MustPool(t rapid.TB, s *service.Service, req ipam.PoolRequest) ipam.PoolGrant {
	t.Helper()
	if req.Space == "" {
		req.Space = "local"
	}
	grant, err := s.RequestPool(ctx, req)
	fine(t, err)
	return grant
}

// MustTake takes an address.
func MustTake(t rapid.TB, s *service.Service, req ipam.AddressRequest) netip.Addr {
	t.Helper()
	p, err := s.RequestAddress(ctx, req)
	fine(t, err)
	return p.Addr()
}

// HeldAddrs lists the held addresses.
func HeldAddrs(t rapid.TB, s *service.Service) (all []string) {
	t.Helper()
	for _, l := range ListLeases(t, s, ipam.LeaseFilter{}) {
		all = append(all, l.Address.String())
	}
	return all
}

// ListLeases lists the leases that match a filter.
func ListLeases(t rapid.TB, s *service.Service, f ipam.LeaseFilter) (all []ipam.LeaseInfo) {
	t.Helper()
	for l, err := range s.Leases(ctx, f) {
		fine(t, err)
		all = append(all, l)
	}
	return all
}

// MACs are few, so that endpoints meet again.
var MACs = []ipam.MAC{{}, {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, {2, 0, 0, 0, 0, 3}, {2, 0, 0, 0, 0, 4},
	{2, 0, 0, 0, 0, 5}}
