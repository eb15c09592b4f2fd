package docker

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"go4.org/netipx"
)

// AdoptPlan is a Docker network as a plan, for a network of a name: its subnets with gateways, a pool of its range, and
// each address that a container has, or that its user gave it, reserved for the container. What is no container's is an
// address that is taken. The view is that of Engine.Network; nothing is changed.
func AdoptPlan(view ipam.EngineView, name string) (ipam.Plan, error) {
	if len(view.Networks) != 1 {
		return ipam.Plan{}, refuse(ipam.ErrInvalid, "the view has %d Docker networks; a plan is made of one",
			len(view.Networks))
	}
	n := &view.Networks[0]
	if len(n.Subnets) == 0 {
		return ipam.Plan{}, refuse(ipam.ErrInvalid, "the Docker network %s has no subnet, and so no addresses to plan",
			n.Name)
	}
	planned := ipam.PlannedNetwork{Name: name}
	if n.Swarm {
		planned.Space = ipam.GlobalSpace
	}
	a := adoption{network: n, taken: map[netip.Addr]bool{}, owners: map[string]string{}}
	for _, sub := range n.Subnets {
		pool := sub.CIDR
		if sub.Range.IsValid() {
			pool = sub.Range
		}
		planned.Subnets = append(planned.Subnets, ipam.PlannedSubnet{CIDR: sub.CIDR, Gateway: sub.Gateway,
			Pools: []ipam.PlannedPool{{Range: ipam.Range{IPRange: netipx.RangeOfPrefix(pool)}}}})
		a.taken[sub.Gateway] = true
		for _, aux := range slices.Sorted(maps.Keys(sub.Aux)) {
			a.addTaken(aux, sub.Aux[aux])
		}
	}
	a.addContainers(view.Containers, true)
	a.addContainers(view.Containers, false)
	planned.Reservations, planned.Addresses = a.reservations, a.addresses
	return ipam.Plan{Networks: []ipam.PlannedNetwork{planned}}, nil
}

// adoption gathers the addresses of a Docker network. Each is somebody's once.
type adoption struct {
	network      *ipam.EngineNetwork
	taken        map[netip.Addr]bool
	owners       map[string]string // containers by owner
	reservations []ipam.PlannedReservation
	addresses    []ipam.PlannedAddress
}

// addContainers adds what containers have or, in a second round, what users gave to those that do not run: an address
// that another one has is that one's.
func (a *adoption) addContainers(all []ipam.EngineContainer, running bool) {
	for i := range all {
		c := &all[i]
		for j := range c.Endpoints {
			ep := &c.Endpoints[j]
			addrs := ep.Addresses
			if !running {
				addrs = ep.Wanted
			}
			for _, addr := range addrs {
				if ep.Network == a.network.ID && a.inside(addr) {
					a.addContainer(c, ep, addr)
				}
			}
		}
	}
}

func (a *adoption) inside(addr netip.Addr) bool {
	return slices.ContainsFunc(a.network.Subnets, func(sub ipam.EngineSubnet) bool { return sub.CIDR.Contains(addr) })
}

func (a *adoption) addContainer(c *ipam.EngineContainer, ep *ipam.EngineEndpoint, addr netip.Addr) {
	if c.ID == "" {
		a.addTaken(c.Name, addr)
		return
	}
	if a.taken[addr] {
		return
	}
	a.taken[addr] = true
	a.reservations = append(a.reservations, ipam.PlannedReservation{Owner: a.ownerOf(c, ep), Address: addr,
		Automatic: !slices.Contains(ep.Wanted, addr), Unplaced: true})
}

// ownerOf is the owner that a container stands for: that of Compose's replica where its name means it, else its name
// (container_name), because that is what an engine sends and what `berth compose` reserves for. Two containers of one
// replica are two owners, and one whose name cannot be an owner's goes by its MAC or, where that is unknown, by its id.
func (a *adoption) ownerOf(c *ipam.EngineContainer, ep *ipam.EngineEndpoint) string {
	names := []string{c.Name, c.Owner(), ep.MAC.String()}
	if (&ipam.Network{}).Means(c.Name, c.Owner()) {
		names = []string{c.Owner(), c.Name, ep.MAC.String()}
	}
	for _, owner := range names {
		if other, known := a.owners[owner]; ipam.CheckOwner(owner) == nil && (!known || other == c.ID) {
			a.owners[owner] = c.ID
			return owner
		}
	}
	return "container-" + c.ID[:min(len(c.ID), 12)]
}

// addTaken adds an address that is no container's.
func (a *adoption) addTaken(name string, addr netip.Addr) {
	if a.taken[addr] {
		return
	}
	a.taken[addr] = true
	if ipam.CheckOwner(name) != nil {
		name = "aux-" + strings.ReplaceAll(addr.String(), ":", "-")
	}
	a.addresses = append(a.addresses, ipam.PlannedAddress{Owner: name, Address: addr, Unplaced: true})
}
