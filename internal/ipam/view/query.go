package view

import (
	"cmp"
	"context"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Spaces lists the spaces by name. A space with networks in both stores is listed twice until it is copied.
func (s Views) Spaces(ctx context.Context) ([]ipam.SpaceInfo, error) {
	byName := func(a, b ipam.SpaceInfo) int { return strings.Compare(a.Name, b.Name) }
	return ledger.Merged(s.homes, byName, func(l *ledger.Ledger) (kept []ipam.SpaceInfo, err error) {
		all, err := spaces(ctx, l)
		for _, info := range all {
			if s.homes.Shares() {
				info.Store = s.homes.StoreOf(l)
			}
			if s.homes.Has(l, info.Name) {
				kept = append(kept, info)
			}
		}
		return kept, err
	})
}

func spaces(ctx context.Context, s *ledger.Ledger) (all []ipam.SpaceInfo, err error) {
	known, err := ledger.View(ctx, s, func(tx store.Tx) ([]ipam.Space, error) {
		return ledger.AllJSON[ipam.Space](tx, ledger.KindRange(ledger.SpaceKeys), "a space")
	})
	s.Read(func(ix *ledger.Index) {
		for _, space := range known {
			info := ipam.SpaceInfo{Space: space}
			countSubnets(ix, &info)
			all = append(all, info)
		}
	})
	return all, err
}

// countSubnets counts the subnets of a space, and their leases.
func countSubnets(ix *ledger.Index, info *ipam.SpaceInfo) {
	for id := range ix.SubnetsIn(info.Name) {
		if n := ix.Network(ix.Subnet(id).Record().Network); n != nil && n.Stage != "" {
			continue // as in Subnets
		}
		info.Subnets++
		info.Leases += ix.Subnet(id).Held()
	}
}

// Subnets lists the subnets of a space by address. If space is empty, it lists those of all spaces, by space and
// address.
func (s Views) Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ledger.Merged(s.homes, OrderSubnets, func(l *ledger.Ledger) ([]ipam.SubnetInfo, error) {
		return subnets(l, space, describeUse), nil
	})
}

// describing is the type of describe and describeUse.
type describing func(*ledger.Ledger, *ledger.Index, *ipam.Subnet, *ledger.SubnetIndex) ipam.SubnetInfo

func subnets(s *ledger.Ledger, space string, show describing) (all []ipam.SubnetInfo) {
	s.Read(func(ix *ledger.Index) {
		var chosen []*ledger.SubnetIndex // sort before the description, which is large
		for _, sx := range ix.Subnets() {
			sub := sx.Record()
			if n := ix.Network(sub.Network); n != nil && n.Stage != "" {
				continue // it is not complete yet
			}
			if space == "" || sub.Space == space {
				chosen = append(chosen, sx)
			}
		}
		slices.SortFunc(chosen, func(a, b *ledger.SubnetIndex) int { return orderSubnets(a.Record(), b.Record()) })
		all = make([]ipam.SubnetInfo, len(chosen))
		for i, sx := range chosen {
			all[i] = show(s, ix, sx.Record(), sx)
		}
	})
	return all
}

// OrderSubnets compares subnets by space and address.
func OrderSubnets(a, b ipam.SubnetInfo) int { return orderSubnets(&a.Subnet, &b.Subnet) }

func orderSubnets(a, b *ipam.Subnet) int {
	return cmp.Or(strings.Compare(a.Space, b.Space), a.CIDR.Addr().Compare(b.CIDR.Addr()))
}

// describeUse is describe with the use of the subnet's addresses, which takes more time.
func describeUse(s *ledger.Ledger, ix *ledger.Index, sub *ipam.Subnet, sx *ledger.SubnetIndex) ipam.SubnetInfo {
	info := describe(s, ix, sub, sx)
	info.Use = useIn(sx, s.Now())
	return info
}

// name describes a subnet only by what lists of leases show.
func name(s *ledger.Ledger, ix *ledger.Index, sub *ipam.Subnet, _ *ledger.SubnetIndex) ipam.SubnetInfo {
	info := ipam.SubnetInfo{Subnet: *sub, NetworkID: sub.Network}
	if n := ix.Network(sub.Network); n != nil {
		info.Network = s.ShownName(ix, n)
	}
	return info
}

func describe(s *ledger.Ledger, ix *ledger.Index, sub *ipam.Subnet, sx *ledger.SubnetIndex) ipam.SubnetInfo {
	info := ipam.SubnetInfo{Subnet: *sub, NetworkID: sub.Network, Remembered: sx.Remembered()}
	// in JSON lists, not null
	info.Pools, info.Attachments = append([]ipam.Pool{}, sub.Pools...), append([]ipam.ID{}, sub.Attachments...)
	if n := ix.Network(sub.Network); n != nil {
		info.Network, info.Tags, info.Sticky = s.ShownName(ix, n), n.Tags, !n.Policy.Forget
		info.Quarantine = ipam.Duration(n.Policy.Quarantine)
	}
	if s.Member() != nil {
		info.Hosts = hostsOn(ix, sub)
	}
	for _, id := range sub.Attachments {
		if at := ix.Attachment(id); at != nil && at.Chosen {
			info.Chosen = append(info.Chosen, id)
		}
	}
	return info
}

