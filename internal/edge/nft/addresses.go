package nft

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"

	"berth/internal/edge"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"
)

// addressList has the single addresses on the devices that lie in this host's ranges.
type addressList struct {
	links map[string]netlink.Link
	on    map[netip.Addr]string // the device's name
}

// listAddresses reads the devices. It takes an address as the edge's own if it is a single address (/32 or /128) in a
// current or former range. It ignores loopback devices, whose addresses belong to users who route to them.
func (p *Provider) listAddresses() (addressList, error) {
	list := addressList{links: map[string]netlink.Link{}, on: map[netip.Addr]string{}}
	links, err := netlink.LinkList()
	if err != nil {
		return list, fmt.Errorf("cannot list the devices: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		list.links[l.Attrs().Name] = l
		if l.Attrs().Flags&net.FlagLoopback == 0 {
			names[l.Attrs().Index] = l.Attrs().Name
		}
	}
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return list, fmt.Errorf("cannot list the addresses of devices: %w", err)
	}
	ranges := p.everyRange()
	for _, one := range all {
		a, name := address(one.IP), names[one.LinkIndex]
		bits, size := one.Mask.Size()
		if _, ours := edge.Find(ranges, a); ours && bits == size && name != "" {
			list.on[a] = name
		}
	}
	return list, nil
}

// announced returns the addresses that this host must answer for, with their devices.
func announced(s edge.State) map[netip.Addr]string {
	all := make(map[netip.Addr]string, len(s.Mappings))
	for _, m := range s.Mappings {
		r, _ := edge.Find(s.Ranges, m.Elastic)
		if !m.Staged && r.Announce != "" {
			all[m.Elastic] = r.Announce
		}
	}
	return all
}

// leave removes addresses from devices where they are not wanted.
func (p *Provider) leave(list addressList) (failed []error) {
	for a, device := range list.on {
		if p.here[a] == device {
			continue
		}
		err := takeOff(list.links[device], a)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		delete(list.on, a)
	}
	return failed
}

func takeOff(link netlink.Link, a netip.Addr) error {
	err := netlink.AddrDel(link, single(a))
	if err == nil || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return &edge.Failure{Address: a, Err: fmt.Errorf("cannot take it off %s: %w", link.Attrs().Name, err)}
}

// takeOff removes addresses from their devices. If the device is gone, the address is gone, too.
func (p *Provider) takeOff(left map[netip.Addr]string) (failed []error) {
	for a, device := range left {
		link, err := netlink.LinkByName(device)
		if err != nil {
			continue
		}
		err = takeOff(link, a)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// putOn adds addresses to their devices and returns those that are there.
func (p *Provider) putOn(come map[netip.Addr]string) (entered map[netip.Addr]string, failed []error) {
	list := addressList{links: map[string]netlink.Link{}}
	for _, device := range come {
		if link, err := netlink.LinkByName(device); err == nil {
			list.links[device] = link
		}
	}
	return enter(come, list)
}

// enter adds the wanted addresses to their devices and returns those that are there.
func (p *Provider) enter(list addressList) (map[netip.Addr]string, []error) {
	return enter(p.here, list)
}

func enter(wanted map[netip.Addr]string, list addressList) (entered map[netip.Addr]string, failed []error) {
	entered = maps.Clone(wanted)
	for a, device := range entered {
		if list.on[a] == device {
			continue
		}
		link, there := list.links[device]
		err := fmt.Errorf("there is no device %s here", device)
		if there {
			err = netlink.AddrReplace(link, single(a))
		}
		if err != nil {
			err = fmt.Errorf("cannot put it on %s: %w", device, err)
			failed = append(failed, &edge.Failure{Address: a, Err: err})
			delete(entered, a)
		}
	}
	return entered, failed
}

// single returns an address for a device: with its full length and usable at once. IPv6 must not prefer it as the
// source of this host's own connections, so its preferred lifetime is zero.
func single(a netip.Addr) *netlink.Addr {
	one := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
	if a.Is6() {
		one.Flags = unix.IFA_F_NODAD
		one.ValidLft, one.PreferedLft = math.MaxUint32, 0
	}
	return one
}

// rangesOf returns the ranges in contents.
func rangesOf(c contents) []edge.Range {
	var all []edge.Range
	for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family} {
		for from, end := range c[place{family, setRanges}] {
			first, last := span(from, end)
			all = append(all, edge.Range{From: first, To: last})
		}
	}
	return all
}

// mergeRanges merges two lists into sorted ranges that do not overlap.
func mergeRanges(a, b []edge.Range) []edge.Range {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(a, b edge.Range) int { return a.From.Compare(b.From) })
	var apart []edge.Range
	for _, r := range all {
		last := len(apart) - 1
		if last < 0 || !apart[last].Contains(r.From) {
			apart = append(apart, edge.Range{From: r.From, To: r.To})
			continue
		}
		if apart[last].To.Less(r.To) {
			apart[last].To = r.To
		}
	}
	return apart
}
