package docker

import (
	"cmp"
	"net/netip"
	"slices"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
)

// places collects a view's containers and their endpoints. It uses the list of containers and each network's own list,
// because only a
// network lists endpoints without a container (a swarm's load balancer).
type places struct {
	byID       map[string]string // network by id
	byName     map[string]string
	containers map[string]*ipam.EngineContainer
	others     []*ipam.EngineContainer
	known      map[string]bool         // endpoints by id
	gateways   map[string][]netip.Addr // of the containers on a network, by the network's id
}

func newPlaces(networks []ipam.EngineNetwork) *places {
	p := &places{byID: map[string]string{}, byName: map[string]string{}, containers: map[string]*ipam.EngineContainer{},
		known: map[string]bool{}, gateways: map[string][]netip.Addr{}}
	for _, n := range networks {
		p.byID[n.ID], p.byName[n.Name] = n.ID, n.ID
	}
	return p
}

func (p *places) addContainer(c *container.Summary) {
	shown := showContainer(c)
	p.containers[c.ID] = shown
	if c.NetworkSettings == nil {
		return
	}
	_, task := c.Labels[LabelTask]
	runs := lives(c.State)
	for name, s := range c.NetworkSettings.Networks {
		if s == nil {
			continue
		}
		id, ours := p.networkOf(name, s, runs)
		if !ours {
			continue
		}
		ep := ipam.EngineEndpoint{Network: id}
		if s.IPAMConfig != nil && !task { // a task's address comes from its swarm's manager, not from a user
			ep.Wanted = ValidAddresses(s.IPAMConfig.IPv4Address, s.IPAMConfig.IPv6Address)
		}
		if runs && s.EndpointID != "" {
			ep.ID, ep.MAC = s.EndpointID, macOf(s.MacAddress)
			ep.Addresses = ValidAddresses(s.IPAddress, s.GlobalIPv6Address)
			p.known[ep.ID] = true
			p.gateways[id] = append(p.gateways[id], ValidAddresses(s.Gateway, s.IPv6Gateway)...)
		}
		shown.Endpoints = append(shown.Endpoints, ep)
	}
}

// lives reports whether the container list shows the real endpoints for a state. In other states it shows remains from
// before the engine was killed, and a starting container is in its network's list.
func lives(state container.ContainerState) bool {
	return state == container.StateRunning || state == container.StatePaused || state == container.StateRestarting
}

// networkOf returns the network of a container's entry. The entry of a stopped container has the name that its user
// gave, and the id of its last network. If that network was replaced, the new one of the same name counts.
func (p *places) networkOf(name string, s *network.EndpointSettings, runs bool) (string, bool) {
	if id, ours := p.byID[s.NetworkID]; ours {
		return id, true
	}
	if runs {
		return "", false
	}
	if id, ours := p.byName[name]; ours {
		return id, true
	}
	id, ours := p.byID[name]
	return id, ours
}

// addEndpoint adds an endpoint from a network's own list, under a container's id or another key.
func (p *places) addEndpoint(networkID, key string, r network.EndpointResource) {
	if p.known[r.EndpointID] {
		return
	}
	p.known[r.EndpointID] = true
	ep := ipam.EngineEndpoint{Network: networkID, ID: r.EndpointID, MAC: macOf(r.MacAddress),
		Addresses: ValidAddresses(r.IPv4Address.Addr(), r.IPv6Address.Addr())}
	c := p.containers[key]
	if c == nil {
		p.others = append(p.others,
			&ipam.EngineContainer{Name: cmp.Or(r.Name, key), Endpoints: []ipam.EngineEndpoint{ep}})
		return
	}
	for i := range c.Endpoints { // it has started since the containers were listed
		if own := &c.Endpoints[i]; own.Network == networkID && own.ID == "" {
			ep.Wanted = own.Wanted
			*own = ep
			return
		}
	}
	c.Endpoints = append(c.Endpoints, ep)
}

// fillGateways sets missing gateways of a network's subnets from its containers. They are missing if the user gave a
// subnet and no gateway.
func (p *places) fillGateways(n *ipam.EngineNetwork) {
	for _, gateway := range p.gateways[n.ID] {
		for i := range n.Subnets {
			if sub := &n.Subnets[i]; !sub.Gateway.IsValid() && sub.CIDR.Contains(gateway) {
				sub.Gateway = gateway
			}
		}
	}
}

// drop removes the endpoints on a network that no longer exists.
func (p *places) drop(networkID string) {
	for _, c := range p.containers {
		c.Endpoints = slices.DeleteFunc(c.Endpoints,
			func(ep ipam.EngineEndpoint) bool { return ep.Network == networkID })
	}
}

// sorted returns the containers by name.
func (p *places) sorted() []ipam.EngineContainer {
	all := make([]ipam.EngineContainer, 0, len(p.containers)+len(p.others))
	for _, c := range p.containers {
		all = append(all, *c)
	}
	for _, c := range p.others {
		all = append(all, *c)
	}
	for _, c := range all {
		slices.SortFunc(c.Endpoints, func(a, b ipam.EngineEndpoint) int {
			return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.ID, b.ID))
		})
	}
	slices.SortFunc(all, func(a, b ipam.EngineContainer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// ValidAddresses returns the valid ones of some addresses.
func ValidAddresses(addrs ...netip.Addr) (all []netip.Addr) {
	for _, addr := range addrs {
		if addr.IsValid() && !addr.IsUnspecified() {
			all = append(all, addr.Unmap().WithZone(""))
		}
	}
	return all
}

// macOf converts a hardware address. Without one (ipvlan), or with another length, it returns the zero MAC.
func macOf(hw network.HardwareAddr) (mac ipam.MAC) {
	if len(hw) == len(mac) {
		copy(mac[:], hw)
	}
	return mac
}
