package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// Mapping maps networks of a project to planned networks where the files do not.
type Mapping struct {
	// the name of Berth's IPAM driver; empty: berth or berth-mac, with or without path and tag
	Driver   string
	Drivers  []string          // further names of the daemon's drivers in the engine
	Networks map[string]string // from keys of the project to names or ids of planned networks

	// Engine has the project's external networks in the engine, by name; nil: not read.
	Engine map[string]*ipam.EngineNetwork
	// Adopted maps Docker networks of the project, by Docker name, to the planned networks that take them over.
	// AdoptedBy is their new IPAM driver.
	Adopted   map[string]string
	AdoptedBy string
	// Moves lets a deploy replace addresses that may not be given any more.
	Moves bool
	// Merges says that the project's Compose merges the descriptions of a network (version 2 and later).
	Merges bool
}

// network is a network of the project on a planned network.
type network struct {
	key     string
	compose types.NetworkConfig
	planned *ipam.NetworkInfo
	subnets []netip.Prefix // of the Docker network, one per family, IPv4 first
	pool    string         // the pool for its containers; empty: any
	adopted bool           // the files do not name Berth
	merges  bool           // Mapping.Merges
}

// IsBerth reports whether an IPAM driver is Berth. The name of a managed plugin has a tag, and often the path of a
// registry.
func (m Mapping) IsBerth(driver string) bool {
	if m.Driver != "" {
		return driver == m.Driver
	}
	if slices.Contains(m.Drivers, driver) || slices.Contains(m.Drivers, strings.TrimSuffix(driver, ":latest")) ||
		slices.Contains(m.Drivers, driver+":latest") {
		return true
	}
	name, _, _ := strings.Cut(driver[strings.LastIndexByte(driver, '/')+1:], ":")
	return name == "berth" || name == "berth-mac"
}

// networks returns the networks with addresses from Berth, by key. left has the reasons for other networks that stay as
// they are.
func (p *Project) networks(m Mapping, plan []ipam.NetworkInfo,
	problems *problems) (found map[string]*network, left map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(m.Networks)) {
		if _, ok := p.compose.Networks[key]; !ok {
			problems.add(fmt.Errorf("the project %s has no network %q; it has %s", p.Name(), key,
				strings.Join(slices.Sorted(maps.Keys(p.compose.Networks)), ", ")))
		}
	}
	found, left = map[string]*network{}, map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(p.compose.Networks)) {
		n := &network{key: key, compose: p.compose.Networks[key]}
		if !p.uses(key) {
			continue
		}
		note, err := n.find(m, plan)
		if !bool(n.compose.External) && (n.planned != nil || m.IsBerth(n.compose.Ipam.Driver)) {
			p.checkPools(n, problems)
		}
		switch {
		case err != nil:
			problems.add(p.problem(path{"networks", key}, "%w", err))
			left[key] = err.Error()
		case note != "":
			left[key] = note
		case n.planned != nil:
			found[key] = n
		}
	}
	return found, left
}

// uses reports whether a service is on a network.
func (p *Project) uses(key string) bool {
	for _, service := range p.compose.Services {
		if _, ok := service.Networks[key]; ok {
			return true
		}
	}
	return false
}

// find finds the planned network of the Docker network, and the subnets in use. planned stays nil if the network is not
// Berth's.
func (n *network) find(m Mapping, plan []ipam.NetworkInfo) (note string, err error) {
	if m.Adopted[n.compose.Name] != "" && !bool(n.compose.External) {
		n.adopt(m)
	}
	if bool(n.compose.External) && m.Engine != nil {
		return n.outside(m, plan)
	}
	ref, byHand := m.Networks[n.key]
	driver := n.compose.Ipam.Driver
	switch {
	case n.adopted:
		ref = n.option("network")
	case byHand && driver == "" && !bool(n.compose.External):
		return "", fmt.Errorf("networks.%s has no IPAM driver, so Docker chooses its addresses; write "+
			"ipam: {driver: berth} there", n.key)
	case byHand:
	case bool(n.compose.External):
		return fmt.Sprintf("%s is external and not changed. If it is on a planned network, give --network %s=NAME.",
			n.key, n.key), nil
	case !m.IsBerth(driver):
		return "", nil
	default:
		ref = cmp.Or(n.option("network"), n.compose.DriverOpts["network"])
	}
	if ref == "" {
		n.planned = n.bySubnet(plan)
	} else if n.planned = byRef(plan, ref); n.planned == nil {
		return "", fmt.Errorf("networks.%s is on the planned network %q, which does not exist; create it with `berth "+
			"network create`, or name another planned network with --network %s=NAME (`berth network ls` lists them)",
			n.key, ref, n.key)
	}
	return n.found()
}

