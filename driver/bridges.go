package driver

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"berth/internal/ipam"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
)

// The bridges of the engine's default networks, and Docker's names of those networks.
var defaultBridges = map[string]string{"docker0": "bridge", "docker_gwbridge": "docker_gwbridge"}

// networkBridge matches the engine's name for a network's bridge, which has the first 12 digits of the network's id.
var networkBridge = regexp.MustCompile(`^br-([0-9a-f]{12})$`)

// Bridge is a link of the host whose name marks it as the engine's, with the subnets reached over it.
type Bridge struct {
	Link    string
	Subnets []netip.Prefix
}

// hostBridges returns the engine's bridges in this network namespace. A bridge with any other name is not the engine's,
// though Docker may have a network on it.
func hostBridges() ([]Bridge, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing the host's links: %w", err)
	}
	var all []Bridge
	for _, link := range links {
		name := link.Attrs().Name
		if link.Type() != "bridge" || defaultBridges[name] == "" && !networkBridge.MatchString(name) {
			continue
		}
		subnets, linkErr := subnetsOn(link)
		if linkErr != nil {
			err = errors.Join(err, fmt.Errorf("the subnets of %s: %w", name, linkErr))
		}
		all = append(all, Bridge{Link: name, Subnets: subnets})
	}
	return all, err
}

// subnetsOn returns the subnets of a link's addresses and of the routes to the link. The routes matter because the
// engine gives docker0 an IPv6 subnet as a route. Link-local subnets are omitted, because every link has them.
func subnetsOn(link netlink.Link) ([]netip.Prefix, error) {
	var all []netip.Prefix
	add := func(p netip.Prefix) {
		if p.Bits() <= 0 || p.Addr().IsLinkLocalUnicast() || p.Addr().IsMulticast() {
			return
		}
		if p = p.Masked(); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	for _, addr := range addrs {
		if p, ok := netipx.FromStdIPNet(addr.IPNet); ok {
			add(p)
		}
	}
	routes, routesErr := netlink.RouteList(link, netlink.FAMILY_ALL)
	for _, route := range routes {
		if route.Dst == nil || route.Gw != nil {
			continue
		}
		if p, ok := netipx.FromStdIPNet(route.Dst); ok {
			add(p)
		}
	}
	return all, errors.Join(err, routesErr)
}

// dockerSubnets returns the subnets of the engine's own bridges on the host, and of the networks that a witness knows.
// live means that the witness knows all current networks. Any other network's bridge is then Berth's own, or left over
// from a crash.
func dockerSubnets(host []Bridge, networks []ipam.EngineNetwork, live bool) (all []ipam.DockerSubnet) {
	known := map[string]bool{}
	for _, n := range networks {
		link := n.Bridge()
		known[link] = true
		for _, sub := range n.Subnets {
			all = append(all, ipam.DockerSubnet{CIDR: sub.CIDR, Network: n.Name, Link: link,
				Unsure: !isEngines(n.Driver)})
		}
	}
	for _, b := range host {
		name, isDefault := defaultBridges[b.Link]
		if known[b.Link] || live && !isDefault {
			continue
		}
		for _, cidr := range b.Subnets {
			all = append(all, ipam.DockerSubnet{CIDR: cidr, Network: name, Link: b.Link, Unsure: b.Link != "docker0"})
		}
	}
	return all
}

// isEngines reports whether an IPAM driver is the engine's own.
func isEngines(driver string) bool { return driver == "" || driver == "default" }
