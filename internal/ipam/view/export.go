package view

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Export yields the planned networks by name, or only the named network, planned or not. Each is consistent in itself.
// An error is the last value. The plan does not include what Docker has in use.
//
// All networks are refused if the cluster's store was never reached, because the caller takes the result for the whole
// plan.
func (s Views) Export(ctx context.Context, network string) iter.Seq2[ipam.PlannedNetwork, error] {
	if network != "" {
		l, err := s.homes.With(network)
		if err != nil {
			return ledger.Refused[ipam.PlannedNetwork](err)
		}
		return export(ctx, l, network)
	}
	if err := s.Partial(); err != nil {
		return ledger.Refused[ipam.PlannedNetwork](ipam.Refuse(err, "the plan needs this host's store and the "+
			"cluster's store, but the cluster's store is unreachable: %s", err))
	}
	byName := func(a, b ipam.PlannedNetwork) int { return strings.Compare(a.Name, b.Name) }
	return ledger.MergedEach(s.homes, 0, byName, func(l *ledger.Ledger) iter.Seq2[ipam.PlannedNetwork, error] {
		return export(ctx, l, "")
	})
}

func export(ctx context.Context, s *ledger.Ledger, network string) iter.Seq2[ipam.PlannedNetwork, error] {
	return func(yield func(ipam.PlannedNetwork, error) bool) {
		ids, err := exported(ctx, s, network)
		if err != nil {
			yield(ipam.PlannedNetwork{}, err)
			return
		}
		for _, id := range ids {
			planned, err := PlanOf(ctx, s, id)
			if err != nil {
				yield(ipam.PlannedNetwork{}, err)
				return
			}
			if planned != nil && !yield(*planned, nil) {
				return
			}
		}
	}
}

func exported(ctx context.Context, s *ledger.Ledger, network string) ([]ipam.ID, error) {
	if network != "" {
		n, err := Of(ledger.Alone(s)).Network(ctx, network)
		return []ipam.ID{n.ID}, err
	}
	ids := networkIDs(s, ipam.NetworkFilter{})
	s.Read(func(ix *ledger.Index) {
		ids = slices.DeleteFunc(ids, func(id ipam.ID) bool {
			n := ix.Network(id)
			return n == nil || !n.Planned
		})
	})
	return ids, nil
}

// PlanOf describes a network from one view of the store. It returns nil if the network is gone. The index only provides
// which subnets to read.
func PlanOf(ctx context.Context, s *ledger.Ledger, id ipam.ID) (*ipam.PlannedNetwork, error) {
	return ledger.View(ctx, s, func(tx store.Tx) (*ipam.PlannedNetwork, error) {
		n, err := viewNetwork(s, tx, id)
		if err != nil || n == nil || n.Stage != "" {
			return nil, err
		}
		subnets, err := viewSubnets(s, tx, id)
		if err != nil {
			return nil, err
		}
		planned := n.Document()
		for _, sub := range subnets {
			planned.Subnets = append(planned.Subnets, planSubnet(sub))
		}
		return planned, owned(planned, tx, n, subnets, s.Now())
	})
}

// viewNetwork reads the record of a network. It returns nil if there is none.
func viewNetwork(s *ledger.Ledger, tx store.Tx, id ipam.ID) (*ipam.Network, error) {
	known := ledger.Ask(s, func(ix *ledger.Index) (known ledger.Cached[ipam.Network]) {
		if nx := ix.NetworkIndex(id); nx != nil {
			known = nx.Cached()
		}
		return known
	})
	return ledger.ReadKnown(tx, ledger.NetworkKey(nil, id), known, "network", id)
}

// viewSubnets reads the records of a network's subnets, in the order in which they are searched.
func viewSubnets(s *ledger.Ledger, tx store.Tx, network ipam.ID) ([]*ipam.Subnet, error) {
	known := ledger.Ask(s, func(ix *ledger.Index) (known []ledger.Cached[ipam.Subnet]) {
		for _, id := range ix.NetworkIndex(network).Subnets() {
			known = append(known, ix.Subnet(id).Cached())
		}
		return known
	})
	subnets := make([]*ipam.Subnet, 0, len(known))
	for _, record := range known {
		sub, err := viewSubnet(tx, record)
		if err != nil {
			return nil, err
		}
		if sub != nil {
			subnets = append(subnets, sub)
		}
	}
	slices.SortStableFunc(subnets, ledger.ByAge)
	return subnets, nil
}

// viewSubnet reads the record of a subnet that the index knows. It returns nil if there is none, or if another subnet
// has the key now.
func viewSubnet(tx store.Tx, known ledger.Cached[ipam.Subnet]) (*ipam.Subnet, error) {
	of := known.Value
	sub, err := ledger.ReadKnown(tx, ledger.SubnetKey(nil, of.Space, of.CIDR), known, "subnet", of.CIDR)
	if err != nil || sub == nil || sub.ID != of.ID {
		return nil, err
	}
	return sub, nil
}

func planSubnet(sub *ipam.Subnet) ipam.PlannedSubnet {
	p := sub.Planned()
	for _, band := range sub.Static {
		p.Static = append(p.Static, ipam.PlannedBand{Range: band})
	}
	for _, pool := range sub.Pools {
		p.Pools = append(p.Pools, ipam.PlannedPool{Range: pool.Range, Name: pool.Name})
	}
	for _, x := range sub.Exclusions {
		p.Exclusions = append(p.Exclusions, ipam.PlannedExclusion{Range: x.Range, Note: x.Note})
	}
	return p
}

// owned adds the reservations and taken addresses of the subnets, by address. It omits expired reservations.
func owned(p *ipam.PlannedNetwork, tx store.Tx, n *ipam.Network, subnets []*ipam.Subnet, now time.Time) error {
	if n.Type == ipam.Dynamic {
		known, err := ledger.ReadOwners(tx, n.ID)
		if err != nil {
			return err
		}
		for _, one := range known {
			if !over(one.Until, now) {
				p.Reservations = append(p.Reservations,
					ipam.PlannedReservation{Owner: one.Owner, Terms: one.Terms.Stored()})
			}
		}
	}
	for _, sub := range subnets {
		err := ledger.EachLease(tx, sub.ID, func(l *ipam.Lease) error {
			leaveOwned(p, l, n.Type == ipam.Manual && !sub.StaticBand(l.Address).IsZero(), now)
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(p.Reservations, func(a, b ipam.PlannedReservation) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Owner, b.Owner))
	})
	slices.SortFunc(p.Addresses, func(a, b ipam.PlannedAddress) int { return a.Address.Compare(b.Address) })
	return nil
}

// over reports whether a time has come. The zero time never comes.
func over(end, now time.Time) bool { return !end.IsZero() && !end.After(now) }

// leaveOwned adds the reservation and the taken address of a record. An automatic reservation in a band that became
// static later is exported as a static one, because it could not be imported otherwise.
func leaveOwned(p *ipam.PlannedNetwork, l *ipam.Lease, static bool, now time.Time) {
	external := l.Held() && l.Kind == ipam.External
	if r := l.Reservation; r != nil && !over(r.Until, now) {
		p.Reservations = append(p.Reservations, ipam.PlannedReservation{Owner: r.Owner, Address: l.Address,
			Automatic: r.Kind == ipam.Automatic && !static, Terms: r.Terms, Force: external && l.Name != r.Owner,
			Interface: int(r.Slot.Interface), Slot: int(r.Slot.Number)})
	}
	if external {
		p.Addresses = append(p.Addresses, l.PlannedAddress())
	}
}
