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

// LeftNetwork is a network of a project that has returned to the engine's own IPAM driver.
type LeftNetwork struct {
	Key     string // its key in the files
	Subnets []LeftSubnet
	// the addresses of each service's only container; a service with several replicas has none
	Addresses map[string][]netip.Addr
	MACs      map[string]string // by service, if its container was given one
}

// LeftSubnet is a subnet of a LeftNetwork.
type LeftSubnet struct {
	CIDR    netip.Prefix
	Gateway netip.Addr // zero: the engine's choice
	Range   netip.Prefix
	Aux     map[string]netip.Addr
}

// Left returns a Compose file with the current addresses of the project's containers, for networks that have returned
// to the engine's own IPAM driver. It follows the project's own files and replaces the file of Override. merges says
// that the project's Compose merges several descriptions of a network (version 2 and later).
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

// leftNetwork describes a network for the file, with its subnets, because an address can only be set on a named subnet.
// It repeats everything, because docker-compose 1.29 uses only the last description of a network.
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
		if one.IPRange == "" && sub.Range.IsValid() {
			one.IPRange = sub.Range.String()
		}
		aux := maps.Clone(one.AuxiliaryAddresses)
		for name, addr := range sub.Aux {
			if aux == nil {
				aux = types.Mapping{}
			}
			aux[name] = addr.String()
		}
		one.AuxiliaryAddresses = aux
		c.Ipam.Config = append(c.Ipam.Config, one)
	}
	if merges && len(named) > 1 {
		c.Ipam.Config = nil // Compose (compose-go 2.16) merges repeated pools wrongly
	}
	if c.Name == p.Name()+"_"+n.Key {
		c.Name = "" // Compose's default, which another --project-name changes
	}
	node := &yaml.Node{}
	if err := node.Encode(c); err != nil {
		return nil, fmt.Errorf("networks.%s: %w", n.Key, err)
	}
	plain(node)
	return node, nil
}

// SaysDriver returns the keys of the networks for which the project's own files name an IPAM driver or its options.
func (p *Project) SaysDriver() (keys []string) {
	for key, n := range p.compose.Networks {
		if n.Ipam.Driver != "" && n.Ipam.Driver != "default" || len(n.Ipam.Options) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
