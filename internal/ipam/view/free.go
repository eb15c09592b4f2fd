package view

import (
	"context"
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Free lists the addresses of a network, by name or id, that anybody could get now, as ranges by address. These are the
// pool addresses that have no holder, owner or quarantine, and that no container requests by its own configuration. It
// reads only memory. It refuses with ErrInvalid a network in which no address is chosen automatically.
func (s Views) Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	return inNetwork(ctx, s, network,
		func(_ *ledger.Ledger, c *ledger.Change, n *ipam.Network) (all []ipam.FreeRange, err error) {
			subnets, err := freeSubnets(c, n, &f)
			slices.SortFunc(subnets, func(a, b *ledger.SubnetIndex) int {
				return a.Record().CIDR.Addr().Compare(b.Record().CIDR.Addr())
			})
			for _, sx := range subnets {
				if all = freeRanges(c, n, sx, &f, all); f.Limit > 0 && len(all) == f.Limit {
					break
				}
			}
			return all, err
		})
}

// NextFree returns the address of each family that a new endpoint without a known owner would get now. It is from the
// first subnet that has one; subnets on which this host has a Docker network are preferred. It writes nothing.
func (s Views) NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error) {
	return inNetwork(ctx, s, network,
		func(_ *ledger.Ledger, c *ledger.Change, n *ipam.Network) (all []ipam.FreeRange, err error) {
			subnets, err := freeSubnets(c, n, &f)
			for _, six := range []bool{false, true} {
				for _, t := range targets(c, subnets, f.Pool, six) {
					if next := nextOf(c, t); next.IsValid() {
						all = append(all, freeRange(c, n, t.Sub, poolOf(t.Sub, next), next, next))
						break
					}
				}
			}
			return all, err
		})
}

// freeSubnets returns the subnets of a network that match f, in the order in which they are searched.
func freeSubnets(c *ledger.Change, n *ipam.Network, f *ipam.FreeFilter) (subnets []*ledger.SubnetIndex, err error) {
	if err := n.CheckAutomatic(); err != nil {
		return nil, err
	}
	for _, id := range c.Index().NetworkIndex(n.ID).Subnets() {
		sx := c.Index().Subnet(id)
		if sub := sx.Record(); (!f.Subnet.IsValid() || sub.CIDR == f.Subnet) && (f.Pool == "" || sub.HasPool(f.Pool)) {
			subnets = append(subnets, sx)
		}
	}
	switch {
	case len(subnets) > 0 || f.Subnet == (netip.Prefix{}) && f.Pool == "":
		return subnets, nil
	case f.Pool != "":
		return nil, ipam.Refuse(ipam.ErrNotFound, "network %s has no pool %q%s", n.Name, f.Pool, within(f.Subnet))
	}
	return nil, ipam.Refuse(ipam.ErrNotFound, "network %s has no subnet %s", n.Name, f.Subnet)
}

func within(subnet netip.Prefix) string {
	if !subnet.IsValid() {
		return ""
	}
	return " in " + subnet.String()
}

// openInOrder returns a subnet's pools, by address.
func openInOrder(sx *ledger.SubnetIndex) []ledger.OpenPool {
	return slices.SortedFunc(slices.Values(sx.OpenPools(sx.Record())), func(a, b ledger.OpenPool) int {
		return a.Range.From().Compare(b.Range.From())
	})
}

// freeRanges appends the free ranges of a subnet's pools, by address.
func freeRanges(c *ledger.Change, n *ipam.Network, sx *ledger.SubnetIndex, f *ipam.FreeFilter,
	all []ipam.FreeRange) []ipam.FreeRange {
	sub := sx.Record()
	pools, free := openInOrder(sx), freeIndex(c, sx)
	for i := range pools {
		if f.Pool != "" && pools[i].Name != f.Pool {
			continue
		}
		for _, r := range pools[i].Ranges {
			if f.After.IsValid() {
				if !f.After.Less(r.To()) {
					continue
				}
				if !f.After.Less(r.From()) {
					r = netipx.IPRangeFrom(f.After.Next(), r.To())
				}
			}
			for run := range free.runs(r) {
				all = append(all, freeRange(c, n, sub, pools[i].Name, run.From(), run.To()))
				if f.Limit > 0 && len(all) == f.Limit {
					return all
				}
			}
		}
	}
	return all
}

func freeRange(c *ledger.Change, n *ipam.Network, sub *ipam.Subnet, pool string, from, to netip.Addr) ipam.FreeRange {
	return ipam.FreeRange{Space: sub.Space, Network: c.ShownName(n), NetworkID: n.ID, Subnet: sub.CIDR, Pool: pool,
		Start: from, End: to, Addresses: ipam.Count{Int: alloc.Size(netipx.IPRangeFrom(from, to))}}
}

