package ipam

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/store"
)

// dynamicOwner is the record of an owner in a network whose addresses somebody else chooses: the owner is known there, whatever
// its address is (BO-8).
type dynamicOwner struct {
	ID    uint64    `json:"id"` // of the event that made it
	Until time.Time `json:"until,omitzero"`
}

// recordOwner makes an owner known in a dynamic network, and returns what addresses are known of it.
func (p *plan) recordOwner(e *AddReservation) (addrs []netip.Addr, err error) {
	owned, err := p.owned(e.Owner)
	if err != nil {
		return nil, err
	}
	for _, slot := range slots(owned.wanted) {
		addrs = append(addrs, owned.wanted[slot].addr)
	}
	if len(addrs) == 0 {
		err = p.writeOwner(e)
	}
	return addrs, err
}

func (p *plan) writeOwner(e *AddReservation) error {
	known, err := p.tx.Get(ownerKey(p.n.ID, e.Owner))
	if err != nil {
		return err
	}
	facts := reservationFacts{Owner: e.Owner, Kind: Automatic}
	if e.For > 0 {
		facts.Until = p.now.Add(time.Duration(e.For))
	}
	record := dynamicOwner{Until: facts.Until}
	if known != nil {
		if p.forgets {
			return refuse(AlreadyInUse, ErrInUse, "%s is known in network %s already, and this store, which forgets, takes nothing twice", e.Owner, p.n.Name)
		}
		var before dynamicOwner
		if err := decodeJSON("an owner", known, &before); err != nil || record.Until.IsZero() {
			return err
		}
		record.ID = before.ID
		_, err = p.tell(&Event{Verb: ReservationModified, Name: e.Owner}, reservationFacts{Owner: e.Owner, Kind: Automatic, Until: before.Until}, facts)
	} else {
		record.ID, err = p.tell(&Event{Verb: ReservationAdded, Name: e.Owner, Detail: Automatic.String()}, nil, facts)
	}
	if err != nil {
		return err
	}
	if err := p.setOwner(p.n.ID, e.Owner, &record); err != nil {
		return err
	}
	return p.keep()
}

// forgetOwner ends what recordOwner made, and tells whether it was there.
func (p *plan) forgetOwner(owner, why string) (known bool, err error) {
	raw, err := p.tx.Get(ownerKey(p.n.ID, owner))
	if err != nil || raw == nil {
		return false, err
	}
	var record dynamicOwner
	if err := decodeJSON("an owner", raw, &record); err != nil {
		return false, err
	}
	if _, err := p.tell(&Event{Verb: ReservationRemoved, Name: owner, Detail: why}, reservationFacts{Owner: owner, Kind: Automatic, Until: record.Until}, nil); err != nil {
		return false, err
	}
	return true, p.setOwner(p.n.ID, owner, nil)
}

// forgetOwners ends what is known of owners in all dynamic networks.
func (c *change) forgetOwners(owners ownerSet) error {
	for _, n := range c.dynamicNetworks() {
		p := &plan{c, n}
		known, err := p.dynamicOwners()
		if err != nil {
			return err
		}
		for _, one := range known {
			if !owners.has(one.owner) {
				continue
			}
			if _, err := p.forgetOwner(one.owner, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// dismissOwners ends what is known of owners in a network that is to be removed, or refuses that.
func (p *plan) dismissOwners(force bool) error {
	if p.n.Type != Dynamic {
		return nil
	}
	known, err := p.dynamicOwners()
	if err != nil {
		return err
	}
	for _, one := range known {
		if !force {
			return &refusal{ErrInUse, fmt.Sprintf("network %s is in use: %s has a reservation in it; end that with `berth reservation rm`", p.n.Name, one.owner)}
		}
		if _, err := p.forgetOwner(one.owner, ""); err != nil {
			return err
		}
	}
	return nil
}

// dynamicNetworks lists the networks of the type that are there as a whole, by name.
func (c *change) dynamicNetworks() []*Network {
	var all []*Network
	for _, nx := range c.ix.networks {
		if n := nx.record.value; n != nil && n.Type == Dynamic && n.Stage == "" {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *Network) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// dynamicReservations lists the owners of dynamic networks as reservations without an address, or with the one that was recorded
// for them. A page that begins behind an address has them all: they have no place among addresses.
func (s *Service) dynamicReservations(ctx context.Context, f AddressFilter) (all []ReservationInfo, err error) {
	owner := canonicalOwner(f.Owner)
	err = s.look(ctx, func(c *change) error {
		all = nil
		for _, n := range c.dynamicNetworks() {
			if f.Network != "" && f.Network != n.Name && f.Network != n.ID.String() && f.Network != n.ID.Short() {
				continue
			}
			p := &plan{c, n}
			known, err := p.dynamicOwners()
			if err != nil {
				return err
			}
			for _, one := range known {
				if owner != "" && one.owner != owner || !one.Until.IsZero() && !one.Until.After(c.now) || f.passed(n, one.owner) {
					continue
				}
				info := ReservationInfo{Dynamic: true, Owner: one.owner, Kind: Automatic, Space: n.Space, Network: n.Name, Since: eventTime(one.ID), Until: one.Until}
				taken, err := p.taken(one.owner)
				if err != nil {
					return err
				}
				for _, slot := range slots(taken) {
					at := taken[slot]
					info.Address, info.Subnet, info.InUse, info.Endpoint, info.Host = at.addr, at.sub.CIDR, true, at.record.Name, at.record.Host
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
func (f *AddressFilter) passed(n *Network, owner string) bool {
	return cmp.Or(strings.Compare(n.Name, f.AfterNetwork), strings.Compare(owner, f.AfterOwner)) <= 0
}

// knownOwner is an owner of a dynamic network.
type knownOwner struct {
	owner string
	dynamicOwner
}

// dynamicOwners reads the owners that are known in the network, by name.
func (p *plan) dynamicOwners() ([]knownOwner, error) { return readOwners(p.tx, p.n.ID) }

func readOwners(tx store.Tx, network ID) ([]knownOwner, error) {
	prefix := ownerKey(network, "")
	var all []knownOwner
	for rec, err := range tx.Scan(store.Prefix(prefix)) {
		if err != nil {
			return nil, err
		}
		one := knownOwner{owner: string(rec.Key[len(prefix):])}
		if err := decodeJSON("an owner", rec.Value, &one.dynamicOwner); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// setOwner writes an owner of a dynamic network, or removes it where the record is nil.
func (c *change) setOwner(network ID, owner string, record *dynamicOwner) error {
	if _, err := c.putJSON(ownerKey(network, owner), record, record == nil); err != nil {
		return err
	}
	what := ending{network: network, owner: owner}
	before := c.ix.ends.at[what]
	c.ix.ends.remove(what)
	if record != nil {
		c.ix.ends.add(what, record.Until)
	}
	c.undo = append(c.undo, func() {
		c.ix.ends.remove(what)
		c.ix.ends.add(what, before)
	})
	return nil
}

// loadOwners takes the owners of dynamic networks whose time will be over.
func loadOwners(ix *index, tx store.Tx) error {
	for id, nx := range ix.networks {
		if nx.record.value == nil || nx.record.value.Type != Dynamic {
			continue
		}
		known, err := readOwners(tx, id)
		if err != nil {
			return err
		}
		for _, one := range known {
			ix.ends.add(ending{network: id, owner: one.owner}, one.Until)
		}
	}
	return nil
}
