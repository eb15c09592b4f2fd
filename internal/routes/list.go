// Package routes reads the host's routes. It finds routes that are newer than a subnet and divert the subnet's traffic,
// such as a VPN's.
package routes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"berth/internal/ipam"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"
)

// Route is a route of the host, with its link.
type Route struct {
	ipam.HostRoute
	Kind  string       // of the link, as in `ip -d link`: bridge, tun, wireguard; empty: none
	Addrs []netip.Addr // of the link, if that is a bridge

	Connected bool   // a LAN: the host has an address there, and the link has broadcasts
	Master    string // the bridge or bond of which the link is a port; empty: none
}

// List returns the routes of this network namespace without default routes. It reads all tables that a rule uses, since
// VPNs have tables of their own. Halves of everything (0.0.0.0/1) count as a default route.
func List() ([]Route, error) {
	tables, err := tables()
	if err != nil {
		return nil, err
	}
	links, err := readLinks()
	if err != nil {
		return nil, err
	}
	var all []Route
	err = netlink.RouteListFilteredIter(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_UNSPEC},
		netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
			if p, ok := prefixOf(&r); ok && slices.Contains(tables, r.Table) {
				all = append(all, links.route(p, &r))
			}
			return true
		})
	if err != nil {
		return nil, fmt.Errorf("listing the host's routes: %w", err)
	}
	return all, links.err
}

// prefixOf returns the destination of a route, unless it is a default route.
func prefixOf(r *netlink.Route) (netip.Prefix, bool) {
	if r.Dst == nil {
		return netip.Prefix{}, false
	}
	p, ok := netipx.FromStdIPNet(r.Dst)
	return p, ok && p.Bits() > 1
}

// tables returns the numbers of the tables that are searched for outgoing packets. The table local has the host's own
// addresses.
func tables() ([]int, error) {
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("listing the host's routing rules: %w", err)
	}
	all := []int{unix.RT_TABLE_MAIN}
	for _, rule := range rules {
		if rule.Table != unix.RT_TABLE_LOCAL && rule.Table > 0 && !slices.Contains(all, rule.Table) {
			all = append(all, rule.Table)
		}
	}
	return all, nil
}

// links are the host's links by index.
type links struct {
	byIndex map[int]netlink.Link
	addrs   map[int][]netip.Addr // of bridges, as far as they were needed
	err     error
}

func readLinks() (*links, error) {
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("listing the host's links: %w", err)
	}
	l := &links{byIndex: map[int]netlink.Link{}, addrs: map[int][]netip.Addr{}}
	for _, link := range list {
		l.byIndex[link.Attrs().Index] = link
	}
	return l, nil
}

// route returns a route with its link. Of several next hops it takes the first.
func (l *links) route(p netip.Prefix, r *netlink.Route) Route {
	index := r.LinkIndex
	if index == 0 && len(r.MultiPath) > 0 {
		index = r.MultiPath[0].LinkIndex
	}
	found := Route{HostRoute: ipam.HostRoute{Prefix: p}}
	link := l.byIndex[index]
	if link == nil || dropped(r.Type) {
		return found
	}
	found.Link, found.Kind = link.Attrs().Name, link.Type()
	found.Connected = r.Protocol == unix.RTPROT_KERNEL && r.Gw == nil && len(r.MultiPath) == 0 &&
		link.Attrs().Flags&net.FlagBroadcast != 0
	if master := l.byIndex[link.Attrs().MasterIndex]; master != nil {
		found.Master = master.Attrs().Name
	}
	if found.Kind == "bridge" {
		found.Addrs = l.bridge(link)
	}
	return found
}

// dropped reports whether a kind of route discards packets. IPv6 has such routes on the loopback link.
func dropped(kind int) bool {
	return kind == unix.RTN_BLACKHOLE || kind == unix.RTN_UNREACHABLE || kind == unix.RTN_PROHIBIT
}

// bridge returns the addresses of a bridge.
func (l *links) bridge(link netlink.Link) []netip.Addr {
	index := link.Attrs().Index
	if known, ok := l.addrs[index]; ok {
		return known
	}
	list, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		l.err = errors.Join(l.err, fmt.Errorf("listing the addresses of %s: %w", link.Attrs().Name, err))
	}
	var addrs []netip.Addr
	for _, a := range list {
		if addr, ok := netip.AddrFromSlice(a.IP); ok {
			addrs = append(addrs, addr.Unmap())
		}
	}
	l.addrs[index] = addrs
	return addrs
}
