package admin

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// A network can be shown by the name of its Docker network, unless another network has that name. Several matches
// are all named. A failed lookup is an error.
func TestNetworkByDockerName(t *testing.T) {
	cidr := netip.MustParsePrefix("10.1.0.0/24")
	places := map[string][]ipam.DockerPlace{
		"shop_default": {{Network: "net1", Space: "lab", Subnet: cidr}},
		"both": {{Network: "net1", Space: "lab", Subnet: cidr},
			{Network: "net1", Space: "lab", Subnet: netip.MustParsePrefix("fd00::/64")}},
		"twice": {{Network: "net1", Space: "lab", Subnet: cidr},
			{Network: "wire", Space: "local", Subnet: netip.MustParsePrefix("10.2.0.0/24")}},
		"wire": {{Network: "net1", Space: "lab", Subnet: cidr}},
	}
	failure := errors.New("the records cannot be read")
	h := start(t, func(s *Server) {
		s.cfg.Places = func(_ context.Context, name string) ([]ipam.DockerPlace, error) {
			if name == "broken" {
				return nil, failure
			}
			return places[name], nil
		}
	})
	h.plays(t, `
		edit {"op": "network.create", "name": "net1", "space": "lab"} -> 200
		edit {"op": "network.create", "name": "wire"} -> 200
		GET /v1/networks/net1 -> 200 "name":"net1"
		GET /v1/networks/wire -> 200 "name":"wire"
		GET /v1/networks/shop_default -> 200 "name":"net1"
		GET /v1/networks/both -> 200 "name":"net1"
		GET /v1/networks/twice
			-> 400 no network twice, and the Docker network of that name uses several of Berth's networks: $LIST; name one
		GET /v1/networks/nobody -> 404 there is no network "nobody"
		GET /v1/networks/broken -> 500 internal
	`, "$LIST", "net1 (10.1.0.0/24, space lab), wire (10.2.0.0/24, space local)")
}
