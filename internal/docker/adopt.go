package docker

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"go4.org/netipx"
)

// PlannedName returns the name of the plan of a Docker network: Docker's, or docker-NAME if Docker's reads as an address
// or a range. Docker takes 2024 as a name, and Berth does not.
func PlannedName(name string) (string, error) {
	if err := ipam.CheckName("network", name); err != nil {
		return "", err
	}
	if ipam.CheckNewName("network", name) != nil {
		name = "docker-" + name
	}
	return name, ipam.CheckNewName("network", name)
}

// AdoptPlan returns the plan of a Docker network, under the given name. It has the network's subnets with their
// gateways, and a pool for its range. Each address that a container has or asks for is reserved for the container.
// Other used addresses are taken. The view comes from Engine.Network. Nothing is changed.
func AdoptPlan(view ipam.EngineView, name string) (ipam.Plan, error) {
	if len(view.Networks) != 1 {
		return ipam.Plan{}, ipam.Refuse(ipam.ErrInvalid, "the view has %d Docker networks; Berth makes a plan of "+
			"exactly one",
			len(view.Networks))
	}
	n := &view.Networks[0]
	if len(n.Subnets) == 0 {
		return ipam.Plan{}, ipam.Refuse(ipam.ErrInvalid, "the Docker network %s has no subnet, and so no addresses "+
			"to plan",
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

// adoption collects the addresses of a Docker network, each for one owner.
type adoption struct {
	network      *ipam.EngineNetwork
	taken        map[netip.Addr]bool
	owners       map[string]string // containers by owner
	reservations []ipam.PlannedReservation
	addresses    []ipam.PlannedAddress
}

// addContainers adds the addresses of running containers or, in a second round, the configured ones of stopped
// containers. An address belongs to the first container that claims it.
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

// ownerOf returns the owner for a container: Compose's replica, if the container's name means that one. Otherwise it is
// the name (container_name), because engines send it and `berth compose` reserves for it. Two containers of one replica
// are two owners. If the name is no valid owner, the MAC serves, or the id if the MAC is unknown.
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

// addTaken adds an address that belongs to no container.
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
