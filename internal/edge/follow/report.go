package follow

import (
	"maps"
	"net/netip"
	"slices"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// said is what the daemon is told, or was.
type said struct {
	applied map[netip.Addr]ipam.EdgeApplied
	held    map[netip.Addr]uint64 // the grants by which something may be in force
}

// report is what the daemon is to be told of what setting came to, and what is told with it; err is of the provider.
// whole says all of it, to a daemon that may know something else. Where the provider has failed as a whole nothing is
// said to be over, because it may be there still. nil: there is nothing to be told.
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

// withdrawn adds to a report what is in force no more.
func (f *Follower) withdrawn(r *ipam.EdgeReport, now *said, failed map[netip.Addr]error, only bool) {
	for _, addr := range slices.SortedFunc(maps.Keys(f.said.held), netip.Addr.Compare) {
		grant := f.said.held[addr]
		if next, there := now.held[addr]; there && next == grant {
			continue
		}
		switch {
		case only && failed[addr] == nil:
			r.Withdrawn = append(r.Withdrawn, ipam.EdgeWithdrawn{Address: addr, Grant: grant})
		default: // it may be there still
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
		if only { // the outgoing half alone
			r.Withdrawn = append(r.Withdrawn, ipam.EdgeWithdrawn{Address: addr})
		} else {
			now.applied[addr] = f.said.applied[addr]
		}
	}
}
