package deploy

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// checkPools refuses entries of a network's ipam.config with which the engine would not create the network.
func (p *Project) checkPools(n *network, found *problems) {
	for i, pool := range n.compose.Ipam.Config {
		at := path{"networks", n.key, "ipam", "config", strconv.Itoa(i)}
		subnets := n.subnets
		switch {
		case pool.Subnet != "":
			subnet, err := alloc.ParsePrefix(pool.Subnet)
			if err == nil {
				err = ipam.CheckSubnet(subnet)
			}
			if err != nil {
				found.add(p.problem(at.with("subnet"), "%s: %w", at, err))
				continue
			}
			subnets = []netip.Prefix{subnet}
		case n.planned == nil || len(n.compose.Ipam.Config) > 1:
			// The override completes an only entry. To several, Compose adds those of the override.
			found.add(p.problem(at, "%s has no subnet, and the engine refuses such an entry (\"invalid CIDR "+
				"address\"); "+
				"add a subnet to this entry, or move its keys to the entry that has the subnet", at))
			continue
		}
		if len(subnets) > 0 { // else the planned network is refused
			p.checkPool(pool, at, subnets, found)
		}
	}
}

// checkPool refuses a range, a gateway and auxiliary addresses outside the subnets that an entry is for.
func (p *Project) checkPool(pool *types.IPAMPool, at path, subnets []netip.Prefix, found *problems) {
	inside := func(at path, text string) {
		r, err := alloc.ParseRange(text)
		switch {
		case text == "":
		case err != nil:
			found.add(p.problem(at, "%s: %w", at, err))
		case !slices.ContainsFunc(subnets, func(s netip.Prefix) bool { return ipam.Covers(s, r) }):
			found.add(p.problem(at, "%s is %s, which is outside the subnet %s", at, text, joined(subnets)))
		}
	}
	inside(at.with("ip_range"), pool.IPRange)
	inside(at.with("gateway"), pool.Gateway)
	for _, name := range slices.Sorted(maps.Keys(pool.AuxiliaryAddresses)) {
		inside(at.with("aux_addresses", name), pool.AuxiliaryAddresses[name])
	}
}

func joined(subnets []netip.Prefix) string {
	return strings.Join(prefixTexts(subnets), " or ")
}

// checkMACs refuses MACs in a service that no interface can have, and one for several replicas.
func (p *Project) checkMACs(service *types.ServiceConfig, found *problems) {
	check := func(at path, text string) {
		if text == "" {
			return
		}
		at = at.with("mac_address")
		mac, err := ipam.ParseMAC(text)
		switch replicas := service.GetScale(); {
		case err != nil:
			found.add(p.problem(at, "%s is %q, which is not a MAC address such as 02:42:0a:00:00:02", at, text))
		case mac == ipam.MAC{}, mac[0]&1 != 0: // the lowest bit of the first octet marks a group
			found.add(p.problem(at, "%s is %s, which no interface can have; write one whose first octet is even, "+
				"such as "+
				"02:42:0a:00:00:02", at, text))
		case replicas > 1:
			found.add(p.problem(at, "%s is %s, but services.%s has %d replicas, which cannot all have the same MAC; "+
				"leave it out", at, text, service.Name, replicas))
		}
	}
	check(path{"services", service.Name}, service.MacAddress)
	for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
		if on := service.Networks[key]; on != nil {
			check(path{"services", service.Name, "networks", key}, on.MacAddress)
		}
	}
}
