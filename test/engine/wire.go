//go:build engine

package engine

import (
	"net"

	"berth/test/lab"
)

// takeByHand asks a plugin socket for an address as an engine does, which knows nothing of it: for the endpoint with a
// MAC, and for whichever address where none is given. It returns the address without its mask.
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

// giveByHand gives an address back, as an engine does, behind the back of the engine.
func giveByHand(socket, pool, address string) error {
	return lab.Call(lab.Over(socket), "ReleaseAddress", map[string]string{"PoolID": pool, "Address": address}, nil)
}
