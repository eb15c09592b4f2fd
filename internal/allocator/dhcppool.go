package allocator

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// gatewayPatience bounds the question for a gateway when the subnet is known.
const gatewayPatience = 3 * time.Second

// checkDHCP refuses options that make no sense if a LAN's server chooses the addresses.
func checkDHCP(req *ipam.PoolRequest) error {
	if err := req.CheckDHCP(); err != nil || !req.FromDHCP() {
		return err
	}
	const why = "the DHCP server of the LAN chooses the addresses; "
	switch {
	case !req.Range.IsZero():
		return ipam.Refuse(ipam.ErrInvalid, why+"leave out the range %s (--ip-range), and set it on the server",
			req.Range)
	case req.Pool != "":
		return ipam.Refuse(ipam.ErrInvalid, why+"leave out the pool %s", req.Pool)
	case req.Bits != 0:
		return ipam.Refuse(ipam.ErrInvalid, why+"leave out the size: the subnet is the LAN's")
	case req.Swarm:
		return ipam.Refuse(ipam.ErrInvalid, why+"a swarm manager cannot request addresses for other hosts: create the "+
			"network on each host with --config-only, and the swarm network from it")
	case req.DHCPID == ipam.LANByMAC && !req.AskedMAC:
		return byMACOnly(req.CIDR)
	case !req.CIDR.IsValid() && req.Network == "" && req.IPv6:
		return ipam.Refuse(ipam.ErrInvalid, why+"DHCPv6 gives no subnet: set it with --subnet, or leave out --ipv6 "+
			"and let the router announce addresses (SLAAC)")
	}
	return nil
}

// fromServer fills in the subnet and the gateway of a new network from the LAN's server, if they are not given. It asks
// only for an offer, so the server leases nothing.
func (s Allocator) fromServer(ctx context.Context, req *ipam.PoolRequest) error {
	if !req.FromDHCP() || req.Network != "" || !s.needsOffer(req) {
		return nil
	}
	client := ClientOf("network/"+s.homes.Own.Host(), ipam.MAC{}, ipam.LANByOwner)
	client.Hostname = ""
	ask := ipam.LANAsk{Verb: ipam.LANOffer, Parent: req.ParentOn(s.homes.Own.Host()), IPv6: req.IPv6, Subnet: req.CIDR,
		Client: client, Within: ipam.Duration(dhcpPatience)}
	if req.CIDR.IsValid() {
		ask.Within = ipam.Duration(gatewayPatience)
	}
	got, err := s.homes.Own.AskLAN(ctx, ask)
	switch {
	case err != nil:
		return err
	case got.Failure != "" && req.CIDR.IsValid() && got.Failure != ipam.LANOutside:
		return fmt.Errorf("%w; or set the gateway with --gateway, which avoids this request", lanRefused(&ask, &got))
	case got.Failure != "":
		return lanRefused(&ask, &got)
	}
	return fillIn(req, &got.Lease)
}

// needsOffer reports whether the request lacks something that the server must supply.
func (s Allocator) needsOffer(req *ipam.PoolRequest) bool {
	if !req.CIDR.IsValid() {
		return true
	}
	if req.Gateway.IsValid() || req.NoGateway || req.IPv6 {
		return false
	}
	return ledger.Ask(s.homes.Own, func(ix *ledger.Index) bool {
		sx := ix.Overlapping(req.Space, req.CIDR)
		return sx == nil || !sx.Record().Gateway.IsValid()
	})
}

// fillIn copies what the server offered into the request.
func fillIn(req *ipam.PoolRequest, offered *ipam.LANLease) error {
	if !req.CIDR.IsValid() {
		if !offered.Subnet.IsValid() {
			return ipam.Refuse(ipam.ErrLAN, "the DHCP server %s offers %s but no subnet; set it with --subnet",
				offered.Server, offered.Address)
		}
		req.CIDR = offered.Subnet.Masked()
		for _, route := range req.Avoid {
			if route.Overlaps(req.CIDR) {
				return ipam.Refuse(ipam.ErrOverlap, "the DHCP server's subnet %s overlaps the route %s of this host, "+
					"and the engine accepts it only if you name it: add --subnet %s", req.CIDR, route, req.CIDR)
			}
		}
	}
	gateway := offered.Gateway
	if req.Gateway.IsValid() || req.NoGateway || !gateway.IsValid() {
		return nil
	}
	if NotHost(req.CIDR, gateway) != "" {
		return ipam.Refuse(ipam.ErrLAN, "the DHCP server %s offers the gateway %s, which is not in the subnet %s; "+
			"set it with --gateway", offered.Server, gateway, req.CIDR)
	}
	req.Gateway = gateway
	return nil
}

// checkTerms refuses a request whose DHCP terms differ from those of the subnet.
func checkTerms(c *ledger.Change, req *ipam.PoolRequest, sub *ipam.Subnet, planned bool) error {
	network := c.NetworkName(sub.Network)
	switch {
	case req.LANTerms == sub.LANTerms:
	case planned && !req.FromDHCP(): // the plan has the terms
	case planned:
		return ipam.Refuse(ipam.ErrInvalid, "the plan of network %[2]s decides about DHCP on the subnet %[1]s; "+
			"leave out --ipam-opt dhcp", sub.CIDR, network).
			OrAdvise(ipam.DoModifyNetwork, network)
	case sub.FromDHCP():
		return ipam.Refuse(ipam.ErrInUse, "the addresses of the subnet %s in network %s come from its DHCP server; "+
			"use --ipam-opt dhcp=%s and dhcp_id=%s", sub.CIDR, network, sub.DHCPParent, sub.DHCPID)
	default:
		return ipam.Refuse(ipam.ErrInUse, "Berth chooses the addresses of the subnet %s in network %s; leave out "+
			"--ipam-opt dhcp, or remove the Docker networks on it", sub.CIDR, network)
	}
	if !sub.FromDHCP() {
		return nil
	}
	asked := *req
	asked.LANTerms, asked.CIDR = sub.LANTerms, sub.CIDR
	if err := checkDHCP(&asked); err != nil {
		return err
	}
	if sub.ParentOn(c.Host()) == "" {
		return noParent(sub.LANTerms, sub.CIDR, c.Host())
	}
	return nil
}

// noParent refuses a host without an interface on the LAN.
func noParent(t ipam.LANTerms, cidr netip.Prefix, host string) error {
	return ipam.Refuse(ipam.ErrInvalid, "the DHCP interfaces of the subnet %s are %s, but none is for host %s; add one",
		cidr, t.DHCPParent, host)
}
