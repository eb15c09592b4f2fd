package view

import (
	"cmp"
	"context"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/allocator"
	"berth/internal/background"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Networks lists networks by the names in their records, without the maps of their pools. The limit does not separate
// networks of the same name.
func (s Views) Networks(ctx context.Context, f ipam.NetworkFilter) ([]ipam.NetworkInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	byName := func(a, b ipam.NetworkInfo) int { return strings.Compare(a.Recorded, b.Recorded) }
	all, err := ledger.Merged(s.homes, byName, func(l *ledger.Ledger) ([]ipam.NetworkInfo, error) {
		return networks(l, f), nil
	})
	return ledger.UpTo(all, f.Limit, byName), err
}

func networks(s *ledger.Ledger, f ipam.NetworkFilter) (all []ipam.NetworkInfo) {
	ids := networkIDs(s, f)
	all = make([]ipam.NetworkInfo, 0, len(ids))
	eachNetwork(s, ids, func(ix *ledger.Index, nx *ledger.NetworkIndex) {
		if f.Brief {
			all = append(all, showBriefly(s, ix, nx))
		} else {
			all = append(all, showNetwork(s, ix, nx, false))
		}
	})
	return all
}

// eachNetwork calls fn for each of these networks that still exists. It locks the index for each one separately, so
// that a long list does not block requests.
func eachNetwork(s *ledger.Ledger, ids []ipam.ID, fn func(*ledger.Index, *ledger.NetworkIndex)) {
	var work background.Work
	for _, id := range ids {
		s.Read(func(ix *ledger.Index) {
			if nx := ix.NetworkIndex(id); nx.Record() != nil {
				fn(ix, nx)
			}
		})
		work.Pause()
	}
}

// networkIDs returns the networks that f chooses, by the names in their records.
func networkIDs(s *ledger.Ledger, f ipam.NetworkFilter) []ipam.ID {
	return ledger.Ask(s, func(ix *ledger.Index) []ipam.ID {
		var chosen []*ipam.Network
		for _, nx := range ix.Networks() {
			n := nx.Record()
			if n != nil && n.Stage == "" && (f.Space == "" || n.Space == f.Space) && n.Name > f.After {
				chosen = append(chosen, n)
			}
		}
		slices.SortFunc(chosen, func(a, b *ipam.Network) int { return strings.Compare(a.Name, b.Name) })
		if f.Limit > 0 {
			chosen = chosen[:min(len(chosen), f.Limit)]
		}
		ids := make([]ipam.ID, len(chosen))
		for i, n := range chosen {
			ids[i] = n.ID
		}
		return ids
	})
}

// Network returns a network, by name or id, with the maps of its pools.
func (s Views) Network(ctx context.Context, ref string) (ipam.NetworkInfo, error) {
	return inNetwork(ctx, s, ref, func(l *ledger.Ledger, c *ledger.Change, n *ipam.Network) (ipam.NetworkInfo, error) {
		return showNetwork(l, c.Index(), c.Index().NetworkIndex(n.ID), true), nil
	})
}

func showNetwork(s *ledger.Ledger, ix *ledger.Index, nx *ledger.NetworkIndex, maps bool) ipam.NetworkInfo {
	info := showBriefly(s, ix, nx)
	for _, id := range nx.Subnets() {
		info.Subnets = append(info.Subnets, showPlan(ix.Subnet(id), s.Now(), maps))
	}
	info.Static = append(info.Static, edit.Bands(ix, info.ID)...)
	flatten(&info)
	return info
}

// showBriefly describes a network without its subnets.
func showBriefly(s *ledger.Ledger, ix *ledger.Index, nx *ledger.NetworkIndex) ipam.NetworkInfo {
	n, now := nx.Record(), s.Now()
	info := n.Shown()
	info.Name = s.ShownName(ix, n)
	for _, id := range nx.Subnets() {
		sx := ix.Subnet(id)
		info.CIDRs = append(info.CIDRs, sx.Record().CIDR)
		info.Docker += len(sx.Record().Attachments)
		use := useIn(sx, now)
		info.Use.And(&use)
	}
	return info
}

// flatten sets the flat fields from the first subnet of each family. It sets the map from the first pool of the first
// IPv4 subnet, or of the first subnet if there is no IPv4 one.
func flatten(info *ipam.NetworkInfo) {
	for i, sub := range info.Subnets {
		first4 := sub.CIDR.Addr().Is4() && !info.CIDR.IsValid()
		switch {
		case first4:
			info.CIDR, info.Gateway = sub.CIDR, sub.Gateway
		case sub.CIDR.Addr().Is6() && !info.CIDR6.IsValid():
			info.CIDR6, info.Gateway6 = sub.CIDR, sub.Gateway
		}
		if first4 || i == 0 {
			info.Map = ""
			if len(sub.Pools) > 0 {
				info.Map = sub.Pools[0].Map
			}
		}
	}
}

func showPlan(sx *ledger.SubnetIndex, now time.Time, maps bool) ipam.SubnetPlan {
	sub := sx.Record()
	info := sub.Shown()
	parts := useOf(sx, now)
	info.Use = ipam.SubnetUse(sub.CIDR, parts)
	info.Use.Reservations, _ = reservationsIn(sx, now)
	n := newCounting(sx, sub.CIDR, now)
	for i, p := range sub.Pools {
		pool := ipam.PoolPlan{Name: p.Name, Start: p.Range.From(), End: p.Range.To(), Free: parts[i].Free}
		if maps {
			pool.Map = n.draw(p.Range)
		}
		info.Pools = append(info.Pools, pool)
	}
	for _, x := range sub.Exclusions {
		info.Exclusions = append(info.Exclusions,
			ipam.ExclusionPlan{Start: x.Range.From(), End: x.Range.To(), Note: x.Note})
	}
	return info
}

// draw returns the map of a pool: . for a free address, X for any other.
func (n *counting) draw(pool ipam.Range) string {
	size := alloc.Size(pool.IPRange)
	if !size.IsInt64() || size.Int64() > ipam.MaxMap {
		return ""
	}
	drawn := make([]byte, size.Int64())
	addr := pool.From()
	for i := range drawn {
		if drawn[i] = 'X'; n.state(addr) == ipam.AddressFree {
			drawn[i] = '.'
		}
		addr = addr.Next()
	}
	return string(drawn)
}

// Available lists the lowest addresses in a subnet, by id, that an automatic request could get, at most limit.
func (s Views) Available(ctx context.Context, subnet ipam.ID, limit int) ([]netip.Addr, error) {
	return inSubnet(ctx, s, subnet, func(_ *ledger.Ledger, c *ledger.Change, sx *ledger.SubnetIndex,
		n *ipam.Network) ([]netip.Addr, error) {
		free := []netip.Addr{}
		for _, r := range freeRanges(c, n, sx, &ipam.FreeFilter{Limit: limit}, nil) {
			for addr := r.Start; len(free) < limit && addr.IsValid() && !r.End.Less(addr); addr = addr.Next() {
				free = append(free, addr)
			}
		}
		return free, nil
	})
}

// Reservations yields the reserved addresses, and after them, without addresses, the owners in dynamic networks. An
// error is the last value.
func (s Views) Reservations(ctx context.Context, f ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error] {
	return filtered(s.homes, f, orderReservations, func(l *ledger.Ledger) iter.Seq2[ipam.ReservationInfo, error] {
		return reservations(ctx, l, f)
	})
}

func orderReservations(a, b ipam.ReservationInfo) int {
	switch {
	case a.Dynamic != b.Dynamic:
		return asInt(a.Dynamic) - asInt(b.Dynamic)
	case a.Dynamic:
		return cmp.Or(strings.Compare(a.Network, b.Network), strings.Compare(a.Owner, b.Owner))
	}
	return orderPlaces(a.Space, a.Address, b.Space, b.Address)
}

// filtered merges the lists of all homes, or returns that of the home with the filter's network.
func filtered[T any](homes ledger.Homes, f ipam.AddressFilter, order func(a, b T) int,
	list func(*ledger.Ledger) iter.Seq2[T, error]) iter.Seq2[T, error] {
	if f.Network == "" {
		return ledger.MergedEach(homes, f.Limit, order, list)
	}
	l, err := homes.With(f.Network)
	if err != nil {
		return ledger.Refused[T](err)
	}
	return list(l)
}

func reservations(ctx context.Context, s *ledger.Ledger, f ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error] {
	return func(yield func(ipam.ReservationInfo, error) bool) {
		found := 0
		if f.AfterNetwork == "" {
			for info, err := range reservedAddresses(ctx, s, f) {
				found++
				if !yield(info, err) || err != nil || found == f.Limit {
					return
				}
			}
		}
		owners, err := edit.DynamicReservations(ctx, s, f)
		if err != nil {
			yield(ipam.ReservationInfo{}, err)
			return
		}
		for _, info := range owners {
			found++
			if !yield(info, nil) || found == f.Limit {
				return
			}
		}
	}
}

func reservedAddresses(ctx context.Context, s *ledger.Ledger, f ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo,
	error] {
	f.Owner = ipam.CanonicalOwner(f.Owner)
	return eachOf(ctx, s, f, func(sub *ipam.SubnetInfo, l *ipam.Lease) (ipam.ReservationInfo, bool) {
		r := l.Reservation
		if r == nil || f.Owner != "" && r.Owner != f.Owner || !r.Until.IsZero() && !r.Until.After(s.Now()) {
			return ipam.ReservationInfo{}, false
		}
		info := showReservation(s, sub, l)
		info.Taken = info.InUse && isTaken(ctx, s, sub, l)
		info.MAC = macOf(ctx, s, sub, r.Owner)
		return info, true
	})
}

// showReservation describes the reservation of a record that has one.
func showReservation(s *ledger.Ledger, sub *ipam.SubnetInfo, l *ipam.Lease) ipam.ReservationInfo {
	r := l.Reservation
	info := ipam.ReservationInfo{Owner: r.Owner, Address: l.Address, Kind: r.Kind, InUse: l.Held(),
		Space: sub.Space, Network: sub.Network, NetworkID: sub.NetworkID, Subnet: sub.CIDR,
		Interface: int(r.Slot.Interface), Slot: int(r.Slot.Number), Since: r.Since(),
		Terms: r.Terms}
	if l.Held() {
		info.Endpoint, info.Host = cmp.Or(s.Known().Sighting(sub.Space, l).Container, l.Name, l.MAC.String()),
			l.Host
	}
	return info
}

// macOf returns the MAC of an owner; empty without a prefix for those of the network.
func macOf(ctx context.Context, s *ledger.Ledger, sub *ipam.SubnetInfo, owner string) string {
	mac, err := ledger.Look(ctx, s, func(c *ledger.Change) (string, error) {
		n := c.Index().Network(sub.NetworkID)
		if n == nil || n.MACPrefix == "" {
			return "", nil
		}
		return ipam.OwnerMAC(n.ID, n.MACPrefix, owner, 0), nil
	})
	if err != nil {
		return ""
	}
	return mac
}

// isTaken reports whether the holder of a reserved address is certainly not its owner. A holder without a name may be
// the owner, and so may a stand-in.
func isTaken(ctx context.Context, s *ledger.Ledger, sub *ipam.SubnetInfo, l *ipam.Lease) bool {
	owner := l.Reservation.Owner
	if l.Name == "" || l.Guessed || l.MAC.String() == owner || (&ipam.Network{}).Means(l.Name, owner) {
		return false
	}
	taken, err := ledger.Look(ctx, s, func(c *ledger.Change) (bool, error) {
		n := cmp.Or(c.Index().Network(sub.NetworkID), &ipam.Network{})
		stands, err := allocator.ReadStandIn(c, allocator.StandInKey(l.Name, l.Host))
		return !n.Means(l.Name, owner) && (stands == nil || !n.Means(stands.For, owner)), err
	})
	return taken && err == nil
}

// Taken yields the addresses that were taken for devices that are not containers. An error is the last value.
func (s Views) Taken(ctx context.Context, f ipam.AddressFilter) iter.Seq2[ipam.TakenAddress, error] {
	byPlace := func(a, b ipam.TakenAddress) int { return orderPlaces(a.Space, a.Address, b.Space, b.Address) }
	return filtered(s.homes, f, byPlace, func(l *ledger.Ledger) iter.Seq2[ipam.TakenAddress, error] {
		return taken(ctx, l, f)
	})
}

func taken(ctx context.Context, s *ledger.Ledger, f ipam.AddressFilter) iter.Seq2[ipam.TakenAddress, error] {
	f.Owner = ipam.CanonicalOwner(f.Owner)
	return eachOf(ctx, s, f, func(sub *ipam.SubnetInfo, l *ipam.Lease) (ipam.TakenAddress, bool) {
		if !l.Held() || l.Kind != ipam.External || f.Owner != "" && l.Name != f.Owner {
			return ipam.TakenAddress{}, false
		}
		taken := l.TakenAddress()
		taken.Space, taken.Network, taken.NetworkID, taken.Subnet = sub.Space, sub.Network, sub.NetworkID, sub.CIDR
		return taken, true
	})
}

// eachOf yields the results of show for the addresses that f chooses. It reads them in pages.
func eachOf[T any](ctx context.Context, s *ledger.Ledger, f ipam.AddressFilter,
	show func(*ipam.SubnetInfo, *ipam.Lease) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		subnets, err := subnetsFor(ctx, s, f)
		if err != nil {
			yield(none, err)
			return
		}
		found := 0
		for _, sub := range subnets {
			for l, err := range records(ctx, s, sub.ID, afterIn(&f, &sub)) {
				if err != nil {
					yield(none, err)
					return
				}
				shown, chosen := show(&sub, l)
				if !chosen {
					continue
				}
				if found++; !yield(shown, nil) || found == f.Limit {
					return
				}
			}
		}
	}
}

