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

// networkBridge matches the name that the engine gives to a network's bridge.
var networkBridge = regexp.MustCompile(`^br-[0-9a-f]{12}$`)

// Shadowed finds routes that overlap the subnet of a Docker network on this host and were added after it. Networks of a
// swarm have namespaces of their own without the host's routes. gateway reports whether an address is a gateway in the
// records, and so on one of the engine's bridges.
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

// unique returns findings in the order of their subnets, each once.
func unique(found []ipam.Finding) []ipam.Finding {
	slices.SortFunc(found, func(a, b ipam.Finding) int {
		return cmp.Or(cmp.Compare(a.Space, b.Space), a.Subnet.Compare(b.Subnet), cmp.Compare(a.Detail, b.Detail))
	})
	return slices.CompactFunc(found, func(a, b ipam.Finding) bool { return a.Detail == b.Detail && a.Space == b.Space })
}

// leadsTo reports whether a route leads to the subnet's containers: over the bridge of its Docker network, or over a
// link by which a host reaches macvlan containers on the same parent.
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

// shadowed describes what a route does to a subnet. One of the same or greater length takes traffic for containers. A
// shorter one loses traffic to the subnet.
func shadowed(host string, at *ipam.AttachmentInfo, r ipam.HostRoute, seen time.Time) ipam.Finding {
	hurt := fmt.Sprintf("packets of this host to %s take that route, and do not reach the containers", r.Prefix)
	if r.Prefix.Bits() < at.CIDR.Bits() {
		hurt = fmt.Sprintf("this host cannot reach the addresses %s behind that route", at.CIDR)
	}
	return ipam.Finding{Kind: ipam.ShadowedSubnet, Space: at.Space, Network: at.Network, Host: host, Subnet: at.CIDR,
		Seen: seen, Detail: fmt.Sprintf("the route %s came after the Docker network on subnet %s of network %s: %s; "+
			"have the VPN or the router leave %s out (`ip route`), or recreate the Docker network on another subnet",
			r, at.CIDR, at.Network, hurt, at.CIDR)}
}
