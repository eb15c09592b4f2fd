package view

import (
	"cmp"
	"context"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Use returns how the addresses of each pool are used, by network, subnet and range. It reads only memory.
func (s Views) Use(ctx context.Context) ([]ipam.PoolUse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	byNetwork := func(a, b ipam.PoolUse) int { return strings.Compare(a.Network, b.Network) }
	return ledger.Merged(s.homes, byNetwork, func(l *ledger.Ledger) ([]ipam.PoolUse, error) { return uses(l), nil })
}

func uses(s *ledger.Ledger) (all []ipam.PoolUse) {
	now := s.Now()
	eachNetwork(s, networkIDs(s, ipam.NetworkFilter{}), func(ix *ledger.Index, nx *ledger.NetworkIndex) {
		space, name := nx.Record().Space, s.ShownName(ix, nx.Record())
		for _, sub := range nx.Subnets() {
			for _, use := range useOf(ix.Subnet(sub), now) {
				use.Space, use.Network = space, name
				all = append(all, use)
			}
		}
	})
	return all
}

// useIn returns how the addresses of a subnet are used.
func useIn(sx *ledger.SubnetIndex, now time.Time) ipam.Use {
	use := ipam.SubnetUse(sx.Record().CIDR, useOf(sx, now))
	use.Reservations, _ = reservationsIn(sx, now)
	return use
}

// reservationsIn counts the reservations of a subnet: all, and those without a holder. A reservation that is over does
// not count.
func reservationsIn(sx *ledger.SubnetIndex, now time.Time) (all, idle uint64) {
	all, idle = sx.Reservations(), sx.Idle()
	for range sx.Overdue(now) {
		all, idle = all-1, idle-1
	}
	return all, idle
}

// ReservationCounts counts the reservations of each network that has any, by its name.
func (s Views) ReservationCounts() map[string]ipam.ReservationCounts {
	counts := map[string]ipam.ReservationCounts{}
	for _, l := range s.homes.All() {
		eachNetwork(l, networkIDs(l, ipam.NetworkFilter{}), func(ix *ledger.Index, nx *ledger.NetworkIndex) {
			name := l.ShownName(ix, nx.Record())
			for _, id := range nx.Subnets() {
				if all, idle := reservationsIn(ix.Subnet(id), l.Now()); all > 0 {
					before := counts[name]
					counts[name] = ipam.ReservationCounts{Held: before.Held + all - idle, Idle: before.Idle + idle}
				}
			}
		})
	}
	return counts
}

// useOf counts the addresses of each of a subnet's pools, and last those in no pool.
func useOf(sx *ledger.SubnetIndex, now time.Time) []ipam.PoolUse {
	cidr := sx.Record().CIDR
	pools := sx.Record().Pools
	ranges, closed := make([]netipx.IPRange, len(pools)), make([]ipam.Range, len(pools))
	for i, p := range pools {
		ranges[i], closed[i] = p.Range.IPRange, p.Range
	}
	slices.SortFunc(closed, func(a, b ipam.Range) int { return a.From().Compare(b.From()) })
	whole := netipx.RangeOfPrefix(cidr)
	counts := newCounting(sx, cidr, now).in(append(ranges, ledger.OpenRanges(whole, whole, closed)...))
	all := make([]ipam.PoolUse, len(pools), len(pools)+1)
	for i, p := range pools {
		all[i] = ipam.PoolUse{Subnet: cidr, Pool: cmp.Or(p.Name, p.Range.String()), StateCounts: counts[i]}
	}
	if rest := counts[len(pools):]; len(rest) > 0 {
		outside := ipam.PoolUse{Subnet: cidr}
		for i := range rest {
			outside.Add(&rest[i])
		}
		all = append(all, outside)
	}
	return all
}

// counting returns the states of the addresses in a part of a subnet, from memory. All code that counts addresses uses
// it.
type counting struct {
	sx       *ledger.SubnetIndex
	coverage coverage
	now      time.Time
}

func newCounting(sx *ledger.SubnetIndex, within netip.Prefix, now time.Time) *counting {
	return &counting{sx: sx, coverage: coverageOf(sx, within), now: now}
}

// state returns the state of one address.
func (n *counting) state(addr netip.Addr) ipam.AddressState {
	return n.sx.Claim(addr).State(n.coverage[n.coverage.at(addr)].state, n.now)
}

// in counts the addresses of each range. The ranges do not overlap.
func (n *counting) in(ranges []netipx.IPRange) []ipam.StateCounts {
	all, order := make([]ipam.StateCounts, len(ranges)), make([]int, len(ranges))
	for i, r := range ranges {
		order[i] = i
		all[i].Reserved = n.sx.IdleIn(r)
		all[i].Leased = n.sx.RecordsIn(r) - all[i].Reserved
		all[i].Excluded, all[i].Free, all[i].Outside = ipam.NewCount(0), ipam.NewCount(0), ipam.NewCount(0)
		for _, s := range n.coverage[n.coverage.at(r.From()):] {
			both, ok := ledger.Intersect(s.IPRange, r)
			if !ok {
				break
			}
			size := alloc.Size(both)
			addTo(&all[i], s.state, size.Sub(size, new(big.Int).SetUint64(n.sx.RecordsIn(both))))
		}
	}
	slices.SortFunc(order, func(a, b int) int { return ranges[a].From().Compare(ranges[b].From()) })
	one := big.NewInt(1)
	for addr := range n.sx.Loose(n.now) {
		i, _ := slices.BinarySearchFunc(order, addr, func(i int, a netip.Addr) int { return ranges[i].To().Compare(a) })
		if i == len(order) || !ranges[order[i]].Contains(addr) {
			continue
		}
		sum := &all[order[i]]
		if n.sx.IsIdle(addr) {
			sum.Reserved--
		} else {
			sum.Leased--
		}
		addTo(sum, n.state(addr), one)
	}
	return all
}

// addTo adds a number of addresses in one state.
func addTo(sum *ipam.StateCounts, state ipam.AddressState, more *big.Int) {
	switch state {
	case ipam.AddressLeased:
		sum.Leased += more.Uint64()
	case ipam.AddressQuarantined:
		sum.Quarantined += more.Uint64()
	case ipam.AddressReserved:
		sum.Reserved += more.Uint64()
	case ipam.AddressExcluded:
		sum.Excluded.Add(sum.Excluded.Int, more)
	case ipam.AddressFree:
		sum.Free.Add(sum.Free.Int, more)
	case ipam.AddressOutside:
		sum.Outside.Add(sum.Outside.Int, more)
	}
}
