package cluster

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// mendMark is the progress of the hosts in mending a shared store that went back to an earlier state. No host leases
// from the store until all have done their part. The mark stays afterwards, so that a host that was named gone and
// comes back delays nobody.
type mendMark struct {
	Began time.Time            `json:"began"`
	By    string               `json:"by"` // the host that was first
	Ended time.Time            `json:"ended,omitzero"`
	Hosts map[string]*mendHost `json:"hosts"` // all that any host knows, by name
	Plan  mendPlan             `json:"plan"`
}

// mendHost is the state of a host's part.
type mendHost struct {
	ID    ipam.ID   `json:"id"`
	State mendState `json:"state,omitempty"`
	At    time.Time `json:"at,omitzero"`

	Runs []netip.Addr `json:"runs,omitempty"` // addresses that run there according to its engine, up to maxRuns
}

// mendState is a host's progress.
type mendState string

const (
	mendWaited   mendState = ""
	mendDone     mendState = "mended"
	mendAccepted mendState = "accepted"
	mendGone     mendState = "gone" // named gone by a person
)

// mendPlan names the host whose plan was restored.
type mendPlan struct {
	Host     string `json:"host,omitempty"`
	Revision int64  `json:"revision,omitempty"` // which the host remembers
}

// open reports whether hosts are still missing.
func (m *mendMark) open() bool { return m != nil && m.Ended.IsZero() }

// missing lists the hosts that have not done their part.
func (m *mendMark) missing() (names []string) {
	if m == nil {
		return nil
	}
	for name, h := range m.Hosts {
		if h.State == mendWaited {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// markOf returns a copy of the mark in the index, or nil if there is none or it cannot be read.
func markOf(ix *ledger.Index) *mendMark {
	m := new(mendMark)
	if raw := ix.Mending(); raw == nil || json.Unmarshal(raw, m) != nil {
		return nil
	}
	return m
}

// setMark writes the mark, and the refusal for hosts while it is open.
func setMark(c *ledger.Change, m *mendMark) error {
	var open *ipam.Mending
	if m.open() {
		open = &ipam.Mending{Since: m.Began, By: m.By, Missing: m.missing()}
	}
	return c.SetMending(open, m)
}

// maxRuns is the maximum number of a host's addresses in the mark, because the mark is one record.
const maxRuns = 4096

// planNumber reads the record at planKey.
func planNumber(raw []byte) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

// runsOn reports whether a host has reported that an address runs there.
func runsOn(m *mendMark, host string, addr netip.Addr) bool {
	h := m.Hosts[host]
	return h != nil && slices.Contains(h.Runs, addr)
}

// waitFor adds hosts to the mark that it does not have yet.
func waitFor(m *mendMark, hosts map[string]*ipam.Host) {
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if h := hosts[name]; h.State != ipam.HostRemoved && m.Hosts[name] == nil {
			m.Hosts[name] = &mendHost{ID: h.ID}
		}
	}
}
