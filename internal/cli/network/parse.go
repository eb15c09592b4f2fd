package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// This file parses arguments and flags. Its errors say what to write instead.

// parseRange parses the notations of ranges in arguments.
func parseRange(text string) (ipam.Range, error) {
	r, err := alloc.ParseRange(text)
	return ipam.Range{IPRange: r}, err
}

// parseGateway parses an address. For "none" it returns the zero Addr.
func parseGateway(text string) (netip.Addr, error) {
	if text == "none" {
		return netip.Addr{}, nil
	}
	a, err := alloc.ParseAddr(text)
	if err != nil {
		return a, fmt.Errorf("the gateway must be an address or none: %w", err)
	}
	return a, nil
}

// parseSwitch parses on or off. A switch without a value is on.
func parseSwitch(text string, said bool) (bool, error) {
	if !said {
		return true, nil
	}
	return ipam.ParseBool(text)
}

// parseTags parses KEY=VALUE of each --tag.
func parseTags(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	tags := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--tag is %q and must be KEY=VALUE", text)
		}
		if _, twice := tags[key]; twice {
			return nil, fmt.Errorf("--tag %s is given twice", key)
		}
		tags[key] = value
	}
	return tags, nil
}

// parseLinks parses host=HOST,mode=MODE,link=LINK of each --link.
func parseLinks(texts []string) ([]ipam.Link, error) {
	var links []ipam.Link
	for _, text := range texts {
		var l ipam.Link
		err := eachOption(text, "host, link, mode", func(key, value string, _ bool) (known bool, err error) {
			switch key {
			case "host":
				l.Host = value
			case "mode":
				l.Mode = value
			case "link":
				l.Link = value
			default:
				return false, nil
			}
			return true, nil
		})
		if err == nil && (l.Host == "" || l.Mode == "") {
			err = errors.New("it needs a host and a mode; write host=HOST,mode=bridged,link=BRIDGE")
		}
		if err != nil {
			return nil, fmt.Errorf("--link %q: %w", text, err)
		}
		links = append(links, l)
	}
	return links, nil
}

// eachOption parses "key=value,key" and calls set for each; said is false for a key without a value. Only "pool" may
// appear more than once.
func eachOption(text, keys string, set func(key, value string, said bool) (known bool, err error)) error {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, said := strings.Cut(part, "=")
		if seen[key] && key != "pool" {
			return fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		known, err := set(key, value, said)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !known {
			return fmt.Errorf("it has no option %q; the options are %s", key, keys)
		}
	}
	return nil
}

// newSubnet is a parsed --subnet of network create: a subnet, and its pools. The pools have no network yet.
type newSubnet struct {
	spec  ipam.SubnetSpec
	pools []*ipam.AddPool
}

// parseSubnet parses "CIDR" or "CIDR,OPTION,...". The short form has a pool of the whole subnet; the long form has a
// pool only if an option adds one. "/BITS" with the option from=CIDR can replace the CIDR.
func parseSubnet(text string) (newSubnet, error) {
	prefix, options, more := strings.Cut(text, ",")
	n := newSubnet{spec: ipam.SubnetSpec{Pool: !more}}
	var from string
	var err error
	if more {
		err = eachOption(options, "dhcp, from, gateway, name, pool", func(key, value string, said bool) (bool, error) {
			if key == "from" {
				from = value
				return true, nil
			}
			return n.set(key, value, said)
		})
	}
	if err == nil {
		err = parsePlace(prefix, from, "from=CIDR", &n.spec)
	}
	if err == nil {
		err = n.wholePools()
	}
	switch {
	case err != nil && more:
		return n, fmt.Errorf("--subnet %q: %w", text, err)
	case err != nil:
		return n, fmt.Errorf("--subnet: %w", err)
	}
	return n, nil
}

// set applies one option of --subnet.
func (n *newSubnet) set(key, value string, said bool) (known bool, err error) {
	switch key {
	case "dhcp":
		n.spec.DHCP, err = parseSwitch(value, said)
	case "gateway":
		n.spec.Gateway, err = parseGateway(value)
	case "name":
		n.spec.Name, err = value, ipam.CheckNewName("subnet", value)
	case "pool":
		if on, wrong := parseSwitch(value, said); wrong == nil {
			n.spec.Pool = n.spec.Pool || on
			break
		}
		r, wrong := parseRange(value)
		switch {
		case wrong == nil:
			n.pools = append(n.pools, &ipam.AddPool{Range: r})
		case ipam.CheckNewName("pool", value) == nil:
			n.pools = append(n.pools, &ipam.AddPool{Name: value})
		default:
			err = wrong
		}
	default:
		return false, nil
	}
	return true, err
}

// wholePools sets the subnet of pools that have a name and no range. Such a pool is the whole subnet.
func (n *newSubnet) wholePools() error {
	for _, p := range n.pools {
		switch {
		case !p.Range.IsZero():
		case n.spec.CIDR.IsValid():
			p.Subnet = n.spec.CIDR.String()
		case n.spec.Name != "":
			p.Subnet = n.spec.Name
		default:
			return errors.New("to name the pool of a subnet that Berth chooses, name the subnet with name=")
		}
	}
	return nil
}

// parsePlace parses the place of a subnet: "CIDR", or "/BITS" inside from. form is how to write from; the error quotes
// it.
func parsePlace(prefix, from, form string, spec *ipam.SubnetSpec) (err error) {
	digits, chosen := strings.CutPrefix(prefix, "/")
	switch {
	case chosen && from == "":
		return fmt.Errorf("%s is only a length; name the larger prefix with %s", prefix, form)
	case !chosen && from != "":
		return fmt.Errorf("Berth chooses the subnet inside %s, so give only its length: /BITS instead of %s", from,
			prefix)
	case !chosen:
		spec.CIDR, err = alloc.ParsePrefix(prefix)
		return err
	}
	if spec.From, err = alloc.ParsePrefix(from); err != nil {
		return err
	}
	spec.Bits, err = strconv.Atoi(digits)
	if err != nil || digits != strconv.Itoa(spec.Bits) || spec.Bits < spec.From.Bits() ||
		spec.Bits > spec.From.Addr().BitLen() {
		return fmt.Errorf("%s is not the length of a prefix inside %s; write /%d to /%d", prefix, from,
			spec.From.Bits(), spec.From.Addr().BitLen())
	}
	return nil
}
