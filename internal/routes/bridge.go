package routes

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

// OnLAN finds the Docker networks of the driver bridge whose subnets overlap a LAN of this host. Docker creates them
// without a warning, and then the host reaches either the containers or the LAN. RequestPool does not tell a network's
// driver, so Berth finds it only by the bridge. A bridge that has the LAN's own card as a port is on that LAN on
// purpose. gateway is as in Shadowed.
func OnLAN(host string, attachments []ipam.AttachmentInfo, all []Route,
	gateway func(space string, addr netip.Addr) bool, seen time.Time) (found []ipam.Finding) {
	for i := range attachments {
		at := &attachments[i]
		if at.Host != host || at.Swarm {
			continue
		}
		k := slices.IndexFunc(all, func(r Route) bool {
			return r.Kind == "bridge" && r.Prefix.Overlaps(at.CIDR) && r.leadsTo(at, gateway)
		})
		if k < 0 {
			continue
		}
		bridge := all[k].Link
		for _, lan := range all {
			if lan.Connected && lan.Link != bridge && lan.Master != bridge && lan.Prefix.Overlaps(at.CIDR) &&
				!lan.leadsTo(at, gateway) {
				found = append(found, onLAN(host, at, bridge, lan.HostRoute, seen))
			}
		}
	}
	return unique(found)
}

func onLAN(host string, at *ipam.AttachmentInfo, bridge string, lan ipam.HostRoute, seen time.Time) ipam.Finding {
	return ipam.Finding{Kind: ipam.BridgeOnLAN, Space: at.Space, Network: at.Network, Host: host, Subnet: at.CIDR,
		Seen: seen, Detail: fmt.Sprintf("the Docker network on subnet %s of network %s is a bridge (%s), and "+
			"overlaps the LAN %s of %s: this host reaches either the containers or the LAN; recreate the Docker "+
			"network with `--driver macvlan -o parent=%s`, or on another subnet",
			at.CIDR, at.Network, bridge, lan.Prefix,
			lan.Link, lan.Link)}
}