// found adds the note about the planned network, and chooses its subnets.
func (n *network) found() (note string, err error) {
	if n.planned == nil {
		return fmt.Sprintf("%s uses Berth, but names no planned network (ipam.options.network), so Berth reserves "+
			"nothing on it.", n.key), nil
	}
	if n.planned.Type == string(ipam.Dynamic) {
		note = fmt.Sprintf("%s is on the planned network %s, which has the type dynamic: something else chooses its "+
			"addresses.",
			n.key, n.planned.Name)
		n.planned = nil
		return note, nil
	}
	n.pool = n.option("pool")
	return "", n.choose()
}

// adopt describes the network as one of Berth, on its planned network.
func (n *network) adopt(m Mapping) {
	n.adopted, n.merges = true, m.Merges
	n.compose.Ipam.Driver = m.AdoptedBy
	n.compose.Ipam.Options = types.Options{"network": m.Adopted[n.compose.Name]}
}

// option returns an option that `docker network create` takes as --ipam-opt.
func (n *network) option(key string) string { return n.compose.Ipam.Options[key] }

// byRef returns the network that a request of Docker names: by its name, its id, or a former name.
func byRef(plan []ipam.NetworkInfo, ref string) *ipam.NetworkInfo {
	i := slices.IndexFunc(plan, func(n ipam.NetworkInfo) bool { return n.Name == ref || n.ID.String() == ref })
	if i < 0 {
		i = slices.IndexFunc(plan, func(n ipam.NetworkInfo) bool { return slices.Contains(n.FormerNames, ref) })
	}
	if i < 0 {
		return nil
	}
	return &plan[i]
}

// bySubnet returns the planned network that has a subnet from the files. Docker finds the planned network in the same
// way.
func (n *network) bySubnet(plan []ipam.NetworkInfo) *ipam.NetworkInfo {
	space := cmp.Or(n.option("space"), ipam.LocalSpace)
	for i := range plan {
		for _, sub := range plan[i].Subnets {
			if plan[i].Space == space && plan[i].Planned && slices.Contains(n.named(), sub.CIDR) {
				return &plan[i]
			}
		}
	}
	return nil
}

// named returns the subnets in the files.
func (n *network) named() (all []netip.Prefix) {
	for _, c := range n.compose.Ipam.Config {
		if prefix, err := netip.ParsePrefix(c.Subnet); err == nil {
			all = append(all, prefix.Masked())
		}
	}
	return all
}

// choose chooses the subnets of the planned network for the Docker network. If the files name neither enable_ipv6 nor
// subnets, the network has IPv6 if the plan gives IPv6 addresses to containers.
func (n *network) choose() error {
	if len(n.planned.Subnets) == 0 {
		return fmt.Errorf("networks.%s is on the planned network %s, which has no subnet; add one with `berth subnet "+
			"add %s CIDR`", n.key, n.planned.Name, n.planned.Name)
	}
	for _, cidr := range n.named() {
		if !slices.ContainsFunc(n.planned.Subnets, func(s ipam.SubnetPlan) bool { return s.CIDR == cidr }) {
			return fmt.Errorf("networks.%s names the subnet %s, which the planned network %s does not have; it has %s",
				n.key, cidr, n.planned.Name, listOf(n.planned.Subnets))
		}
	}
	for _, family := range []struct {
		number int
		said   *bool
	}{{4, n.compose.EnableIPv4}, {6, n.compose.EnableIPv6}} {
		if family.said != nil && !*family.said {
			continue
		}
		subnet, err := n.subnet(family.number)
		if err != nil {
			return err
		}
		if subnet != nil && (family.number == 4 || family.said != nil || len(n.named()) == 0 && len(subnet.Pools) > 0) {
			n.subnets = append(n.subnets, subnet.CIDR)
		}
	}
	return nil
}

