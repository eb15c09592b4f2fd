package ledger

import (
	"iter"
	"maps"
	"net/netip"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// elasticUse holds the elastic addresses that are not free, so that the lowest free one is found quickly.
type elasticUse struct {
	taken4, taken6 *alloc.Set
	releasing      map[netip.Addr]struct{} // the released ones that still have a record
	held           map[string]int          // number of addresses by account, without system addresses
}

func newElasticUse() elasticUse {
	return elasticUse{taken4: alloc.NewSet(netip.PrefixFrom(netip.IPv4Unspecified(), 0)),
		taken6:    alloc.NewSet(netip.PrefixFrom(netip.IPv6Unspecified(), 0)),
		releasing: map[netip.Addr]struct{}{}, held: map[string]int{}}
}

func (u *elasticUse) of(addr netip.Addr) *alloc.Set {
	if addr.Is6() {
		return u.taken6
	}
	return u.taken4
}

// move replaces an address's record in the sets. nil means no record.
func (u *elasticUse) move(addr netip.Addr, before, after *ipam.Elastic) {
	if before != nil {
		u.of(addr).Remove(addr)
		delete(u.releasing, addr)
		u.hold(before, -1)
	}
	if after != nil {
		u.of(addr).Add(addr)
		u.hold(after, 1)
		if after.State == ipam.ElasticReleasing {
			u.releasing[addr] = struct{}{}
		}
	}
}

func (u *elasticUse) hold(one *ipam.Elastic, n int) {
	if one.State != ipam.ElasticAllocated || one.System {
		return
	}
	if u.held[one.Account] += n; u.held[one.Account] == 0 {
		delete(u.held, one.Account)
	}
}

func (u *elasticUse) lines(d description) {
	d.line("%d elastic addresses of IPv4 are not free, and %d of IPv6", u.taken4.Len(), u.taken6.Len())
	for addr := range u.releasing {
		d.line("elastic address %s was released", addr)
	}
	for account, n := range u.held {
		d.line("account %s has %d elastic addresses", account, n)
	}
}

// FreeElastic returns the lowest address of r without a record. It returns false if there is none.
func (ix *Index) FreeElastic(r netipx.IPRange) (netip.Addr, bool) {
	return ix.elastic.use.of(r.From()).NextFree(r)
}

// ReleasingElastics yields the released addresses that still have a record, in no order.
func (ix *Index) ReleasingElastics() iter.Seq[netip.Addr] { return maps.Keys(ix.elastic.use.releasing) }

// HeldElastics is the number of an account's addresses, without system addresses.
func (ix *Index) HeldElastics(account string) int { return ix.elastic.use.held[account] }
