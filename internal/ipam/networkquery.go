package ipam

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/alloc"
	"berth/store"
	"go4.org/netipx"
)

// NetworkFilter chooses networks. Zero fields choose all.
type NetworkFilter struct {
	Space string
	After string // only those with a greater name
	Limit int    // only so many
}

// Networks lists networks by name, without the maps of their pools.
func (s *Service) Networks(ctx context.Context, f NetworkFilter) ([]NetworkInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var all []NetworkInfo
	for _, id := range s.networkIDs(f) {
		s.mu.Lock()
		nx := s.ix.networks[id]
		if nx != nil && nx.record.value != nil {
			all = append(all, s.showNetwork(nx, false))
		}
		s.mu.Unlock() // for each, so that a long list holds nobody up
	}
	return all, nil
}

// networkIDs are the networks that f chooses, by name.
func (s *Service) networkIDs(f NetworkFilter) []ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chosen []*Network
	for _, nx := range s.ix.networks {
		n := nx.record.value
		if n != nil && n.Stage == "" && (f.Space == "" || n.Space == f.Space) && n.Name > f.After {
			chosen = append(chosen, n)
		}
	}
	slices.SortFunc(chosen, func(a, b *Network) int { return strings.Compare(a.Name, b.Name) })
	if f.Limit > 0 {
		chosen = chosen[:min(len(chosen), f.Limit)]
	}
	ids := make([]ID, len(chosen))
	for i, n := range chosen {
		ids[i] = n.ID
	}
	return ids
}

// Network returns one network, by name or id, with its maps.
func (s *Service) Network(ctx context.Context, ref string) (info NetworkInfo, err error) {
	err = s.look(ctx, func(c *change) error {
		n, err := c.network(ref)
		if err != nil {
			return err
		}
		info = s.showNetwork(c.ix.networkIndex(n.ID), true)
		return nil
	})
	return info, err
}

// look runs fn over the records and the index, for reading only.
func (s *Service) look(ctx context.Context, fn func(*change) error) error {
	return s.store.View(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fn(&change{tx: tx, ix: s.ix, now: s.now(), host: s.host})
	})
}

func (s *Service) showNetwork(nx *networkIndex, maps bool) NetworkInfo {
	n := nx.record.value
	info := NetworkInfo{ID: n.ID, Name: n.Name, Space: n.Space, Tags: copyTags(n.Tags), MACPrefix: n.MACPrefix,
		Subnets: []SubnetPlan{}, Links: append([]Link{}, n.Links...), Sticky: !n.Policy.Forget, Planned: n.Planned,
		Type: n.Type.String(), Static: append([]Range{}, s.ix.bands(n.ID)...), OwnerRules: append([]OwnerRule{}, n.Rules...),
		Headroom: n.Headroom, Revision: n.revision(), Created: n.Created}
	if n.Policy.Quarantine > 0 {
		info.Quarantine = n.Policy.Quarantine.String()
	}
	for _, id := range nx.subnets {
		sub := s.ix.subnets[id].show(maps)
		info.Held += sub.Held
		info.Reserved += sub.Reserved
		info.Docker += sub.Docker
		info.Subnets = append(info.Subnets, sub)
	}
	info.flatten()
	return info
}

func copyTags(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return maps.Clone(tags)
}

// flatten fills the flat fields from the first subnet of each family, and the map from the first pool of the first IPv4
// subnet, or of the first one where there is none (GA-26).
func (info *NetworkInfo) flatten() {
	for i, sub := range info.Subnets {
		first4 := sub.CIDR.Addr().Is4() && !info.Network.IsValid()
		switch {
		case first4:
			info.Network, info.Gateway = sub.CIDR, sub.Gateway
		case sub.CIDR.Addr().Is6() && !info.Network6.IsValid():
			info.Network6, info.Gateway6 = sub.CIDR, sub.Gateway
		}
		if first4 || i == 0 {
			info.Map = ""
			if len(sub.Pools) > 0 {
				info.Map = sub.Pools[0].Map
			}
		}
	}
}

