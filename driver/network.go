package driver

import (
	"maps"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// ParseNetwork rebuilds the request for one subnet of a Docker network from the engine's description of the network.
func ParseNetwork(n ipam.EngineNetwork, sub ipam.EngineSubnet) (ipam.PoolRequest, error) {
	msg := &api.RequestPoolRequest{AddressSpace: ipam.LocalSpace, Pool: sub.CIDR.String(),
		Options: maps.Clone(n.Options), V6: sub.CIDR.Addr().Is6()}
	if n.Swarm {
		msg.AddressSpace = ipam.GlobalSpace
	}
	if sub.Range.IsValid() {
		msg.SubPool = sub.Range.String()
	}
	delete(msg.Options, "size") // the size chose this subnet
	return parsePool(msg)
}
