package deploy

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v4"
)

// LeftNetwork is a network of a project that has gone back to the engine's own IPAM driver.
type LeftNetwork struct {
	Key     string // what the files call it
	Subnets []LeftSubnet
	// by service, what its only container has there; a service of several replicas has none
	Addresses map[string][]netip.Addr
	MACs      map[string]string // by service, where its container was given one
}

// LeftSubnet is a subnet of one.
type LeftSubnet struct {
	CIDR    netip.Prefix
	Gateway netip.Addr // zero: the engine's choice
}

// Left is the file that gives the services of a project the addresses that their containers have, when its networks
// have gone back to the engine's own IPAM driver. It goes behind the project's own files, in the place of what
// Override wrote. Merges says that the project's Compose mixes what files say of a network (from version 2 on).
func (p *Project) Left(networks []LeftNetwork, merges bool) ([]byte, error) {
	root := mapping()
	if p.version != "" {
		put(root, "version", text(p.version))
	}
	services, described := map[string]*yaml.Node{}, mapping()
	macs := map[string]string{}
	for i := range networks {
		n := &networks[i]
		for service, addrs := range n.Addresses {
			if _, known := p.compose.Services[service]; !known || len(addrs) == 0 {
				continue
			}
			if services[service] == nil {
				services[service] = mapping()
			}
			on := mapping()
			for _, a := range addrs {
				put(on, fmt.Sprintf("ipv%d_address", familyOf(a)), text(a.String()))
			}
			put(services[service], n.Key, on)
			if n.MACs[service] != "" {
				macs[service] = n.MACs[service]
			}
		}
		node, err := p.leftNetwork(n, merges)
		if err != nil {
			return nil, err
		}
		put(described, n.Key, node)
	}
	all := mapping()
	for _, name := range slices.Sorted(maps.Keys(services)) {
		service := mapping()
		if macs[name] != "" {
			put(service, "mac_address", text(macs[name]))
		}
		put(service, "networks", services[name])
		put(all, name, service)
	}
	put(root, "services", all)
	put(root, "networks", described)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: the addresses that its services had when it left Berth.\n# Keep this file: without it the "+
		"engine gives any addresses to containers that are recreated.\n", marked(p.Name()))
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// leftNetwork describes a network as the files do, with the subnets that it has: addresses can be asked for on a
// subnet that is named. All of it is said again, because docker-compose 1.29 takes what the last file says of a
// network.
func (p *Project) leftNetwork(n *LeftNetwork, merges bool) (*yaml.Node, error) {
	c := p.compose.Networks[n.Key]
	if c.Ipam.Driver != "" {
		c.Ipam.Driver = "default"
	}
	c.Ipam.Options = nil
	named := c.Ipam.Config
	c.Ipam.Config = nil
	for _, sub := range n.Subnets {
		one := &types.IPAMPool{Subnet: sub.CIDR.String()}
		for _, said := range named {
			if familyOfPool(said) == familyOf(sub.CIDR.Addr()) {
				copied := *said
				one = &copied
				one.Subnet = sub.CIDR.String()
			}
		}
		if one.Gateway == "" && sub.Gateway.IsValid() {
			one.Gateway = sub.Gateway.String()
		}
		c.Ipam.Config = append(c.Ipam.Config, one)
	}
	if merges && len(named) > 1 {
		c.Ipam.Config = nil // Compose (compose-go 2.16) mixes several up where they are said twice
	}
	if c.Name == p.Name()+"_"+n.Key {
		c.Name = "" // Compose's own, which another --project-name changes
	}
	node := &yaml.Node{}
	if err := node.Encode(c); err != nil {
		return nil, fmt.Errorf("networks.%s: %w", n.Key, err)
	}
	plain(node)
	return node, nil
}

// SaysDriver are the networks of which the project's own files name the driver of their addresses, or options for it,
// by what the files call them.
func (p *Project) SaysDriver() (keys []string) {
	for key, n := range p.compose.Networks {
		if n.Ipam.Driver != "" && n.Ipam.Driver != "default" || len(n.Ipam.Options) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
