package deploy

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// CheckSubnets refuses networks whose planned subnets the files do not name. Compose passes only the subnets on to
// Docker, not the options that name the planned network, so that Docker would create such a network in a subnet that is
// not planned. stay has the subnets of the Docker networks that a deploy leaves as they are, by name.
func (p *Plan) CheckSubnets(stay map[string][]netip.Prefix) error {
	var found problems
	for key, n := range p.networks {
		missing := n.unnamed(stay[n.compose.Name])
		if len(missing) == 0 {
			continue
		}
		hint := ""
		if left := p.project.overrides; len(left) > 0 {
			hint = fmt.Sprintf(" (a deploy does not use what `berth compose` wrote: %s)", strings.Join(left, ", "))
		}
		found.add(p.project.problem(path{"networks", key, "ipam", "config"}, "networks.%s does not name the subnet "+
			"%s of the "+
			"planned network %s, so Docker would create the network on an unplanned subnet; write %s%s", key,
			strings.Join(prefixTexts(missing), " and "), n.planned.Name, n.subnetLines(p.project.Name()), hint))
	}
	return found.err()
}

// unnamed returns the subnets of the network that the files do not name, without those that Docker's network has. It
// returns none if checkPools refuses the entries.
func (n *network) unnamed(has []netip.Prefix) (missing []netip.Prefix) {
	if bool(n.compose.External) {
		return nil
	}
	named := n.named()
	for _, pool := range n.compose.Ipam.Config {
		if pool.Subnet == "" && len(n.compose.Ipam.Config) > 1 || pool.Subnet != "" && len(named) == 0 {
			return nil
		}
	}
	for _, subnet := range n.subnets {
		if !slices.Contains(named, subnet) && !slices.Contains(has, subnet) {
			missing = append(missing, subnet)
		}
	}
	return missing
}

// subnetLines returns what the files should say for the network to be in its planned subnets.
func (n *network) subnetLines(project string) string {
	c, _ := n.complete(project)
	entries := make([]string, len(c.Ipam.Config))
	for i, pool := range c.Ipam.Config {
		entries[i] = entryOf(pool)
	}
	text := fmt.Sprintf("config: [%s] in its ipam", strings.Join(entries, ", "))
	if n.compose.EnableIPv6 == nil && c.EnableIPv6 != nil {
		text = "enable_ipv6: true in it, and " + text
	}
	return text
}

// entryOf returns an entry of ipam.config as a line of YAML. Its auxiliary addresses are left to the reader.
func entryOf(pool *types.IPAMPool) string {
	var keys []string
	for _, one := range []struct{ key, value string }{
		{"subnet", pool.Subnet}, {"ip_range", pool.IPRange}, {"gateway", pool.Gateway}} {
		switch {
		case one.value == "":
		case strings.Contains(one.value, ":"):
			keys = append(keys, one.key+": "+strconv.Quote(one.value))
		default:
			keys = append(keys, one.key+": "+one.value)
		}
	}
	if len(pool.AuxiliaryAddresses) > 0 {
		keys = append(keys, "aux_addresses: …")
	}
	return "{" + strings.Join(keys, ", ") + "}"
}

func prefixTexts(all []netip.Prefix) []string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return texts
}