// subnetsFor lists the subnets that f may choose from, by space and address.
func subnetsFor(ctx context.Context, s *ledger.Ledger, f ipam.AddressFilter) ([]ipam.SubnetInfo, error) {
	var network ipam.ID
	if f.Network != "" {
		n, err := ledger.Look(ctx, s, func(c *ledger.Change) (*ipam.Network, error) { return c.Network(f.Network) })
		if err != nil {
			return nil, err
		}
		network = n.ID
	}
	return slices.DeleteFunc(subnets(s, "", describe), func(sub ipam.SubnetInfo) bool {
		return past(&f, &sub) || network != (ipam.ID{}) && sub.NetworkID != network
	}), nil
}

// past reports whether f begins after the end of the subnet.
func past(f *ipam.AddressFilter, sub *ipam.SubnetInfo) bool {
	return f.After.IsValid() &&
		(sub.Space < f.AfterSpace || sub.Space == f.AfterSpace && ipam.LastAddr(sub.CIDR).Less(f.After))
}

// afterIn returns the address of the subnet after which f begins, or the zero address for the start of the subnet.
func afterIn(f *ipam.AddressFilter, sub *ipam.SubnetInfo) netip.Addr {
	if sub.Space == f.AfterSpace && sub.CIDR.Contains(f.After) {
		return f.After
	}
	return netip.Addr{}
}

// records yields the records of a subnet's addresses after one address. It reads them in pages.
func records(ctx context.Context, s *ledger.Ledger, subnet ipam.ID, after netip.Addr) iter.Seq2[*ipam.Lease, error] {
	return func(yield func(*ipam.Lease, error) bool) {
		next := ledger.LeasesOf(subnet)
		next.Limit = ledger.PageSize
		if after.IsValid() {
			next.From = append(ledger.LeaseKey(nil, subnet, after), 0)
		}
		for next.From != nil {
			var page []*ipam.Lease
			err := s.View(ctx, func(tx store.Tx) (err error) {
				page, next.From, err = ledger.ReadPage(tx, next)
				return err
			})
			if err != nil {
				yield(nil, err)
				return
			}
			for _, l := range page {
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}
