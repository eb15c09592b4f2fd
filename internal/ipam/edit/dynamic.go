package edit

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// recordOwner records an owner in a dynamic network and returns its known addresses. terms maps the owner's old terms
// to the new ones. again allows an owner that is already known in a store that forgets.
func (p *Plan) recordOwner(owner string, again bool, terms func(had ipam.Terms) ipam.Terms) (addrs []netip.Addr,
	err error) {
	owned, err := p.owned(owner)
	if err != nil {
		return nil, err
	}
	for _, slot := range slots(owned.Wanted) {
		addrs = append(addrs, owned.Wanted[slot].Addr)
	}
	if len(addrs) == 0 {
		err = p.writeOwner(owner, again, terms)
	}
	return addrs, err
}

func (p *Plan) writeOwner(owner string, again bool, terms func(ipam.Terms) ipam.Terms) error {
	known, err := p.Tx().Get(ledger.OwnerKey(p.N.ID, owner))
	if err != nil {
		return err
	}
	var record ledger.DynamicOwner
	if known == nil {
		record.Terms = terms(ipam.Terms{})
		record.ID, err = p.Tell(&ipam.Event{Verb: ipam.ReservationAdded, Name: owner,
			Detail: ipam.Automatic.String()}, nil, ledger.DynamicFacts(owner, record.Terms))
	} else {
		if p.Forgets() && !again {
			return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "%s is already known in network %s, and a store "+
				"in memory accepts each owner only once", owner, p.Called())
		}
		if err := ipam.DecodeJSON("an owner", known, &record); err != nil {
			return err
		}
		had := record.Terms
		if record.Terms = terms(had); record.Terms == had {
			return nil
		}
		_, err = p.Tell(&ipam.Event{Verb: ipam.ReservationModified, Name: owner}, ledger.DynamicFacts(owner, had),
			ledger.DynamicFacts(owner, record.Terms))
	}
	if err != nil {
		return err
	}
	if err := p.SetOwner(p.N.ID, owner, &record); err != nil {
		return err
	}
	return p.Keep()
}

// forgetOwners removes owners from all dynamic networks.
func forgetOwners(c *ledger.Change, owners OwnerSet) error {
	for _, n := range DynamicNetworks(c) {
		p := PlanOf(c, n)
		known, err := p.DynamicOwners()
		if err != nil {
			return err
		}
		for _, one := range known {
			if !owners.Has(one.Owner) {
				continue
			}
			if _, err := allocator.ForgetOwner(&p.NetworkPlan, one.Owner, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// dismissOwners removes the owners of a network that is being removed. Without force it refuses if there are any.
func (p *Plan) dismissOwners(force bool) error {
	if p.N.Type != ipam.Dynamic {
		return nil
	}
	known, err := p.DynamicOwners()
	if err != nil {
		return err
	}
	for _, one := range known {
		if !force {
			return ipam.Refuse(ipam.ErrInUse, "network %s is in use: %s has a reservation in it", p.Called(),
				one.Owner).Advise(ipam.DoEndReservation)
		}
		if _, err := allocator.ForgetOwner(&p.NetworkPlan, one.Owner, ""); err != nil {
			return err
		}
	}
	return nil
}

// DynamicNetworks lists the complete dynamic networks, by name.
func DynamicNetworks(c *ledger.Change) []*ipam.Network {
	var all []*ipam.Network
	for _, nx := range c.Index().Networks() {
		if n := nx.Record(); n != nil && n.Type == ipam.Dynamic && n.Stage == "" {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *ipam.Network) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// DynamicReservations lists the owners of dynamic networks as reservations, with a recorded or leased address if there
// is one. A page that starts after an address still has all of them, because they have no place among addresses.
func DynamicReservations(ctx context.Context, s *ledger.Ledger,
	f ipam.AddressFilter) (all []ipam.ReservationInfo, err error) {
	owner := ipam.CanonicalOwner(f.Owner)
	err = s.Look(ctx, func(c *ledger.Change) error {
		all = nil
		for _, n := range DynamicNetworks(c) {
			if f.Network != "" && f.Network != n.Name && f.Network != n.ID.String() && f.Network != n.ID.Short() {
				continue
			}
			p := PlanOf(c, n)
			known, err := p.DynamicOwners()
			if err != nil {
				return err
			}
			leases, err := p.givenIn()
			if err != nil {
				return err
			}
			for _, one := range known {
				if owner != "" && one.Owner != owner || !one.Until.IsZero() && !one.Until.After(c.Now()) ||
					passed(&f, n, one.Owner) {
					continue
				}
				info := ipam.ReservationInfo{Dynamic: true, Owner: one.Owner, Kind: ipam.Automatic, Space: n.Space,
					Network: c.ShownName(n), NetworkID: n.ID, Since: c.Began(one.ID), Terms: one.Terms}
				if n.MACPrefix != "" {
					info.MAC = ipam.OwnerMAC(n.ID, n.MACPrefix, one.Owner, 0)
				}
				taken, err := p.Taken(one.Owner)
				if err != nil {
					return err
				}
				for _, slot := range slots(taken) {
					at := taken[slot]
					info.Address, info.Subnet, info.InUse, info.Endpoint, info.Host = at.Addr, at.Sub.CIDR, true,
						at.Record.Name, at.Record.Host
					break
				}
				if !info.Address.IsValid() {
					p.showGiven(&info, leases)
				}
				all = append(all, info)
			}
		}
		return nil
	})
	return all, err
}

// passed reports whether the page of f begins after this owner.
func passed(f *ipam.AddressFilter, n *ipam.Network, owner string) bool {
	return cmp.Or(strings.Compare(n.Name, f.AfterNetwork), strings.Compare(owner, f.AfterOwner)) <= 0
}
