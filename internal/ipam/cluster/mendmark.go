package cluster

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// maxRuns is how many addresses of a host the mark names: it is one record.
const maxRuns = 4096

// planNumber reads the record at planKey.
func planNumber(raw []byte) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

// copied is one that may be changed.
func copied(m *ledger.MendMark) *ledger.MendMark {
	after := *m
	after.Hosts = make(map[string]*ledger.MendHost, len(m.Hosts))
	for name, h := range m.Hosts {
		one := *h
		after.Hosts[name] = &one
	}
	return &after
}

// runsOn tells whether a host has said that an address runs there.
func runsOn(m *ledger.MendMark, host string, addr netip.Addr) bool {
	h := m.Hosts[host]
	return h != nil && slices.Contains(h.Runs, addr)
}

// waitFor has the mark wait for hosts that it does not know of yet.
func waitFor(m *ledger.MendMark, hosts map[string]*ipam.Host) {
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if h := hosts[name]; h.State != ipam.HostRemoved && m.Hosts[name] == nil {
			m.Hosts[name] = &ledger.MendHost{ID: h.ID}
		}
	}
}