// subnet returns the subnet of a family for the Docker network, or nil.
func (n *network) subnet(family int) (*ipam.SubnetPlan, error) {
	all := narrow(n.planned.Subnets, func(s *ipam.SubnetPlan) bool { return familyOf(s.CIDR.Addr()) == family })
	left := prefer(all, func(s *ipam.SubnetPlan) bool { return slices.Contains(n.named(), s.CIDR) })
	if n.pool != "" {
		left = prefer(left, func(s *ipam.SubnetPlan) bool {
			return slices.ContainsFunc(s.Pools, func(p ipam.PoolPlan) bool { return p.Name == n.pool })
		})
	}
	if bool(n.compose.External) &&
		slices.ContainsFunc(n.planned.Subnets, func(s ipam.SubnetPlan) bool { return s.Docker > 0 }) {
		left = narrow(left, func(s *ipam.SubnetPlan) bool { return s.Docker > 0 })
	}
	switch {
	case len(left) == 0:
		return nil, nil
	case len(left) == 1:
		return &left[0], nil
	case bool(n.compose.External):
		return nil, fmt.Errorf("networks.%s is external, and Docker networks are on several IPv%d subnets of the "+
			"planned network %s (%s), so Berth cannot tell which of them this network uses",
			n.key, family, n.planned.Name, listOf(left))
	}
	return nil, fmt.Errorf("networks.%s is on the planned network %s, which has several IPv%d subnets (%s); name one "+
		"in the Compose file, with ipam: {config: [{subnet: %s}]}",
		n.key, n.planned.Name, family, listOf(left), left[0].CIDR)
}

func narrow(all []ipam.SubnetPlan, keep func(*ipam.SubnetPlan) bool) (left []ipam.SubnetPlan) {
	for i := range all {
		if keep(&all[i]) {
			left = append(left, all[i])
		}
	}
	return left
}

// prefer is narrow, but returns all subnets if none is left.
func prefer(all []ipam.SubnetPlan, keep func(*ipam.SubnetPlan) bool) []ipam.SubnetPlan {
	if left := narrow(all, keep); len(left) > 0 {
		return left
	}
	return all
}

func listOf(subnets []ipam.SubnetPlan) string {
	all := make([]string, len(subnets))
	for i, s := range subnets {
		all[i] = s.CIDR.String()
	}
	return strings.Join(all, ", ")
}

func familyOf(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// complete returns the network for the override. It repeats the files' description, because docker-compose 1.29 uses
// only the last description of a network. It adds the subnets, without which the engine refuses configured addresses.
// It returns false if the files name the subnets, or if the network is external.
func (n *network) complete(project string) (types.NetworkConfig, bool) {
	c, changed := n.compose, n.adopted
	if bool(c.External) {
		return c, false
	}
	c.Ipam.Config = nil
	for _, pool := range n.compose.Ipam.Config {
		own := *pool
		c.Ipam.Config = append(c.Ipam.Config, &own)
	}
	for _, subnet := range n.subnets {
		family := familyOf(subnet.Addr())
		i := slices.IndexFunc(c.Ipam.Config, func(p *types.IPAMPool) bool { return familyOfPool(p) == family })
		if i < 0 {
			i = len(c.Ipam.Config)
			c.Ipam.Config = append(c.Ipam.Config, &types.IPAMPool{})
		}
		if c.Ipam.Config[i].Subnet == "" {
			c.Ipam.Config[i].Subnet, changed = subnet.String(), true
		}
		if family == 6 && c.EnableIPv6 == nil {
			enable := true
			c.EnableIPv6, changed = &enable, true
		}
	}
	if n.adopted && n.merges && len(n.named()) > 1 {
		// the files' pools stay; Compose (compose-go 2.16) merges repeated ones wrongly
		c.Ipam.Config = nil
	}
	if c.Name == project+"_"+n.key {
		c.Name = "" // Compose's default, which another --project-name changes
	}
	return c, changed
}

// familyOfPool returns the family of a subnet in the files, which may give only its range or gateway.
func familyOfPool(p *types.IPAMPool) int {
	if strings.Contains(cmp.Or(p.Subnet, p.IPRange, p.Gateway), ":") {
		return 6
	}
	return 4
}
