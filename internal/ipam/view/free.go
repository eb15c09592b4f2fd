package view

import (
	"context"
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

// frees are the free addresses of a subnet: those without a record, released ones after their quarantine, and those of
// expired reservations, except the kept ones.
type frees struct {
	sx   *ledger.SubnetIndex
	back []netip.Addr // addresses with a record that may be given, the lowest first
	kept ipam.Wants
}

func freeIndex(c *ledger.Change, sx *ledger.SubnetIndex) *frees {
	free := &frees{sx: sx, kept: allocator.KeptOf(c, sx.Record())}
	free.back = ended(c, sx, free.kept)
	for m := range sx.Memories() {
		if !m.Quarantined(c.Now()) && !free.kept.Has(m.Addr) {
			free.back = append(free.back, m.Addr)
		}
	}
	slices.SortFunc(free.back, netip.Addr.Compare)
	return free
}

// ended returns the addresses that the next change will free because their reservations have expired.
func ended(c *ledger.Change, sx *ledger.SubnetIndex, kept ipam.Wants) (all []netip.Addr) {
	for _, addr := range c.Index().OverdueIn(sx, c.Now()) {
		if sx.IsIdle(addr) && !kept.Has(addr) {
			all = append(all, addr)
		}
	}
	return all
}

// runs yields the longest free ranges in r, the lowest first.
func (f *frees) runs(r netipx.IPRange) func(yield func(netipx.IPRange) bool) {
	return func(yield func(netipx.IPRange) bool) {
		for r.IsValid() {
			from, ok := f.first(r)
			if !ok {
				return
			}
			taken, more := f.firstTaken(netipx.IPRangeFrom(from, r.To()))
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

// first returns the lowest free address of r.
func (f *frees) first(r netipx.IPRange) (netip.Addr, bool) {
	addr, ok := f.sx.NextFree(r, f.kept)
	if i, _ := slices.BinarySearchFunc(f.back, r.From(), netip.Addr.Compare); i < len(f.back) &&
		r.Contains(f.back[i]) && (!ok || f.back[i].Less(addr)) {
		return f.back[i], true
	}
	return addr, ok
}

// firstTaken returns the lowest address of r that is not free.
func (f *frees) firstTaken(r netipx.IPRange) (netip.Addr, bool) {
	keptAt, wanted := netip.Addr{}, false
	if i, _ := f.kept.After(r.From()); i < len(f.kept) && r.Contains(f.kept[i].Address) {
		keptAt, wanted = f.kept[i].Address, true
	}
	for {
		addr, ok := f.sx.NextTaken(r)
		if wanted && (!ok || keptAt.Less(addr)) {
			return keptAt, true
		}
		if _, back := slices.BinarySearchFunc(f.back, addr, netip.Addr.Compare); !ok || !back {
			return addr, ok
		}
		if addr == r.To() {
			return netip.Addr{}, false
		}
		r = netipx.IPRangeFrom(addr.Next(), r.To())
	}
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
		t := &allocator.Target{Change: c, At: new(ipam.Attachment), Sub: sub, Sx: sx, Pool: pool,
			Kept: allocator.KeptOf(c, sub)}
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
	ended := ended(c, t.Sx, t.Kept)
	for _, p := range t.Pools() {
		addr, ok := allocator.Next(t.Sx, p, slot, c.Now(), t.Kept, c.Known().StillExists)
		used := ok && t.Sx.HasRecord(addr)
		for _, free := range ended { // it will have no record then
			if p.Contains(free) && (!ok || used || slot == 0 && free.Less(addr)) {
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
