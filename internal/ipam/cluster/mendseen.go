package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// sighting is an address that runs here according to the engine.
type sighting struct {
	cidr      netip.Prefix
	network   string // Docker's name of the network
	container string
	mac       ipam.MAC
	gateway   bool
	wanted    bool // the user requested this address
}

// sightings returns the addresses that run on networks of this Berth, and the gateways of these networks.
func sightings(view *ipam.EngineView) map[netip.Addr][]sighting {
	all := map[netip.Addr][]sighting{}
	if view == nil {
		return all
	}
	networks := map[string]*ipam.EngineNetwork{}
	for i := range view.Networks {
		n := &view.Networks[i]
		networks[n.ID] = n
		for _, sub := range n.Subnets {
			if sub.Gateway.IsValid() {
				all[sub.Gateway] = append(all[sub.Gateway], sighting{cidr: sub.CIDR, network: n.Name, gateway: true})
			}
		}
	}
	for _, c := range view.Containers {
		for _, ep := range c.Endpoints {
			n := networks[ep.Network]
			if n == nil {
				continue
			}
			for _, addr := range ep.Addresses {
				for _, sub := range n.Subnets {
					if sub.CIDR.Contains(addr) {
						all[addr] = append(all[addr],
							sighting{sub.CIDR, n.Name, c.Name, ep.MAC, false, slices.Contains(ep.Wanted, addr)})
					}
				}
			}
		}
	}
	return all
}

// runs reports whether an address of a subnet runs here.
func (m *mender) runs(sub *ipam.Subnet, addr netip.Addr) bool {
	return slices.ContainsFunc(m.running[addr], func(s sighting) bool { return s.cidr == sub.CIDR })
}

// holdRunning makes this host the holder of addresses that run here and have no record.
func (m *mender) holdRunning(ctx context.Context) error {
	for _, addr := range allocator.SortedAddrs(m.running) {
		for _, seen := range m.running[addr] {
			if err := m.do(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
				return m.hold(c, r, addr, seen)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// hold makes this host the holder of one running address, through its attachment to the subnet. If it has none, the
// address belongs to the host's own store.
func (m *mender) hold(c *ledger.Change, r *ipam.MendReport, addr netip.Addr, seen sighting) error {
	at, err := holdOn(c, seen.cidr)
	if err != nil || at == nil {
		m.unheld(c, r, addr, seen)
		return err
	}
	sub, err := c.SubnetOf(at)
	if err != nil {
		return err
	}
	held, err := c.Lease(sub.ID, addr)
	if err != nil {
		return err
	}
	if held.Held() && (held.Host == c.Host() || held.Attachment == (ipam.ID{})) && held.Kind != ipam.Headroom ||
		held.Held() && held.Kind == ipam.Headroom && m.used[addr] && held.Host == c.Host() {
		return nil
	}
	id, err := c.Event(&ipam.Event{Verb: ipam.LeaseTaken, Space: sub.Space, Subnet: sub.CIDR, Address: addr,
		Attachment: at.ID, MAC: seen.mac, Name: seen.container,
		Detail: "it is in use, but the store had no record of it"})
	if err != nil {
		return err
	}
	kind := ipam.Automatic
	switch {
	case seen.gateway:
		kind = ipam.Gateway
	case seen.wanted:
		kind = ipam.Static
	}
	l := &ipam.Lease{ID: id, Address: addr, Kind: kind, Attachment: at.ID, MAC: seen.mac, Name: seen.container,
		Host: c.Host(), Since: c.TimeOf(id), Reservation: held.Reserved()}
	if held.Held() && held.Host != c.Host() {
		return m.collide(c, r, sub, l, held)
	}
	r.Running++
	return c.SetLease(sub.ID, addr, held, l)
}

// holdOn returns this host's latest attachment to a subnet, or nil.
func holdOn(c *ledger.Change, cidr netip.Prefix) (found *ipam.Attachment, err error) {
	for id, a := range c.Index().Attachments() {
		if a.Host == c.Host() && !a.Ended && a.CIDR == cidr && (found == nil || a.Created.After(found.Created)) {
			if found, err = c.Attachment(id); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// unheld reports an address that runs on a subnet of the cluster to which this host has no attachment.
func (m *mender) unheld(c *ledger.Change, r *ipam.MendReport, addr netip.Addr, seen sighting) {
	for _, sx := range c.Index().Subnets() {
		if sub := sx.Record(); sub.CIDR == seen.cidr && !seen.gateway {
			r.Problems = append(r.Problems,
				fmt.Sprintf("the container %s runs with the address %s on the Docker network %s, but the store has no "+
					"Docker network of this host on %s: stop that container, then remove and recreate the Docker "+
					"network", seen.container, addr, seen.network, sub.CIDR))
		}
	}
}

// collide decides between this host's lease l and another host's lease held of the same address. The lease that runs
// here wins, unless the other host has reported that it runs there, too. Otherwise the later lease wins.
func (m *mender) collide(c *ledger.Change, r *ipam.MendReport, sub *ipam.Subnet, l, held *ipam.Lease) error {
	runs := m.runs(sub, l.Address)
	mark := markOf(c.Index())
	done := mark.Hosts[held.Host] == nil || mark.Hosts[held.Host].State != mendWaited
	mine := runs && !runsOn(mark, held.Host, l.Address)
	if !runs && (l.Kind != ipam.Headroom || m.used[l.Address]) && (m.view == nil || !done) {
		mine = l.ID > held.ID
	}
	one := ipam.MendCollision{Space: sub.Space, Address: l.Address, Here: l.Holder(), There: held.Holder(),
		Kept: held.Host, Seen: runs}
	if mine {
		one.Kept = c.Host()
	}
	if runs || done || held.ID > l.ID { // otherwise it is an old lease, which its host is about to end
		r.Collisions = append(r.Collisions, one)
	}
	if !mine {
		return nil
	}
	if _, err := c.Event(held.Event(ipam.LeaseReleased, sub, "the address stays with "+l.Holder())); err != nil {
		return err
	}
	r.Leases++
	again := *l
	again.Reservation = held.Reserved()
	return c.SetLease(sub.ID, l.Address, held, &again)
}

// namesOf lists names for a person.
func namesOf[V any](of map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ", ")
}
