package view

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// Hosts lists the hosts of the cluster by name, removed ones last. It refuses with ErrAlone if the host shares no
// store.
func (s Views) Hosts(ctx context.Context) (all []ipam.HostInfo, err error) {
	l, err := s.homes.Cluster("the list of hosts")
	if err != nil {
		return nil, err
	}
	if l.Member() == nil {
		return nil, ipam.ErrNoShared
	}
	held := map[ipam.ID]edit.Counted{}
	for lease, err := range leases(ctx, l, ipam.LeaseFilter{}) {
		if err != nil {
			return nil, err
		}
		n := held[lease.Pool]
		n.Count(&lease)
		held[lease.Pool] = n
	}
	present := l.Shared().Present()
	l.Read(func(ix *ledger.Index) {
		for _, known := range ix.Hosts() {
			h := ipam.HostInfo{Host: *known, Self: known.ID == l.Member().Host}
			_, h.Present = present[h.Name]
			for id, at := range ix.Attachments() {
				if at.Host == h.Name && !at.Ended {
					h.Pools++
					h.Leases += held[id].Leases
					h.Headroom += held[id].Headroom
					h.First = append(h.First, held[id].First...)
				}
			}
			slices.SortFunc(h.First, netip.Addr.Compare)
			h.First = h.First[:min(len(h.First), edit.ShownAddresses)]
			all = append(all, h)
		}
	})
	slices.SortFunc(all, func(a, b ipam.HostInfo) int {
		return cmp.Or(edit.BoolCompare(a.State == ipam.HostRemoved, b.State == ipam.HostRemoved),
			strings.Compare(a.Name, b.Name))
	})
	return all, nil
}
