package driver

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// maxNameLength is the maximum length of a recorded endpoint name, in bytes. Docker's own names are far shorter.
const maxNameLength = 255

// errForeign marks a pool id that is not Berth's. Nothing is held through it, so its release succeeds.
var errForeign = errors.New("not a Berth pool id")

// parsePool reads a pool request: its options, and the subnet, or the size and family if Berth chooses the subnet.
func parsePool(msg *api.RequestPoolRequest) (ipam.PoolRequest, error) {
	req := ipam.PoolRequest{Space: msg.AddressSpace, IPv6: msg.V6, Swarm: msg.AddressSpace == ipam.GlobalSpace}
	if msg.AddressSpace == "" {
		return req, errors.New("the request names no address space (AddressSpace); Berth's are local and global")
	}
	if err := parseSubnet(msg, &req); err != nil {
		return req, err
	}
	opts := msg.Options
	if isSwarm(msg) {
		opts = swarmOptions(opts, req)
	}
	if err := parseOptions(opts, &req); err != nil {
		return req, err
	}
	return req, nil
}

// isSwarm reports whether a swarm sent the request: its manager, or a node for what the manager took.
func isSwarm(msg *api.RequestPoolRequest) bool {
	_, serial := msg.Options[optSerial]
	return serial || msg.AddressSpace == ipam.GlobalSpace
}

// swarmOptions removes the options that have had their effect. The manager chose a subnet by them. Later the nodes, and
// the manager after a restart, request that subnet with the same options; a node does so in the space local. If a node
// applied network, pool and space again, it would find that the manager holds its addresses.
func swarmOptions(opts map[string]string, req ipam.PoolRequest) map[string]string {
	left := maps.Clone(opts)
	if req.CIDR.IsValid() {
		delete(left, "size")
	}
	if !req.Swarm {
		for _, key := range []string{"network", "pool", "space"} {
			delete(left, key)
		}
	}
	return left
}

// parseSubnet reads Pool and SubPool. A pool of the unspecified address, such as 0.0.0.0/24, requests only a size
// (engines from v29 on). The family follows from the subnet, because a swarm manager sends V6 false with an IPv6
// subnet.
func parseSubnet(msg *api.RequestPoolRequest, req *ipam.PoolRequest) error {
	if msg.Pool != "" {
		p, err := alloc.ParsePrefix(masked(msg.Pool))
		if err != nil {
			return fmt.Errorf("the subnet: %w", err)
		}
		switch {
		case p.Bits() == 0:
			return fmt.Errorf("the subnet %s covers its whole address family; name a smaller one", p)
		case p.Addr().IsUnspecified():
			req.IPv6, req.Bits = p.Addr().Is6(), p.Bits()
		default:
			req.CIDR, req.IPv6 = p, p.Addr().Is6()
		}
	}
	if msg.SubPool != "" {
		r, err := alloc.ParseRange(masked(msg.SubPool))
		if err != nil {
			return fmt.Errorf("the range: %w", err)
		}
		req.Range = ipam.Range{IPRange: r}
	}
	return nil
}

// masked returns a CIDR without its host bits, as the engine's own IPAM reads it. Docker 20.10 sends both the subnet and
// the range as the user wrote them; later engines refuse host bits themselves.
func masked(text string) string {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String()
	}
	return text
}

// parsePoolID reads a pool id. An empty id is an error. An id that is not Berth's is errForeign.
func parsePoolID(s string) (ipam.ID, error) {
	if s == "" {
		return ipam.ID{}, errors.New("the request names no pool (PoolID)")
	}
	id, err := ipam.ParseID(s)
	if err != nil {
		return ipam.ID{}, fmt.Errorf("%w: %q", errForeign, s)
	}
	return id, nil
}

// parseAddress reads an address request.
func parseAddress(msg *api.RequestAddressRequest) (ipam.AddressRequest, error) {
	var req ipam.AddressRequest
	var err error
	if req.Pool, err = parsePoolID(msg.PoolID); err != nil {
		return req, err
	}
	if msg.Address != "" {
		if req.Preferred, err = parseAddr(msg.Address); err != nil {
			return req, fmt.Errorf("the requested address: %w", err)
		}
	}
	if mac := msg.Options[optMAC]; mac != "" {
		if req.MAC, err = ipam.ParseMAC(mac); err != nil {
			return req, err
		}
	}
	req.Name = strings.TrimPrefix(msg.Options[optName], "/")
	if len(req.Name) > maxNameLength {
		return req, fmt.Errorf("the endpoint's name has %d bytes; at most %d are allowed", len(req.Name), maxNameLength)
	}
	req.Gateway = msg.Options[optAddressType] == typeGateway
	return req, nil
}

// parseAddr reads a single address, as strictly as other addresses are read.
func parseAddr(s string) (netip.Addr, error) {
	if strings.ContainsAny(s, "/-+") {
		return netip.Addr{}, fmt.Errorf("%q is not a single address", s)
	}
	r, err := alloc.ParseRange(s)
	if err != nil {
		return netip.Addr{}, err
	}
	return r.From(), nil
}
