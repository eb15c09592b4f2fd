package routes

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"berth/internal/ipam"
)

// networkBridge is the name that the engine gives the bridge of a network.
var networkBridge = regexp.MustCompile(`^br-[0-9a-f]{12}$`)

// Shadowed finds the routes over subnets with a Docker network on this host that were not there when that was made. A
// swarm's networks have namespaces of their own, in which the host's routes are not. gateway tells whether an address
// is one by the records, and so on a bridge of the engine's.
func Shadowed(host string, attachments []ipam.AttachmentInfo, all []Route,
	gateway func(space string, addr netip.Addr) bool, seen time.Time) (found []ipam.Finding) {
	type place struct {
		space string
		cidr  netip.Prefix
	}
	beneath := map[place][]ipam.HostRoute{}
	subnets := map[place]*ipam.AttachmentInfo{}
	for i := range attachments {
		if at := &attachments[i]; at.Host == host && !at.Swarm {
			key := place{at.Space, at.CIDR}
			beneath[key] = append(beneath[key], at.Beneath...)
			subnets[key] = at
		}
	}
	for key, at := range subnets {
		for _, r := range all {
			if r.Prefix.Overlaps(key.cidr) && r.CameAfter(beneath[key]) && !r.leadsTo(at, gateway) {
				found = append(found, shadowed(host, at, r.HostRoute, seen))
			}
		}
	}
	return unique(found)
}

// unique are findings in the order of their subnets, each once.
func unique(found []ipam.Finding) []ipam.Finding {
	slices.SortFunc(found, func(a, b ipam.Finding) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), a.Subnet.Compare(b.Subnet), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.CompactFunc(found, func(a, b ipam.Finding) bool { return a.Detail == b.Detail && a.Space == b.Space })
}

// leadsTo tells whether a route leads to the subnet's containers: over the bridge of its Docker network, or over a link
// by which a host reaches containers beside it on a parent.
func (r *Route) leadsTo(at *ipam.AttachmentInfo, gateway func(space string, addr netip.Addr) bool) bool {
	switch r.Kind {
	case "macvlan", "ipvlan":
		return true
	case "bridge":
		return slices.ContainsFunc(r.Addrs, func(addr netip.Addr) bool {
			return addr == at.Gateway || at.CIDR.Contains(addr) && (networkBridge.MatchString(r.Link) ||
				gateway(at.Space, addr))
		})
	}
	return false
}

// shadowed says what a route does to a subnet: one that is as long or longer takes what is meant for containers, a
// shorter one is itself taken from.
func shadowed(host string, at *ipam.AttachmentInfo, r ipam.HostRoute, seen time.Time) ipam.Finding {
	hurt := fmt.Sprintf("packets of this host to %s go there, and not to the containers", r.Prefix)
	if r.Prefix.Bits() < at.CIDR.Bits() {
		hurt = fmt.Sprintf("what is behind that route at %s cannot be reached from this host", at.CIDR)
	}
	return ipam.Finding{Kind: ipam.ShadowedSubnet, Space: at.Space, Network: at.Network, Host: host, Subnet: at.CIDR,
		Seen: seen, Detail: fmt.Sprintf("the route %s came after the Docker network on subnet %s of network %s: %s; "+
			"have the VPN or the router leave %s out (`ip route`), or recreate the Docker network on another subnet",
			r, at.CIDR, at.Network, hurt, at.CIDR)}
}
