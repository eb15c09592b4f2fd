package ipam

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"berth/store"
)

// Export yields the plan network by network, by name, until an error is yielded, which is the last: all networks that are
// planned, or, where one is named, that one whatever it is. Each is as it was at one moment. What Docker has in use is no
// part of the plan.
func (s *Service) Export(ctx context.Context, network string) iter.Seq2[PlannedNetwork, error] {
	return func(yield func(PlannedNetwork, error) bool) {
		ids, err := s.exported(ctx, network)
		if err != nil {
			yield(PlannedNetwork{}, err)
			return
		}
		for _, id := range ids {
			planned, err := s.exportNetwork(ctx, id)
			if err != nil {
				yield(PlannedNetwork{}, err)
				return
			}
			if planned != nil && !yield(*planned, nil) {
				return
			}
		}
	}
}

func (s *Service) exported(ctx context.Context, network string) ([]ID, error) {
	if network != "" {
		n, err := s.Network(ctx, network)
		return []ID{n.ID}, err
	}
	ids := s.networkIDs(NetworkFilter{})
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(ids, func(id ID) bool {
		n := s.ix.network(id)
		return n == nil || !n.Planned
	}), nil
}

// exportNetwork describes a network out of one view; nil where it is gone. The index only says which subnets to look for.
func (s *Service) exportNetwork(ctx context.Context, id ID) (planned *PlannedNetwork, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		n, err := s.viewNetwork(tx, id)
		if err != nil || n == nil || n.Stage != "" {
			return err
		}
		subnets, err := s.viewSubnets(tx, id)
		if err != nil {
			return err
		}
		planned = n.planned()
		for _, sub := range subnets {
			planned.Subnets = append(planned.Subnets, sub.planned())
		}
		return planned.owned(tx, n, subnets, s.now())
	})
	return planned, err
}

// viewNetwork reads the record of a network, nil where there is none.
func (s *Service) viewNetwork(tx store.Tx, id ID) (*Network, error) {
	raw, err := tx.Get(networkKey(nil, id))
	if err != nil || raw == nil {
		return nil, err
	}
	s.mu.Lock()
	var known cached[Network]
	if nx := s.ix.networks[id]; nx != nil {
		known = nx.record
	}
	s.mu.Unlock()
	if known.is(raw) {
		return known.value, nil
	}
	n := new(Network)
	return n, decodeJSON("network "+id.String(), raw, n)
}

// viewSubnets reads the records of a network's subnets, in the order in which they are searched.
func (s *Service) viewSubnets(tx store.Tx, network ID) ([]*Subnet, error) {
	s.mu.Lock()
	var known []cached[Subnet]
	if nx := s.ix.networks[network]; nx != nil {
		for _, id := range nx.subnets {
			known = append(known, s.ix.subnets[id].record)
		}
	}
	s.mu.Unlock()
	subnets := make([]*Subnet, 0, len(known))
	for _, record := range known {
		sub, err := viewSubnet(tx, record)
		if err != nil {
			return nil, err
		}
		if sub != nil {
			subnets = append(subnets, sub)
		}
	}
	slices.SortStableFunc(subnets, (*Subnet).byAge)
	return subnets, nil
}

// viewSubnet reads the record of a subnet that the index knows; nil where there is none, or one of another subnet.
func viewSubnet(tx store.Tx, known cached[Subnet]) (*Subnet, error) {
	raw, err := tx.Get(subnetKey(nil, known.value.Space, known.value.CIDR))
	if err != nil || raw == nil {
		return nil, err
	}
	if known.is(raw) {
		return known.value, nil
	}
	sub := new(Subnet)
	if err := decodeJSON("subnet "+known.value.CIDR.String(), raw, sub); err != nil {
		return nil, err
	}
	if sub.ID != known.value.ID {
		return nil, nil
	}
	return sub, nil
}

// planned describes the network without what is in it.
func (n *Network) planned() *PlannedNetwork {
	p := &PlannedNetwork{Name: n.Name, Space: n.Space, Tags: maps.Clone(n.Tags), MACPrefix: n.MACPrefix, Links: slices.Clone(n.Links)}
	if n.Policy.Forget {
		p.Sticky = new(bool)
	}
	if n.Policy.Quarantine > 0 {
		quarantine := Duration(n.Policy.Quarantine)
		p.Quarantine = &quarantine
	}
	p.Headroom = n.Headroom
	if n.Type != Manual {
		p.Type = n.Type.String()
	}
	p.OwnerRules = slices.Clone(n.Rules)
	return p
}

func (sub *Subnet) planned() PlannedSubnet {
	p := PlannedSubnet{CIDR: sub.CIDR, Name: sub.Name, Gateway: sub.Gateway, DHCP: sub.DHCP}
	for _, band := range sub.Static {
		p.Static = append(p.Static, PlannedBand{Range: band})
	}
	for _, pool := range sub.Pools {
		p.Pools = append(p.Pools, PlannedPool{Range: pool.Range, Name: pool.Name})
	}
	for _, x := range sub.Exclusions {
		p.Exclusions = append(p.Exclusions, PlannedExclusion{Range: x.Range, Note: x.Note})
	}
	return p
}

// owned adds the reservations and the taken addresses in the subnets, by address, less the reservations whose time is over.
func (p *PlannedNetwork) owned(tx store.Tx, n *Network, subnets []*Subnet, now time.Time) error {
	if n.Type == Dynamic {
		known, err := readOwners(tx, n.ID)
		if err != nil {
			return err
		}
		for _, one := range known {
			if !over(one.Until, now) {
				p.Reservations = append(p.Reservations, PlannedReservation{Owner: one.owner, Until: stored(one.Until)})
			}
		}
	}
	for _, sub := range subnets {
		err := eachLease(tx, sub.ID, func(l *Lease) error {
			p.ownedBy(l, n.Type == Manual && !sub.static(l.Address).IsZero(), now)
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(p.Reservations, func(a, b PlannedReservation) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(p.Addresses, func(a, b PlannedAddress) int { return a.Address.Compare(b.Address) })
	return nil
}

// stored is a time as a lease keeps it: in microseconds.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// over tells whether an end has come; the zero time is none.
func over(end, now time.Time) bool { return !end.IsZero() && !end.After(now) }

// ownedBy adds what an address is. An automatic reservation over which a static band was laid later can only be a static one
// where it is made anew.
func (p *PlannedNetwork) ownedBy(l *Lease, static bool, now time.Time) {
	external := l.Held() && l.Kind == External
	if r := l.Reservation; r != nil && !over(r.Until, now) {
		p.Reservations = append(p.Reservations, PlannedReservation{Owner: r.Owner, Address: l.Address,
			Automatic: r.Kind == Automatic && !static, Replaced: r.Replaced, Until: r.Until,
			Force: external && l.Name != r.Owner, Interface: int(r.Slot.Interface), Slot: int(r.Slot.Number)})
	}
	if external {
		p.Addresses = append(p.Addresses, PlannedAddress{Owner: l.Name, Address: l.Address,
			Interface: int(l.Slot.Interface), Slot: int(l.Slot.Number)})
	}
}
