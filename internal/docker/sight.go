package docker

import (
	"net/netip"

	"berth/internal/ipam"
)

// sight is an address of an endpoint, according to the engine.
type sight struct {
	addr      netip.Addr
	endpoint  *ipam.EngineEndpoint
	container *ipam.EngineContainer
	network   *ipam.EngineNetwork
	subnet    *ipam.EngineSubnet // nil if no subnet of the network has the address
	spaces    []string           // in which Berth may have the address, the likeliest first
}

// home is the place in which the address must be unique.
func (s *sight) home() place { return place{s.spaces[0], s.addr} }

// who describes the container for a person.
func (s *sight) who() string {
	if s.container.ID == "" {
		return "the endpoint " + s.container.Name
	}
	return "the container " + s.container.Name
}

// sights is a view with indexes for comparisons.
type sights struct {
	all      []*sight
	at       map[place][]*sight // in each of the spaces
	networks map[segment][]*ipam.EngineNetwork
	byID     map[string]*ipam.EngineNetwork
	used     map[string]bool // networks with an endpoint, by id
	names    map[string]bool // of containers, running or not
	ids      map[string]bool // the short ids of all containers
	macs     map[ipam.MAC]bool
	stopped  map[segment]bool // has a stopped container, whose MAC is unknown
}

func newSights(view *ipam.EngineView, rec *records) *sights {
	sg := &sights{at: map[place][]*sight{}, networks: map[segment][]*ipam.EngineNetwork{},
		byID: make(map[string]*ipam.EngineNetwork, len(view.Networks)), used: map[string]bool{}, names: map[string]bool{},
		ids: map[string]bool{}, macs: map[ipam.MAC]bool{}, stopped: map[segment]bool{}}
	for i := range view.Networks {
		n := &view.Networks[i]
		sg.byID[n.ID] = n
		for _, sub := range n.Subnets {
			for _, space := range rec.spacesOf(n, sub.CIDR) {
				seg := segment{space, sub.CIDR}
				sg.networks[seg] = append(sg.networks[seg], n)
			}
		}
	}
	for i := range view.Containers {
		c := &view.Containers[i]
		sg.names[c.Name], sg.ids[ipam.ShortContainer(c.ID)] = true, true
		for j := range c.Endpoints {
			if n := sg.byID[c.Endpoints[j].Network]; n != nil {
				sg.add(rec, n, c, &c.Endpoints[j])
			}
		}
	}
	return sg
}

func (sg *sights) add(rec *records, n *ipam.EngineNetwork, c *ipam.EngineContainer, ep *ipam.EngineEndpoint) {
	if ep.ID == "" {
		for _, sub := range n.Subnets {
			for _, space := range rec.spacesOf(n, sub.CIDR) {
				sg.stopped[segment{space, sub.CIDR}] = true
			}
		}
		return
	}
	sg.used[n.ID] = true
	sg.macs[ep.MAC] = true
	for _, addr := range ep.Addresses {
		s := &sight{addr: addr, endpoint: ep, container: c, network: n}
		var cidr netip.Prefix
		for i := range n.Subnets {
			if n.Subnets[i].CIDR.Contains(addr) {
				s.subnet, cidr = &n.Subnets[i], n.Subnets[i].CIDR
			}
		}
		s.spaces = rec.spacesOf(n, cidr)
		sg.all = append(sg.all, s)
		for _, space := range s.spaces {
			sg.at[place{space, addr}] = append(sg.at[place{space, addr}], s)
		}
	}
}
