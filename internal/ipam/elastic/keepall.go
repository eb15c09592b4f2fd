package elastic

import (
	"context"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// whole marks all guests of this host that have a system address, or may be to have one, and takes back those
// addresses at whose guests nobody looks any more.
func (k *keeper) whole(ctx context.Context, due map[guestPlace]bool) error {
	var gone []netip.Addr
	err := k.ledger.Look(ctx, func(c *ledger.Change) error {
		clear(k.networks)
		for id, nx := range c.Index().Networks() {
			if terms, auto := termsOf(nx.Record()); auto {
				k.networks[id] = terms
			}
		}
		places, adrift := systemGuests(c)
		more, err := autoGuests(c)
		for _, at := range append(places, more...) {
			due[at] = true
		}
		for guest, subnets := range k.here {
			for _, id := range subnets {
				due[guestPlace{id, guest}] = true
			}
		}
		gone, k.needed = adrift, len(places)+len(adrift) > 0 || needsKeeper(c)
		return err
	})
	if err != nil {
		return err
	}
	return inPages(ctx, k.ledger, gone, func(c *ledger.Change, addr netip.Addr) error {
		if known := c.Index().Elastic(addr); known != nil && isAdrift(c, known) {
			return takeBack(c, known, "its network is gone, or its host")
		}
		return nil
	})
}

// systemGuests are the guests of this host that have system addresses, and those of such addresses that have no guest
// any more which somebody would look at.
func systemGuests(c *ledger.Change) (places []guestPlace, gone []netip.Addr) {
	for addr, one := range c.Index().Elastics() {
		if !one.System || one.State != ipam.ElasticAllocated {
			continue
		}
		if isAdrift(c, one) {
			gone = append(gone, addr)
		} else if isOurs(c, addr) {
			places = append(places, guestPlace{subnetOf(c, one).ID, one.Association.Guest})
		}
	}
	return places, gone
}

// subnetOf is the subnet of the guest of a system address; nil where it has none any more.
func subnetOf(c *ledger.Change, one *ipam.Elastic) *ipam.Subnet {
	if one.Association == nil {
		return nil
	}
	return subnetAt(c.Index(), one.Association.Network, one.Association.Guest)
}

// isAdrift tells whether no keeper looks at the guest of a system address: its network or its host is gone.
func isAdrift(c *ledger.Change, one *ipam.Elastic) bool {
	if !one.System || one.State != ipam.ElasticAllocated || isMoving(c.Index(), one.Address) {
		return false
	}
	if r := rangeOf(c.Index(), one.Address); r != nil && c.Member() != nil && r.Host != c.Host() {
		h := c.Index().Host(r.Host)
		return h == nil || h.State == ipam.HostRemoved
	}
	return !isOurs(c, one.Address) || subnetOf(c, one) == nil
}

// autoGuests are the addresses that containers of this host have on networks with the mode auto.
func autoGuests(c *ledger.Change) (places []guestPlace, err error) {
	for id, nx := range c.Index().Networks() {
		n := nx.Record()
		if n == nil || n.Stage != "" || n.Elastic != ipam.ElasticAuto {
			continue
		}
		for _, sub := range c.Index().NetworkIndex(id).Subnets() {
			err := ledger.EachLease(c.Tx(), sub, func(l *ipam.Lease) error {
				if runsHere(c, l) {
					places = append(places, guestPlace{sub, l.Address})
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return places, nil
}
