package follow

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// said is the content of reports to the daemon.
type said struct {
	applied map[netip.Addr]ipam.EdgeApplied
	held    map[netip.Addr]uint64 // the grants of addresses that may be in force
}

// report returns the report about the result of Set, and its content. err is the provider's error. whole makes it
// complete, for a daemon that may know something else. If the provider failed as a whole, the report withdraws nothing,
// because everything may still be in place. nil: nothing to report.
func (f *Follower) report(whole bool, err error) (*ipam.EdgeReport, said) {
	failed, only := edge.Failures(err)
	r := &ipam.EdgeReport{Whole: whole && only, Session: f.want.session}
	now := said{map[netip.Addr]ipam.EdgeApplied{}, map[netip.Addr]uint64{}}
	for _, addr := range f.want.addresses() {
		m := f.want.mappings[addr]
		one := ipam.EdgeApplied{Address: addr, Association: m.Association, Guest: m.Guest, Grant: m.Grant,
			Staged: m.Staged}
		switch {
		case !only:
			one.Error = err.Error()
		case failed[addr] != nil:
			one.Error = failed[addr].Error()
		}
		now.applied[addr] = one
		if !m.Staged || m.Grant > 0 || f.want.session == "" {
			now.held[addr] = m.Grant
		}
		if whole || f.said.applied[addr] != one {
			r.Applied = append(r.Applied, one)
		}
	}
	f.withdrawn(r, &now, failed, only)
	if !r.Whole && len(r.Applied)+len(r.Withdrawn) == 0 {
		return nil, now
	}
	return r, now
}

// withdrawn adds to a report what is no longer in force.
func (f *Follower) withdrawn(r *ipam.EdgeReport, now *said, failed map[netip.Addr]error, only bool) {
	for _, addr := range slices.SortedFunc(maps.Keys(f.said.held), netip.Addr.Compare) {
		grant := f.said.held[addr]
		if next, there := now.held[addr]; there && next == grant {
			continue
		}
		switch {
		case only && failed[addr] == nil:
			r.Withdrawn = append(r.Withdrawn, ipam.EdgeWithdrawn{Address: addr, Grant: grant})
		default: // it may still be in place
			if _, there := now.held[addr]; !there {
				now.held[addr] = grant
			}
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(f.said.applied), netip.Addr.Compare) {
		_, held := f.said.held[addr]
		if _, there := now.applied[addr]; there || held {
			continue
		}
		if only { // for the outgoing direction only
			r.Withdrawn = append(r.Withdrawn, ipam.EdgeWithdrawn{Address: addr})
		} else {
			now.applied[addr] = f.said.applied[addr]
		}
	}
}
