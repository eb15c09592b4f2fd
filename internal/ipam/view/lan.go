package view

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// LANLeases counts the leases of DHCP servers, kept ones included, by network and state. It reads only memory.
func (s Views) LANLeases() map[string]map[ipam.LANState]uint64 {
	all := map[string]map[ipam.LANState]uint64{}
	for _, l := range s.homes.All() {
		if ledger.Ask(l, (*ledger.Index).FromDHCP) > 0 {
			countLAN(l, all)
		}
	}
	return all
}

func countLAN(s *ledger.Ledger, all map[string]map[ipam.LANState]uint64) {
	eachNetwork(s, networkIDs(s, ipam.NetworkFilter{}), func(ix *ledger.Index, nx *ledger.NetworkIndex) {
		for _, id := range nx.Subnets() {
			sx := ix.Subnet(id)
			if !sx.Record().FromDHCP() {
				continue
			}
			name := s.ShownName(ix, nx.Record())
			if all[name] == nil {
				all[name] = map[ipam.LANState]uint64{}
			}
			for state := range sx.LAN() {
				all[name][state]++
			}
		}
	})
}
