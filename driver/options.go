package driver

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// tagPrefix begins the keys of tags, which are kept and shown (LN-11).
const tagPrefix = "tag."

// optionKeys are the keys of --ipam-opt, as they are told to one who mistyped one.
const optionKeys = "dhcp, dhcp_id, gateway, network, pool, quarantine, size, space, sticky, tag.KEY"

// parseOptions reads what --ipam-opt said. The engine sends all of it with the request for each subnet of a network, of
// either family, together with options of its own, which say nothing here; a swarm manager even leaves the first
// subnet's gateway options in the request for the second.
func parseOptions(opts map[string]string, req *ipam.PoolRequest) error {
	for _, key := range slices.Sorted(maps.Keys(opts)) {
		value := opts[key]
		var err error
		switch {
		case strings.HasPrefix(key, "com.docker."), key == optAddressType:
		case strings.HasPrefix(key, tagPrefix):
			err = parseTag(key, value, req)
		case key == "dhcp":
			err = parseParent(value, req)
		case key == "dhcp_id":
			req.DHCPID, err = ipam.ParseLANID(value)
		case key == "space":
			err = ipam.CheckName("space", value)
			req.Space = value
		case key == "network":
			err = checkNetwork(value)
			req.Network = value
		case key == "pool":
			err = ipam.CheckName("pool", value)
			req.Pool = value
		case key == "size":
			err = parseSize(value, req)
		case key == "gateway":
			err = parseGateway(value, req)
		case key == "quarantine":
			err = parseQuarantine(value, req)
		case key == "sticky":
			err = parseSticky(value, req)
		default:
			err = fmt.Errorf("the key is unknown; the keys are %s", optionKeys)
		}
		if err != nil {
			return fmt.Errorf("--ipam-opt %s=%s: %w", key, value, err)
		}
	}
	return settlePlanned(opts, req)
}

// parseParent reads the interface by which the LAN's DHCP server is asked.
func parseParent(value string, req *ipam.PoolRequest) error {
	if value == "" {
		return errors.New("say by which interface of this host the LAN's DHCP server is asked, such as eth0")
	}
	req.DHCPParent = value
	return ipam.LANTerms{DHCPParent: value}.CheckDHCP()
}

// settlePlanned refuses what contradicts network= and pool=. A planned network is in a space of its own, so that the
// one which the engine asks in by default is no wish. That of a swarm manager stays one: each of its nodes asks for the
// same addresses again in the space local, where they must not be held already.
func settlePlanned(opts map[string]string, req *ipam.PoolRequest) error {
	if req.Swarm && req.Space == ipam.LocalSpace {
		return fmt.Errorf("--ipam-opt space=%s: a swarm's nodes ask in this space for what its manager took; choose "+
			"another, or leave it out for %s",
			req.Space, ipam.GlobalSpace)
	}
	if req.Pool != "" && !req.Range.IsZero() {
		return fmt.Errorf("--ipam-opt pool=%s: the range %s (--ip-range) says already which addresses; leave out one "+
			"of the two", req.Pool, req.Range)
	}
	if req.Network == "" {
		return nil
	}
	if _, given := opts["size"]; given || req.Bits != 0 {
		return fmt.Errorf("--ipam-opt network=%s: the subnets of a planned network have their sizes already; leave "+
			"out the size, and choose one with --subnet", req.Network)
	}
	if _, given := opts["space"]; !given && !req.Swarm {
		req.Space = ""
	}
	return nil
}

// checkNetwork refuses what is neither the name nor the id of a network.
func checkNetwork(value string) error {
	if _, err := ipam.ParseID(value); err == nil {
		return nil
	}
	return ipam.CheckName("network", value)
}

func parseTag(key, value string, req *ipam.PoolRequest) error {
	name := strings.TrimPrefix(key, tagPrefix)
	if err := ipam.CheckName("tag", name); err != nil {
		return err
	}
	if req.Tags == nil {
		req.Tags = map[string]string{}
	}
	req.Tags[name] = value
	return nil
}

// parseSize reads the prefix lengths of chosen subnets. Lengths up to 32 speak of IPv4 and greater ones of IPv6, so
// that one option serves both halves of a dual-stack network: "26", "/26" or "26,80".
func parseSize(value string, req *ipam.PoolRequest) error {
	for part := range strings.SplitSeq(value, ",") {
		digits := strings.TrimPrefix(part, "/")
		bits, err := strconv.Atoi(digits)
		if err != nil || bits < 1 || bits > 128 || strconv.Itoa(bits) != digits {
			return fmt.Errorf("%q is not the length of a prefix: 1 to 32 for IPv4, 33 to 128 for IPv6", part)
		}
		switch {
		case bits > 32 != req.IPv6:
		case req.CIDR.IsValid():
			return fmt.Errorf("the subnet %s has a size already; leave out one of the two", req.CIDR)
		case req.Bits != 0 && req.Bits != bits:
			return fmt.Errorf("the subnet is to be a /%d and a /%d; give one size for each family", req.Bits, bits)
		default:
			req.Bits = bits
		}
	}
	return nil
}

// parseGateway reads "none", or addresses, of which the one of the subnet's family and inside it is meant.
func parseGateway(value string, req *ipam.PoolRequest) error {
	if value == "none" {
		req.NoGateway = true
		return nil
	}
	var outside netip.Addr
	for part := range strings.SplitSeq(value, ",") {
		addr, err := parseAddr(part)
		if err != nil {
			return fmt.Errorf("%w; give an address, or none", err)
		}
		switch {
		case addr.Is6() != req.IPv6:
		case req.CIDR.IsValid() && req.CIDR.Contains(addr) && req.Gateway.IsValid() && req.Gateway != addr:
			return fmt.Errorf("%s and %s are both in the subnet %s, which has one gateway", req.Gateway, addr, req.CIDR)
		case !req.CIDR.IsValid() || req.CIDR.Contains(addr):
			req.Gateway = addr
		default:
			outside = addr
		}
	}
	if outside.IsValid() && !req.Gateway.IsValid() {
		return fmt.Errorf("%s is outside the subnet %s; give one gateway for each subnet, separated by commas", outside,
			req.CIDR)
	}
	return nil
}

func parseQuarantine(value string, req *ipam.PoolRequest) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration such as 90s, 10m or 24h", value)
	}
	req.Quarantine = &d
	return nil
}

func parseSticky(value string, req *ipam.PoolRequest) error {
	if value != "on" && value != "off" {
		return fmt.Errorf("%q is neither on nor off", value)
	}
	forget := value == "off"
	req.Forget = &forget
	return nil
}
