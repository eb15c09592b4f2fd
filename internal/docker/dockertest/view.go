package dockertest

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// compose is the prefix of Compose's labels.
const compose = "com.docker.compose."

// Set makes the engine run the contents of a view.
func (e *Engine) Set(view ipam.EngineView) { e.Change(func(now *ipam.EngineView) { *now = view }) }

// Change changes what the engine runs.
func (e *Engine) Change(change func(*ipam.EngineView)) {
	e.Lock()
	defer e.Unlock()
	change(&e.view)
	e.show()
}

// show shows what the engine runs. The caller holds the mutex.
func (e *Engine) show() {
	view := &e.view
	e.Networks, e.Containers = []Object{}, []Object{}
	byID := map[string]ipam.EngineNetwork{}
	endpoints := map[string]Object{}
	for _, n := range view.Networks {
		byID[n.ID], endpoints[n.ID] = n, Object{}
	}
	for _, c := range view.Containers {
		settings := Object{}
		for _, ep := range c.Endpoints {
			settings[byID[ep.Network].Name] = endpointSettings(ep)
			if ep.ID != "" {
				endpoints[ep.Network][c.ID] = endpointResource(c.Name, ep)
			}
		}
		if c.ID == "" {
			continue
		}
		e.Containers = append(e.Containers,
			Object{"Id": c.ID, "Names": []string{"/" + c.Name}, "State": c.State, "Labels": Labels(&c),
				"NetworkSettings": Object{"Networks": settings}})
	}
	for _, n := range view.Networks {
		e.Networks = append(e.Networks, networkOf(n, endpoints[n.ID]))
	}
}

// connect disconnects a container of the view from a network and, with on, connects it again. It gets the address that
// it asks for, or the last one of 10.8.0.0/24. It reports whether both are in the view.
func (e *Engine) connect(network, id string, on bool, settings Object) bool {
	n := slices.IndexFunc(e.view.Networks, func(n ipam.EngineNetwork) bool { return n.Name == network })
	i := slices.IndexFunc(e.view.Containers, func(c ipam.EngineContainer) bool { return c.ID == id })
	if n < 0 || i < 0 {
		return false
	}
	c, ep := &e.view.Containers[i], ipam.EngineEndpoint{Network: e.view.Networks[n].ID, ID: "end-" + id}
	c.Endpoints = slices.DeleteFunc(c.Endpoints,
		func(old ipam.EngineEndpoint) bool { return old.Network == ep.Network })
	if asks, _ := settings["IPAMConfig"].(Object); asks != nil {
		ep.Wanted = []netip.Addr{netip.MustParseAddr(asks["IPv4Address"].(string))}
	}
	if ep.Addresses = ep.Wanted; ep.Wanted == nil {
		ep.Addresses = []netip.Addr{netip.MustParseAddr("10.8.0.99")}
	}
	if on {
		c.Endpoints = append(c.Endpoints, ep)
	}
	e.show()
	return true
}

// Labels are Compose's labels of a container, or none.
func Labels(c *ipam.EngineContainer) Object {
	if c.Project == "" {
		return Object{}
	}
	return Object{compose + "project": c.Project, compose + "service": c.Service,
		compose + "container-number": fmt.Sprint(c.Number)}
}

func networkOf(n ipam.EngineNetwork, endpoints Object) Object {
	scope := "local"
	if n.Swarm {
		scope = "swarm"
	}
	var config []Object
	for _, sub := range n.Subnets {
		c := Object{"Subnet": sub.CIDR.String()}
		if sub.Range.IsValid() {
			c["IPRange"] = sub.Range.String()
		}
		if sub.Gateway.IsValid() {
			c["Gateway"] = sub.Gateway.String()
		}
		if sub.Aux != nil {
			c["AuxiliaryAddresses"] = sub.Aux
		}
		config = append(config, c)
	}
	return Object{"Id": n.ID, "Name": n.Name, "Scope": scope, "Driver": "bridge", "ConfigOnly": false,
		"Containers": endpoints,
		"IPAM":       Object{"Driver": n.Driver, "Options": n.Options, "Config": config}}
}

func endpointSettings(ep ipam.EngineEndpoint) Object {
	s := Object{"IPAMConfig": nil, "NetworkID": ep.Network, "EndpointID": ep.ID, "Gateway": "", "IPAddress": "",
		"GlobalIPv6Address": "", "MacAddress": ep.MAC.String()}
	wanted := Object{}
	for _, addr := range ep.Wanted {
		wanted[map[bool]string{true: "IPv4Address", false: "IPv6Address"}[addr.Is4()]] = addr.String()
	}
	if len(wanted) > 0 {
		s["IPAMConfig"] = wanted
	}
	for _, addr := range ep.Addresses {
		s[map[bool]string{true: "IPAddress", false: "GlobalIPv6Address"}[addr.Is4()]] = addr.String()
	}
	return s
}

func endpointResource(name string, ep ipam.EngineEndpoint) Object {
	r := Object{"Name": name, "EndpointID": ep.ID, "MacAddress": ep.MAC.String(), "IPv4Address": "", "IPv6Address": ""}
	for _, addr := range ep.Addresses {
		r[map[bool]string{true: "IPv4Address", false: "IPv6Address"}[addr.Is4()]] = fmt.Sprintf("%s/%d", addr,
			addr.BitLen()-8)
	}
	return r
}
