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

// mendMark is how far hosts are with the mending of a shared store, which was put back to an earlier state: none gives
// anything of it until all of them have done their part. It stays when that is over, so that a host which was named
// gone, and comes back, holds nobody up.
type mendMark struct {
	Began time.Time            `json:"began"`
	By    string               `json:"by"` // the host that was first
	Ended time.Time            `json:"ended,omitzero"`
	Hosts map[string]*mendHost `json:"hosts"` // all that any of them knows, by name
	Plan  mendPlan             `json:"plan"`
}

// mendHost is what became of a host's part.
type mendHost struct {
	ID    ipam.ID   `json:"id"`
	State mendState `json:"state,omitempty"`
	At    time.Time `json:"at,omitzero"`

	Runs []netip.Addr `json:"runs,omitempty"` // what runs there, by its engine's word; up to maxRuns
}

// mendState says how far a host is with its part.
type mendState string

const (
	mendWaited   mendState = ""
	mendDone     mendState = "mended"
	mendAccepted mendState = "accepted"
	mendGone     mendState = "gone" // a person has said so
)

// mendPlan says whose plan it is that was put back.
type mendPlan struct {
	Host     string `json:"host,omitempty"`
	Revision int64  `json:"revision,omitempty"` // that the host remembers
}

// open tells whether hosts are waited for.
func (m *mendMark) open() bool { return m != nil && m.Ended.IsZero() }

// missing lists the hosts that are waited for.
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

// markOf is the mark that the index knows of, to be read and changed; nil where there is none, or none that can be
// read.
func markOf(ix *ledger.Index) *mendMark {
	m := new(mendMark)
	if raw := ix.Mending(); raw == nil || json.Unmarshal(raw, m) != nil {
		return nil
	}
	return m
}

// setMark writes the mark, and how hosts are refused as long as it is open.
func setMark(c *ledger.Change, m *mendMark) error {
	var open *ipam.Mending
	if m.open() {
		open = &ipam.Mending{Since: m.Began, By: m.By, Missing: m.missing()}
	}
	return c.SetMending(open, m)
}

// maxRuns is how many addresses of a host the mark names: it is one record.
const maxRuns = 4096

// planNumber reads the record at planKey.
func planNumber(raw []byte) uint64 {
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

// runsOn tells whether a host has said that an address runs there.
func runsOn(m *mendMark, host string, addr netip.Addr) bool {
	h := m.Hosts[host]
	return h != nil && slices.Contains(h.Runs, addr)
}

// waitFor has the mark wait for hosts that it does not know of yet.
func waitFor(m *mendMark, hosts map[string]*ipam.Host) {
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		if h := hosts[name]; h.State != ipam.HostRemoved && m.Hosts[name] == nil {
			m.Hosts[name] = &mendHost{ID: h.ID}
		}
	}
}
