package edit

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// RecordOwner makes an owner known in a dynamic network, and returns what addresses are known of it.
func (p *Plan) RecordOwner(e *ipam.AddReservation) (addrs []netip.Addr, err error) {
	owned, err := p.Owned(e.Owner)
	if err != nil {
		return nil, err
	}
	for _, slot := range slots(owned.Wanted) {
		addrs = append(addrs, owned.Wanted[slot].Addr)
	}
	if len(addrs) == 0 {
		err = p.writeOwner(e)
	}
	return addrs, err
}

func (p *Plan) writeOwner(e *ipam.AddReservation) error {
	known, err := p.Tx().Get(ledger.OwnerKey(p.N.ID, e.Owner))
	if err != nil {
		return err
	}
	facts := ReservationFacts{Owner: e.Owner, Kind: ipam.Automatic}
	if e.For > 0 {
		facts.Until = p.Now().Add(time.Duration(e.For))
	}
	record := ledger.DynamicOwner{Until: facts.Until}
	if known != nil {
		if p.Forgets() && !e.Replace {
			return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse,
				"%s is known in network %s already, and this store, which "+
					"forgets, takes nothing twice", e.Owner, p.N.Name)
		}
		var before ledger.DynamicOwner
		if err := ipam.DecodeJSON("an owner", known, &before); err != nil {
			return err
		} else if record.Until.IsZero() {
			return nil
		}
		record.ID = before.ID
		_, err = p.Tell(&ipam.Event{Verb: ipam.ReservationModified, Name: e.Owner},
			ReservationFacts{Owner: e.Owner, Kind: ipam.Automatic, Until: before.Until}, facts)
	} else {
		record.ID, err = p.Tell(&ipam.Event{Verb: ipam.ReservationAdded, Name: e.Owner,
			Detail: ipam.Automatic.String()}, nil, facts)
	}
	if err != nil {
		return err
	}
	if err := SetOwner(p.Change, p.N.ID, e.Owner, &record); err != nil {
		return err
	}
	return p.Keep()
}

// ForgetOwner ends what recordOwner made, and tells whether it was there.
func (p *Plan) ForgetOwner(owner, why string) (known bool, err error) {
	raw, err := p.Tx().Get(ledger.OwnerKey(p.N.ID, owner))
	if err != nil {
		return false, err
	}
	if raw == nil {
		return false, nil
	}
	var record ledger.DynamicOwner
	if err := ipam.DecodeJSON("an owner", raw, &record); err != nil {
		return false, err
	}
	if _, err := p.Tell(&ipam.Event{Verb: ipam.ReservationRemoved, Name: owner, Detail: why},
		ReservationFacts{Owner: owner, Kind: ipam.Automatic, Until: record.Until}, nil); err != nil {
		return false, err
	}
	return true, SetOwner(p.Change, p.N.ID, owner, nil)
}

// forgetOwners ends what is known of owners in all dynamic networks.
func forgetOwners(c *ledger.Change, owners OwnerSet) error {
	for _, n := range DynamicNetworks(c) {
		p := &Plan{c, n}
		known, err := p.DynamicOwners()
		if err != nil {
			return err
		}
		for _, one := range known {
			if !owners.Has(one.Owner) {
				continue
			}
			if _, err := p.ForgetOwner(one.Owner, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// dismissOwners ends what is known of owners in a network that is to be removed, or refuses that.
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
			return ipam.Help(ipam.Refuse(ipam.ErrInUse, "network %s is in use: %s has a reservation in it", p.N.Name,
				one.Owner),
				ipam.Advise(ipam.DoEndReservation))
		}
		if _, err := p.ForgetOwner(one.Owner, ""); err != nil {
			return err
		}
	}
	return nil
}

// DynamicNetworks lists the networks of the type that are there as a whole, by name.
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

// DynamicReservations lists the owners of dynamic networks as reservations without an address, or with the one that was
// recorded for them. A page that begins behind an address has them all: they have no place among addresses.
func DynamicReservations(ctx context.Context, s *ledger.Ledger,
	f ipam.AddressFilter) (all []ipam.ReservationInfo, err error) {
	owner := ipam.CanonicalOwner(f.Owner)
	err = s.Look(ctx, func(c *ledger.Change) error {
		all = nil
		for _, n := range DynamicNetworks(c) {
			if f.Network != "" && f.Network != n.Name && f.Network != n.ID.String() && f.Network != n.ID.Short() {
				continue
			}
			p := &Plan{c, n}
			known, err := p.DynamicOwners()
			if err != nil {
				return err
			}
			for _, one := range known {
				if owner != "" && one.Owner != owner || !one.Until.IsZero() && !one.Until.After(c.Now()) ||
					passed(&f, n, one.Owner) {
					continue
				}
				info := ipam.ReservationInfo{Dynamic: true, Owner: one.Owner, Kind: ipam.Automatic, Space: n.Space,
					Network: n.Name, Since: ipam.EventTime(one.ID), Until: one.Until}
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
				all = append(all, info)
			}
		}
		return nil
	})
	return all, err
}

// passed tells whether f begins behind an owner of a dynamic network.
func passed(f *ipam.AddressFilter, n *ipam.Network, owner string) bool {
	return cmp.Or(strings.Compare(n.Name, f.AfterNetwork), strings.Compare(owner, f.AfterOwner)) <= 0
}

// DynamicOwners reads the owners that are known in the network, by name.
func (p *Plan) DynamicOwners() ([]ledger.KnownOwner, error) { return ledger.ReadOwners(p.Tx(), p.N.ID) }

// SetOwner writes an owner of a dynamic network, or removes it where the record is nil.
func SetOwner(c *ledger.Change, network ipam.ID, owner string, record *ledger.DynamicOwner) error {
	if _, err := c.PutJSON(ledger.OwnerKey(network, owner), record, record == nil); err != nil {
		return err
	}
	var until time.Time
	if record != nil {
		until = record.Until
	}
	c.SetEnding(network, owner, until)
	return nil
}
