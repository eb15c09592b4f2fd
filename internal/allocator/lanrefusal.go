package allocator

import (
	"fmt"

	"berth/internal/ipam"
)

// lanRefused explains why a DHCP server gave nothing: for which client, on which interface, and what helps.
func lanRefused(ask *ipam.LANAsk, got *ipam.LANAnswer) error {
	whom := ask.Client.String()
	if ask.Verb == ipam.LANOffer {
		whom = "this network"
	}
	switch got.Failure {
	case ipam.LANSilent:
		return ipam.Refuse(ipam.ErrLAN, "no DHCP server has answered for %s by %s (%s); see that the server runs, and "+
			"that %s is the interface to its LAN", whom, ask.Parent, got.Error, ask.Parent)
	case ipam.LANRefused:
		return ipam.Refuse(ipam.ErrLAN, "the DHCP server has no address for %s by %s (%s); see its range and its "+
			"reservations", whom, ask.Parent, got.Error)
	case ipam.LANOutside:
		return lanOutside(ask, got.Lease.Address, got.Lease.Server)
	case ipam.LANParent:
		return ipam.Refuse(ipam.ErrLAN, "the DHCP server of %s cannot be asked by %s (%s); name an interface of this "+
			"host that is up", whom, ask.Parent, got.Error)
	case ipam.LANNoEdge:
		return ipam.Refuse(ipam.ErrLAN, "the DHCP server of %s cannot be asked by %s: %s, and only an "+
			"edge can use LANs", whom, ask.Parent, noEdge(got.Error)).Advise(ipam.DoRunEdge)
	}
	return fmt.Errorf("%w: the DHCP server was asked for %s by %s: %s (%s)", ipam.ErrLAN, whom, ask.Parent, got.Error,
		got.Failure)
}

func noEdge(why string) string {
	if why == "" {
		return "no edge is connected to this daemon"
	}
	return why
}

// lanOutside refuses an address outside the subnet.
func lanOutside(ask *ipam.LANAsk, addr, server any) error {
	return ipam.Refuse(ipam.ErrLAN, "the DHCP server %s offers %s for %s by %s, which is no address of the subnet %s; "+
		"it was declined: make the network with the subnet that the server has there, or name another interface",
		server, addr, ask.Client, ask.Parent, ask.Subnet)
}
