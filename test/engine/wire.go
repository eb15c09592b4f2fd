//go:build engine

package engine

import (
	"net"

	"berth/test/lab"
)

// takeByHand requests an address on a plugin socket as an engine does; the engine does not know of it. The request is
// for the endpoint with the MAC. Without an address it takes any. It returns the address without its mask.
func takeByHand(socket, pool, address, mac string) (string, error) {
	var answer struct{ Address string }
	err := lab.Call(lab.Over(socket), "RequestAddress", map[string]any{"PoolID": pool, "Address": address,
		"Options": map[string]string{"com.docker.network.endpoint.macaddress": mac}}, &answer)
	if err != nil {
		return "", err
	}
	ip, _, err := net.ParseCIDR(answer.Address)
	return ip.String(), err
}

// giveByHand releases an address as an engine does, without the engine's knowledge.
func giveByHand(socket, pool, address string) error {
	return lab.Call(lab.Over(socket), "ReleaseAddress", map[string]string{"PoolID": pool, "Address": address}, nil)
}
