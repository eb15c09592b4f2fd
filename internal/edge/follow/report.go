package follow

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/edge"
	"berth/internal/ipam"
)

// report tells the daemon what setting came to: err is of the provider. whole says all of it, to a daemon that may know
// something else. Where the provider has failed as a whole nothing is said to be over, because it may be there still.
func (f *Follower) report(ctx context.Context, whole bool, err error) error {
	failed, only := edge.Failures(err)
	r := ipam.EdgeReport{Whole: whole && only}
	now := map[netip.Addr]ipam.EdgeApplied{}
	for _, addr := range f.want.addresses() {
		m := f.want.mappings[addr]
		said := ipam.EdgeApplied{Address: addr, Association: m.Association, Guest: m.Guest}
		switch {
		case !only:
			said.Error = err.Error()
		case failed[addr] != nil:
			said.Error = failed[addr].Error()
		}
		now[addr] = said
		if whole || f.reported[addr] != said {
			r.Applied = append(r.Applied, said)
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(f.reported), netip.Addr.Compare) {
		if _, there := now[addr]; there {
			continue
		}
		if only {
			r.Withdrawn = append(r.Withdrawn, addr)
		} else {
			now[addr] = f.reported[addr]
		}
	}
	if !r.Whole && len(r.Applied)+len(r.Withdrawn) == 0 {
		return nil
	}
	if err := f.cfg.Report(ctx, r); err != nil {
		return err
	}
	f.reported = now
	return nil
}