// hostsOn returns the hosts that have a Docker network on the subnet, by name.
func hostsOn(ix *ledger.Index, sub *ipam.Subnet) (all []string) {
	for _, id := range sub.Attachments {
		if at := ix.Attachment(id); at != nil {
			all = append(all, at.Host)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Leases yields leases by space, subnet and address. An error is the last value. It reads them in pages, so that
// neither a long list nor a slow receiver keeps a snapshot of the store open. A lease that changes meanwhile is seen
// either before or after the change.
func (s Views) Leases(ctx context.Context, f ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error] {
	byPlace := func(a, b ipam.LeaseInfo) int { return orderPlaces(a.Space, a.Address, b.Space, b.Address) }
	return ledger.MergedEach(s.homes, 0, byPlace, func(l *ledger.Ledger) iter.Seq2[ipam.LeaseInfo, error] {
		return leases(ctx, l, f)
	})
}

func orderPlaces(space string, addr netip.Addr, otherSpace string, other netip.Addr) int {
	return cmp.Or(strings.Compare(space, otherSpace), addr.Compare(other))
}

func leases(ctx context.Context, s *ledger.Ledger, f ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error] {
	return func(yield func(ipam.LeaseInfo, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(ipam.LeaseInfo{}, err)
			return
		}
		begin := ipam.AddressFilter{AfterSpace: f.AfterSpace, After: f.After}
		for _, sub := range subnets(s, f.Space, name) {
			if f.Subnet.IsValid() && f.Subnet != sub.CIDR || past(&begin, &sub) ||
				f.Address.IsValid() && !sub.CIDR.Contains(f.Address) {
				continue
			}
			all := records(ctx, s, sub.ID, afterIn(&begin, &sub))
			if f.Address.IsValid() {
				all = recordAt(ctx, s, sub.ID, f.Address, afterIn(&begin, &sub))
			}
			if !leasesOf(&sub, all, f.Remembered, yield) {
				return
			}
		}
	}
}

// recordAt yields the record of an address, if there is one and the address is after another one.
func recordAt(ctx context.Context, s *ledger.Ledger, subnet ipam.ID, addr, after netip.Addr) iter.Seq2[*ipam.Lease,
	error] {
	return func(yield func(*ipam.Lease, error) bool) {
		if l, err := recordOf(ctx, s, subnet, addr); (l != nil || err != nil) && after.Less(addr) {
			yield(l, err)
		}
	}
}

// leasesOf yields the leases among the records of one subnet, and reports whether to continue.
func leasesOf(sub *ipam.SubnetInfo, all iter.Seq2[*ipam.Lease, error], remembered bool,
	yield func(ipam.LeaseInfo, error) bool) bool {
	for l, err := range all {
		if err != nil {
			yield(ipam.LeaseInfo{}, err)
			return false
		}
		if (l.Held() || remembered && l.Remembered()) && !yield(showLease(sub, l), nil) {
			return false
		}
	}
	return true
}

func showLease(sub *ipam.SubnetInfo, l *ipam.Lease) ipam.LeaseInfo {
	info := ipam.LeaseInfo{ID: l.ID, Address: l.Address, Subnet: sub.CIDR, Space: sub.Space, Network: sub.Network,
		NetworkID: sub.NetworkID,
		Kind:      l.Kind, State: "held", Name: l.Name, Guessed: l.Guessed, Container: l.Container, MAC: l.MAC,
		Host: l.Host, Pool: l.Attachment,
		Since: l.Since, Released: l.Left(), QuarantineUntil: l.QuarantineUntil, DHCP: l.DHCP.Shown()}
	if r := l.Reservation; r != nil {
		info.Owner = r.Owner
	}
	if !l.Held() {
		info.State = "remembered"
	}
	return info
}

// Events lists events, the oldest first. The limit does not separate events with the same id.
func (s Views) Events(ctx context.Context, f ipam.EventFilter) ([]ipam.Event, error) {
	byID := func(a, b ipam.Event) int { return cmp.Compare(a.ID, b.ID) }
	all, err := ledger.Merged(s.homes, byID, func(l *ledger.Ledger) ([]ipam.Event, error) {
		f := f
		if l != s.homes.Own && f.Until != nil {
			f.Until = &ipam.EventMark{Own: reached(l, f.Until.Shared)}
		}
		return events(ctx, l, f)
	})
	if f.Last > 0 {
		return all[max(len(all)-f.Last, 0):], err
	}
	return ledger.UpTo(all, f.First, byID), err
}

func events(ctx context.Context, s *ledger.Ledger, f ipam.EventFilter) ([]ipam.Event, error) {
	r := ledger.EventRange{From: f.After + 1, Reverse: f.Last > 0}
	if !f.Since.IsZero() { // an event's id is not less than its time
		r.From = max(r.From, uint64(max(f.Since.UnixMicro(), 0)))
	}
	if !f.Before.IsZero() && ledger.Ask(s, func(ix *ledger.Index) bool { return ix.Events().Ahead == 0 }) {
		r.To = uint64(max(f.Before.UnixMicro(), 1))
	}
	most := f.First
	if r.Reverse {
		most = f.Last
	}
	names := s.DockerNames()
	var all []ipam.Event
	err := s.View(ctx, func(tx store.Tx) error {
		all = nil
		for at, err := range ledger.EventsIn(tx, r) {
			if err != nil {
				return err
			}
			if f.Until != nil && !f.Until.Own.Passed(at.ID) {
				continue
			}
			e, err := at.Decode()
			if err != nil {
				return err
			}
			names.Show(e)
			if !f.Has(e) {
				continue
			}
			if all = append(all, *e); len(all) == most {
				return nil
			}
		}
		return nil
	})
	if r.Reverse {
		slices.Reverse(all)
	}
	return all, err
}
