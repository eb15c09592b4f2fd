package follow

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// wanted is what the daemon has said up to now.
type wanted struct {
	ranges   []edge.Range
	mappings map[netip.Addr]ipam.EdgeMapping
	missed   bool // not all of it is in force
}

// take takes over one line of news.
func (w *wanted) take(news *ipam.EdgeNews) {
	if news.Whole || w.mappings == nil {
		w.mappings = map[netip.Addr]ipam.EdgeMapping{}
	}
	if news.Whole || news.Ranged {
		w.ranges = nil
		for _, r := range news.Ranges {
			// with a store of its own no host can be cut off from it, and nobody takes over
			w.ranges = append(w.ranges, edge.Range{From: r.Range.From(), To: r.Range.To(), Announce: r.Announce,
				OnCut: edge.Keep})
		}
	}
	for _, addr := range news.Removed {
		delete(w.mappings, addr)
	}
	for _, m := range news.Set {
		w.mappings[m.Elastic] = m
	}
}

// state is what a provider is to be set to.
func (w *wanted) state() edge.State {
	s := edge.State{Ranges: w.ranges}
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