func (sx *subnetIndex) show(maps bool) SubnetPlan {
	sub := sx.record.value
	info := SubnetPlan{ID: sub.ID, Name: sub.Name, CIDR: sub.CIDR, Gateway: sub.Gateway, DHCP: sub.DHCP,
		Pools: []PoolPlan{}, Exclusions: []ExclusionPlan{}, Held: sx.held(), Reserved: uint64(sx.reserved), Docker: len(sub.Attachments)}
	for _, open := range sx.openPools(sub) {
		pool := PoolPlan{Name: open.Name, Start: open.Range.From(), End: open.Range.To(), Free: Count{sx.free(&open)}}
		if maps {
			pool.Map = sx.draw(&open)
		}
		info.Pools = append(info.Pools, pool)
	}
	for _, x := range sub.Exclusions {
		info.Exclusions = append(info.Exclusions, ExclusionPlan{x.Range.From(), x.Range.To(), x.Note})
	}
	return info
}

// draw is the map of a pool: . for what is free, X for what is held, reserved, excluded or no host address (GA-23).
func (sx *subnetIndex) draw(p *openPool) string {
	n := alloc.Size(p.Range.IPRange)
	if !n.IsInt64() || n.Int64() > MaxMap {
		return ""
	}
	size := int(n.Int64())
	drawn := make([]byte, 0, size)
	next := p.Range.From()
	for _, r := range p.ranges {
		for ; next.Less(r.From()); next = next.Next() {
			drawn = append(drawn, 'X')
		}
		for ; next.IsValid() && !r.To().Less(next); next = next.Next() {
			drawn = append(drawn, sx.mark(next))
		}
	}
	for len(drawn) < size {
		drawn = append(drawn, 'X')
	}
	return string(drawn)
}

func (sx *subnetIndex) mark(addr netip.Addr) byte {
	if !sx.recorded.Contains(addr) {
		return '.'
	}
	if _, remembered := sx.memories[addr]; remembered {
		return '.'
	}
	return 'X'
}

// Available lists the lowest addresses that an automatic request in a subnet, by id, could be given, at most limit.
func (s *Service) Available(ctx context.Context, subnet ID, limit int) (free []netip.Addr, err error) {
	err = s.look(ctx, func(c *change) error {
		sx, _, err := c.wholeSubnet(subnet)
		if err != nil {
			return err
		}
		free = []netip.Addr{}
		limit = max(limit, 0)
		for _, p := range sx.openPools(sx.record.value) {
			for _, r := range p.ranges {
				free = sx.freeIn(r, free, limit, c)
			}
		}
		slices.SortFunc(free, netip.Addr.Compare)
		free = free[:min(len(free), limit)]
		return nil
	})
	return free, err
}

// freeIn appends the lowest free addresses of r, at most limit of them.
func (sx *subnetIndex) freeIn(r netipx.IPRange, free []netip.Addr, limit int, c *change) []netip.Addr {
	found := 0
	for addr, e := range sx.memories {
		if r.Contains(addr) && !e.Value.(memory).until.After(c.now) {
			free = append(free, addr)
		}
	}
	for found < limit {
		addr, ok := sx.recorded.NextFree(r)
		if !ok {
			break
		}
		free, found = append(free, addr), found+1
		if addr == r.To() {
			break
		}
		r = netipx.IPRangeFrom(addr.Next(), r.To())
	}
	return free
}

// AddressFilter chooses reservations and taken addresses. Zero fields choose all. They come by space, subnet and address.
type AddressFilter struct {
	Network    string // name or id
	Owner      string
	AfterSpace string // with After: only those behind that address of that space
	After      netip.Addr
	Limit      int // only so many

	AfterNetwork, AfterOwner string // only owners of dynamic networks, behind that one of that network; empty: all
}

