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

// tagPrefix is the prefix of the keys of tags. Tags are stored and shown.
const tagPrefix = "tag."

// optionKeys lists the keys of --ipam-opt, for the error about an unknown key.
const optionKeys = "dhcp, dhcp_id, gateway, network, pool, quarantine, size, space, sticky, tag.KEY"

// parseOptions reads the options of --ipam-opt. With the request for each subnet, the engine sends all options of the
// network, for both families. It adds options of its own, which are ignored. A swarm manager even sends the first
// subnet's gateway options with the second subnet.
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

// parseParent reads the interface for the requests to the LAN's DHCP server.
func parseParent(value string, req *ipam.PoolRequest) error {
	if value == "" {
		return errors.New("name this host's interface to the DHCP server's LAN, such as eth0")
	}
	req.DHCPParent = value
	return ipam.LANTerms{DHCPParent: value}.CheckDHCP()
}

// settlePlanned refuses options that contradict network= and pool=. A planned network has its own space, so the
// engine's default space is ignored. A swarm manager's space is kept: its nodes request the same addresses again in the
// space local, and the manager must not hold them there.
func settlePlanned(opts map[string]string, req *ipam.PoolRequest) error {
	if req.Swarm && req.Space == ipam.LocalSpace {
		return fmt.Errorf("--ipam-opt space=%s: swarm nodes use this space for the subnets that the manager took; "+
			"choose another space, or leave out the option to use the space %s", req.Space, ipam.GlobalSpace)
	}
	if req.Pool != "" && !req.Range.IsZero() {
		return fmt.Errorf("--ipam-opt pool=%s: the range %s (--ip-range) already selects the addresses; leave out one "+
			"of the two", req.Pool, req.Range)
	}
	if req.Network == "" {
		return nil
	}
	if _, given := opts["size"]; given || req.Bits != 0 {
		return fmt.Errorf("--ipam-opt network=%s: the subnets of a planned network have their sizes already; leave "+
			"out the size, and choose a subnet with --subnet", req.Network)
	}
	if _, given := opts["space"]; !given && !req.Swarm {
		req.Space = ""
	}
	return nil
}

// checkNetwork refuses a value that is neither a name nor an id of a network.
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

// parseSize reads the prefix lengths of chosen subnets. Lengths up to 32 apply to IPv4 and greater ones to IPv6, so one
// option serves both families of a dual-stack network: "26", "/26" or "26,80".
func parseSize(value string, req *ipam.PoolRequest) error {
	for part := range strings.SplitSeq(value, ",") {
		digits := strings.TrimPrefix(part, "/")
		bits, err := strconv.Atoi(digits)
		if err != nil || bits < 1 || bits > 128 || strconv.Itoa(bits) != digits {
			return fmt.Errorf("%q is not a prefix length: 1 to 32 for IPv4, 33 to 128 for IPv6", part)
		}
		switch {
		case bits > 32 != req.IPv6:
		case req.CIDR.IsValid():
			return fmt.Errorf("the subnet %s has a size already; leave out the size or the subnet", req.CIDR)
		case req.Bits != 0 && req.Bits != bits:
			return fmt.Errorf("the subnet has two sizes, /%d and /%d; give one for each family", req.Bits, bits)
		default:
			req.Bits = bits
		}
	}
	return nil
}

// parseGateway reads "none" or a list of addresses. It uses the address of the subnet's family that lies in the subnet.
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
	sticky, err := ipam.ParseBool(value)
	if err != nil {
		return err
	}
	req.Forget = new(!sticky)
	return nil
}
