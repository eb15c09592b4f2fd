package follow

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// wanted is what the daemon wants, from all news so far.
type wanted struct {
	ranges   []edge.Range
	mappings map[netip.Addr]ipam.EdgeMapping
	missed   bool // something is not in force
	void     bool // what is in force is unknown
	session  string
	sent     time.Duration // the last renewal of the session, since the host's start
	longest  time.Duration // the longest TTL of the ranges
}

// take applies one line of news.
func (w *wanted) take(news *ipam.EdgeNews) {
	if news.Whole || w.mappings == nil {
		w.mappings = map[netip.Addr]ipam.EdgeMapping{}
		w.session = news.Session
	}
	if news.Session == w.session {
		w.sent = news.Sent
	}
	if news.Whole || news.Ranged {
		w.takeRanges(news.Ranges)
	}
	for _, addr := range news.Removed {
		delete(w.mappings, addr)
	}
	for _, m := range news.Set {
		w.mappings[m.Elastic] = m
	}
}

// takeRanges applies the ranges.
func (w *wanted) takeRanges(all []ipam.EdgeRange) {
	w.ranges, w.longest = nil, 0
	for _, r := range all {
		w.longest = max(w.longest, time.Duration(r.TTL))
	}
	for _, r := range all {
		one := edge.Range{From: r.Range.From(), To: r.Range.To(), Announce: r.Announce, OnCut: edge.Keep}
		// a host with its own store cannot be cut off, and nobody takes over
		if w.session != "" && r.OnCut != ipam.CutKeep {
			one.OnCut, one.TTL = edge.Withdraw, time.Duration(r.TTL)
			one.Sooner = w.longest - one.TTL
		}
		w.ranges = append(w.ranges, one)
	}
}

// until returns when the ranges with the longest TTL stop answering if the session is not renewed.
func (w *wanted) until() edge.BootTime {
	if w.session == "" {
		return 0
	}
	return edge.BootTime(0).Add(w.sent + w.longest)
}

// state returns the state for the provider.
func (w *wanted) state() edge.State {
	s := edge.State{Ranges: w.ranges, Until: w.until()}
	for _, addr := range w.addresses() {
		m := w.mappings[addr]
		s.Mappings = append(s.Mappings, edge.Mapping{Elastic: m.Elastic, Guest: m.Guest, Subnet: m.Subnet,
			EgressOnly: m.EgressOnly, Staged: m.Staged, Start: m.Lease})
	}
	return s
}

func (w *wanted) addresses() []netip.Addr {
	return slices.SortedFunc(maps.Keys(w.mappings), netip.Addr.Compare)
}