// Reservations yields reserved addresses, until an error is yielded, which is the last. Behind them come, without addresses,
// the owners in networks whose addresses somebody else chooses.
func (s *Service) Reservations(ctx context.Context, f AddressFilter) iter.Seq2[ReservationInfo, error] {
	return func(yield func(ReservationInfo, error) bool) {
		found := 0
		if f.AfterNetwork == "" {
			for info, err := range s.reservedAddresses(ctx, f) {
				found++
				if !yield(info, err) || err != nil || found == f.Limit {
					return
				}
			}
		}
		owners, err := s.dynamicReservations(ctx, f)
		if err != nil {
			yield(ReservationInfo{}, err)
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

func (s *Service) reservedAddresses(ctx context.Context, f AddressFilter) iter.Seq2[ReservationInfo, error] {
	f.Owner = canonicalOwner(f.Owner)
	return eachOf(ctx, s, f, func(sub *SubnetInfo, l *Lease) (ReservationInfo, bool) {
		r := l.Reservation
		if r == nil || f.Owner != "" && r.Owner != f.Owner || !r.Until.IsZero() && !r.Until.After(s.now()) {
			return ReservationInfo{}, false
		}
		info := ReservationInfo{Owner: r.Owner, Address: l.Address, Kind: r.Kind, InUse: l.Held(), Space: sub.Space, Network: sub.NetworkName, Subnet: sub.CIDR,
			Interface: int(r.Slot.Interface), Slot: int(r.Slot.Number), Since: eventTime(r.ID), Replaced: r.Replaced, Until: r.Until}
		if l.Held() {
			info.Endpoint, info.Host = cmp.Or(l.Name, l.MAC.String()), l.Host
		}
		return info, true
	})
}

// Taken yields the addresses that were taken for what is no container, until an error is yielded, which is the last.
func (s *Service) Taken(ctx context.Context, f AddressFilter) iter.Seq2[TakenAddress, error] {
	f.Owner = canonicalOwner(f.Owner)
	return eachOf(ctx, s, f, func(sub *SubnetInfo, l *Lease) (TakenAddress, bool) {
		if !l.Held() || l.Kind != External || f.Owner != "" && l.Name != f.Owner {
			return TakenAddress{}, false
		}
		return TakenAddress{Owner: l.Name, Address: l.Address, Space: sub.Space, Network: sub.NetworkName, Subnet: sub.CIDR,
			Interface: int(l.Slot.Interface), Slot: int(l.Slot.Number), Since: l.Since}, true
	})
}

// eachOf yields what show makes of the addresses that f chooses, read in pages.
func eachOf[T any](ctx context.Context, s *Service, f AddressFilter, show func(*SubnetInfo, *Lease) (T, bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		subnets, err := s.subnetsFor(ctx, f)
		if err != nil {
			yield(none, err)
			return
		}
		found := 0
		for _, sub := range subnets {
			for l, err := range s.records(ctx, sub.ID, f.afterIn(&sub)) {
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

// subnetsFor lists the subnets in which f may choose something, by space and address.
func (s *Service) subnetsFor(ctx context.Context, f AddressFilter) ([]SubnetInfo, error) {
	var network ID
	if f.Network != "" {
		err := s.look(ctx, func(c *change) error {
			n, err := c.network(f.Network)
			if err == nil {
				network = n.ID
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	all, err := s.Subnets(ctx, "")
	return slices.DeleteFunc(all, func(sub SubnetInfo) bool {
		return f.past(&sub) || network != (ID{}) && sub.Network != network
	}), err
}

// past tells whether f begins behind all of the subnet.
func (f *AddressFilter) past(sub *SubnetInfo) bool {
	return f.After.IsValid() && (sub.Space < f.AfterSpace || sub.Space == f.AfterSpace && lastAddr(sub.CIDR).Less(f.After))
}

// afterIn is the address of the subnet behind which f begins; the zero one is before the first.
func (f *AddressFilter) afterIn(sub *SubnetInfo) netip.Addr {
	if sub.Space == f.AfterSpace && sub.CIDR.Contains(f.After) {
		return f.After
	}
	return netip.Addr{}
}

// records yields the records of a subnet's addresses behind one, read in pages.
func (s *Service) records(ctx context.Context, subnet ID, after netip.Addr) iter.Seq2[*Lease, error] {
	return func(yield func(*Lease, error) bool) {
		next := leasesOf(subnet)
		next.Limit = pageSize
		if after.IsValid() {
			next.From = append(leaseKey(nil, subnet, after), 0)
		}
		for next.From != nil {
			var page []*Lease
			err := s.store.View(ctx, func(tx store.Tx) (err error) {
				page, next.From, err = readPage(tx, next)
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