// frees finds the addresses of a subnet that anybody could get: the free ones that no container requests by its own
// configuration.
type frees struct {
	sx *ledger.SubnetIndex
	// by address: those that are free with a record, and those that are not free without one
	odd []oddity
}

type oddity struct {
	addr netip.Addr
	free bool
}

func freeIndex(c *ledger.Change, sx *ledger.SubnetIndex) *frees {
	free, kept := &frees{sx: sx}, allocator.KeptOf(c, sx.Record())
	for addr := range sx.Loose(c.Now()) {
		if sx.Claim(addr).State(ipam.AddressFree, c.Now()) == ipam.AddressFree && !kept.Has(addr) {
			free.odd = append(free.odd, oddity{addr, true})
		}
	}
	for _, w := range kept {
		if !sx.HasRecord(w.Address) {
			free.odd = append(free.odd, oddity{w.Address, false})
		}
	}
	slices.SortFunc(free.odd, func(a, b oddity) int { return a.addr.Compare(b.addr) })
	return free
}

// runs yields the longest free ranges in r, the lowest first.
func (f *frees) runs(r netipx.IPRange) iter.Seq[netipx.IPRange] {
	return func(yield func(netipx.IPRange) bool) {
		for r.IsValid() {
			from, ok := f.next(r, true)
			if !ok {
				return
			}
			taken, more := f.next(netipx.IPRangeFrom(from, r.To()), false)
			if !more {
				yield(netipx.IPRangeFrom(from, r.To()))
				return
			}
			if !yield(netipx.IPRangeFrom(from, taken.Prev())) || taken == r.To() {
				return
			}
			r = netipx.IPRangeFrom(taken.Next(), r.To())
		}
	}
}

// next returns the lowest address of r that is free, or the lowest that is not.
func (f *frees) next(r netipx.IPRange, free bool) (netip.Addr, bool) {
	find := f.sx.NextTaken
	if free {
		find = func(r netipx.IPRange) (netip.Addr, bool) { return f.sx.NextFree(r, nil) }
	}
	at, _ := slices.BinarySearchFunc(f.odd, r.From(), func(o oddity, a netip.Addr) int { return o.addr.Compare(a) })
	for _, odd := range f.odd[at:] {
		switch addr, ok := find(r); {
		case !r.Contains(odd.addr), ok && addr.Less(odd.addr):
			return addr, ok
		case odd.free == free:
			return odd.addr, true
		case odd.addr == r.To():
			return netip.Addr{}, false
		}
		r = netipx.IPRangeFrom(odd.addr.Next(), r.To())
	}
	return find(r)
}

// targets returns where an endpoint's address of a family comes from: the subnets on which this host has a Docker
// network, through the first of these networks, otherwise all subnets.
func targets(c *ledger.Change, subnets []*ledger.SubnetIndex, pool string, six bool) []*allocator.Target {
	var all, used []*allocator.Target
	for _, sx := range subnets {
		sub := sx.Record()
		if sub.CIDR.Addr().Is6() != six {
			continue
		}
		t := allocator.NewTarget(c, new(ipam.Attachment), sub, pool)
		all = append(all, t)
		for _, id := range sub.Attachments {
			at := c.Index().Attachment(id)
			if at == nil || at.Ended || at.Host != c.Host() || pool != "" && at.Named != "" && at.Named != pool {
				continue
			}
			t.At = at
			if pool == "" {
				t.Pool = at.Named
			}
			used = append(used, t)
			break
		}
	}
	if len(used) > 0 {
		return used
	}
	return all
}

// nextOf returns the address that a target gives to an endpoint without an own address in it (allocator.Next),
// according to the index. It returns the zero address if there is none.
func nextOf(c *ledger.Change, t *allocator.Target) netip.Addr {
	slot := 0
	if h := c.Index().Host(c.Host()); h != nil {
		slot = h.Slot
	}
	for _, p := range t.Pools() {
		addr, ok := allocator.Next(t.Sx, p, slot, c.Now(), t.Kept, c.Known().StillExists)
		used := ok && t.Sx.HasRecord(addr)
		for free := range t.Sx.Overdue(c.Now()) { // it will have no record then
			if p.Contains(free) && !t.Kept.Has(free) && (!ok || used || slot == 0 && free.Less(addr)) {
				addr, ok, used = free, true, false
			}
		}
		if ok {
			return addr
		}
	}
	return netip.Addr{}
}

// poolOf returns the name of the pool that contains an address.
func poolOf(sub *ipam.Subnet, addr netip.Addr) string {
	for _, p := range sub.Pools {
		if p.Range.Contains(addr) {
			return p.Name
		}
	}
	return ""
}
