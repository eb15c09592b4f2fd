package ipam

import (
	"net/netip"
)

// DockerSubnet is a subnet of one of the engine's own bridges, whose addresses are not Berth's. The engine takes a
// bridge whose subnet a driver of addresses accepts once more for a stale one: docker0 is lost that way.
type DockerSubnet struct {
	CIDR    netip.Prefix
	Network string // Docker's name of it; empty: only its bridge was seen
	Link    string // the bridge in the host; empty: not known

	// Unsure tells that it may be a network of Berth's own: only its bridge was seen, or its driver of addresses is
	// neither the engine's nor known as this Berth.
	Unsure bool
}
