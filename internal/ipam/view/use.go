package view

import (
	"cmp"
	"context"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Use tells how the addresses of each pool are used, by network, subnet and range. It reads memory alone.
func (s Views) Use(ctx context.Context) ([]ipam.PoolUse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	byNetwork := func(a, b ipam.PoolUse) int { return strings.Compare(a.Network, b.Network) }
	return ledger.Merged(s.homes, byNetwork, func(l *ledger.Ledger) ([]ipam.PoolUse, error) { return uses(l), nil })
}

func uses(s *ledger.Ledger) (all []ipam.PoolUse) {
	now := s.Now()
	eachNetwork(s, ipam.NetworkFilter{}, func(ix *ledger.Index, nx *ledger.NetworkIndex) {
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

// useIn counts the addresses of all pools of a subnet together.
func useIn(sx *ledger.SubnetIndex, now time.Time) (sum ipam.Use) {
	for _, p := range useOf(sx, now) {
		sum.Add(&p)
	}
	return sum
}

// useOf counts the addresses of a subnet's pools.
func useOf(sx *ledger.SubnetIndex, now time.Time) []ipam.PoolUse {
	pools := sx.OpenPools(sx.Record())
	given := givenBackIn(sx, pools, now)
	all := make([]ipam.PoolUse, len(pools))
	for i, p := range pools {
		records, reserved := sx.RecordsIn(p.Range.IPRange), sx.IdleIn(p.Range.IPRange)
		size, free, open := alloc.Size(p.Range.IPRange), new(big.Int), uint64(0)
		for _, r := range p.Ranges {
			free.Add(free, alloc.Size(r))
			open += sx.RecordsIn(r)
		}
		closed := new(big.Int).Sub(size, free)
		g := given[i]
		all[i] = ipam.PoolUse{Subnet: sx.Record().CIDR, Pool: cmp.Or(p.Name, p.Range.String()),
			Leased: records - reserved - g.open - g.closed - g.quarantined, Quarantined: g.quarantined,
			Reserved: reserved,
			Excluded: ipam.Count{Int: less(closed, records-open, g.closed)},
			Free:     ipam.Count{Int: less(free, open, g.open)}}
	}
	return all
}

// less is n without those that have a record, but for those that were given back.
func less(n *big.Int, records, givenBack uint64) *big.Int {
	n.Sub(n, new(big.Int).SetUint64(records))
	return n.Add(n, new(big.Int).SetUint64(givenBack))
}

// givenBack counts the addresses of a pool that nobody has any more: those in quarantine, and of the others those that
// may be given automatically, and those that may not.
type givenBack struct{ quarantined, open, closed uint64 }

// givenBackIn looks at each memory of a subnet once. Its pools are disjoint, and in any order.
func givenBackIn(sx *ledger.SubnetIndex, pools []ledger.OpenPool, now time.Time) []givenBack {
	all, order := make([]givenBack, len(pools)), make([]int, len(pools))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return pools[a].Range.From().Compare(pools[b].Range.From()) })
	for m := range sx.Memories() {
		at, _ := slices.BinarySearchFunc(order, m.Addr, func(i int, addr netip.Addr) int {
			return pools[i].Range.To().Compare(addr)
		})
		if at == len(order) || m.Addr.Less(pools[order[at]].Range.From()) {
			continue // of no pool
		}
		switch i := order[at]; {
		case m.Quarantined(now):
			all[i].quarantined++
		case pools[i].Contains(m.Addr):
			all[i].open++
		default:
			all[i].closed++
		}
	}
	return all
}
