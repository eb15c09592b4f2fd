package follow

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// wanted is what the daemon has said up to now.
type wanted struct {
	ranges   []edge.Range
	mappings map[netip.Addr]ipam.EdgeMapping
	missed   bool // not all of it is in force
	void     bool // what is in force is not known
	session  string
	sent     time.Duration // when that was kept last, since the host's start
	longest  time.Duration // of the ranges' times to live
}

// take takes over one line of news.
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

// takeRanges takes over the ranges.
func (w *wanted) takeRanges(all []ipam.EdgeRange) {
	w.ranges, w.longest = nil, 0
	for _, r := range all {
		w.longest = max(w.longest, time.Duration(r.TTL))
	}
	for _, r := range all {
		one := edge.Range{From: r.Range.From(), To: r.Range.To(), Announce: r.Announce, OnCut: edge.Keep}
		// with a store of its own no host can be cut off from it, and nobody takes over
		if w.session != "" && r.OnCut != ipam.CutKeep {
			one.OnCut, one.TTL = edge.Withdraw, time.Duration(r.TTL)
			one.Sooner = w.longest - one.TTL
		}
		w.ranges = append(w.ranges, one)
	}
}

// until is when the ranges cease to answer that answer longest, unless the session is kept.
func (w *wanted) until() edge.Moment {
	if w.session == "" {
		return 0
	}
	return edge.Moment(0).Add(w.sent + w.longest)
}

// state is what a provider is to be set to.
func (w *wanted) state() edge.State {
	s := edge.State{Ranges: w.ranges, Until: w.until()}
	for _, addr := range w.addresses() {
		m := w.mappings[addr]
		s.Mappings = append(s.Mappings, edge.Mapping{Elastic: m.Elastic, Guest: m.Guest, Subnet: m.Subnet,
			EgressOnly: m.EgressOnly, Staged: m.Staged})
	}
	return s
}

func (w *wanted) addresses() []netip.Addr {
	return slices.SortedFunc(maps.Keys(w.mappings), netip.Addr.Compare)
}
