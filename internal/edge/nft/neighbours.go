package nft

import (
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/edge"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// forgetMACs removes what the host knows of the MACs of guests, so that it asks for them again. A guest may have
// another MAC at each start: Docker Engine 28 and newer draw one. The kernel would go on using the old one for up to 45
// s (base_reachable_time in arp(7)), and the elastic address would lead nowhere meanwhile.
func forgetMACs(come []edge.Mapping) error {
	guests := make(map[netip.Addr]bool, len(come))
	for _, m := range come {
		if !m.Staged {
			guests[m.Guest] = true
		}
	}
	if len(guests) == 0 {
		return nil
	}
	all, err := netlink.NeighList(0, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("cannot list the host's neighbours: %w", err)
	}
	for i := range all {
		n := &all[i]
		if !guests[address(n.IP)] || n.State&(netlink.NUD_PERMANENT|netlink.NUD_NOARP) != 0 || n.Family == unix.AF_BRIDGE {
			continue
		}
		if err := netlink.NeighDel(n); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("cannot forget the MAC of %s: %w", n.IP, err)
		}
	}
	return nil
}
