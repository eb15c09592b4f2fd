package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// outside is find for an external network. The engine knows what the files say about other networks: the IPAM driver,
// its options and the subnets.
func (n *network) outside(m Mapping, plan []ipam.NetworkInfo) (note string, err error) {
	ref, byHand := m.Networks[n.key]
	has := m.Engine[n.compose.Name]
	if has == nil {
		return "", n.missing(m, plan)
	}
	if !m.IsBerth(has.Driver) {
		if !byHand {
			return "", nil
		}
		return "", fmt.Errorf("--network %s=%s contradicts the engine, whose network %s has its addresses from the "+
			"IPAM driver %s; leave out --network, or name that driver with --ipam-driver", n.key, ref, has.Name,
			has.Driver)
	}
	n.describe(has)
	if of := n.option("network"); of != "" {
		if n.planned = byRef(plan, of); n.planned == nil {
			return "", fmt.Errorf("networks.%s is external, and the engine's network %s is on the planned network "+
				"%q, which does not exist; create it with `berth network create`", n.key, has.Name, of)
		}
	} else {
		n.planned = n.bySubnet(plan)
	}
	if byHand {
		if err := n.agrees(has, plan, ref); err != nil {
			return "", err
		}
	}
	if n.planned == nil {
		return fmt.Sprintf("%s is external and uses Berth, but the engine does not show its planned network: give "+
			"--network %s=NAME.", n.key, n.key), nil
	}
	return n.found()
}

// Missing returns the external networks that the engine lacks, each with the command that creates it.
func (p *Project) Missing(m Mapping, plan []ipam.NetworkInfo) error {
	var found problems
	for _, key := range slices.Sorted(maps.Keys(p.compose.Networks)) {
		n := &network{key: key, compose: p.compose.Networks[key]}
		if bool(n.compose.External) && p.uses(key) && m.Engine != nil && m.Engine[n.compose.Name] == nil {
			found.add(p.problem(path{"networks", key}, "%w", n.missing(m, plan)))
		}
	}
	return found.err()
}

func (n *network) missing(m Mapping, plan []ipam.NetworkInfo) error {
	return fmt.Errorf("networks.%s is external, but the engine has no network %s; create it with `%s`", n.key,
		n.compose.Name, n.creation(m, plan))
}

// describe sets the network's description to the engine's.
func (n *network) describe(has *ipam.EngineNetwork) {
	n.compose.Ipam = types.IPAMConfig{Driver: has.Driver, Options: has.Options}
	four, six := false, false
	for _, sub := range has.Subnets {
		four, six = four || sub.CIDR.Addr().Is4(), six || sub.CIDR.Addr().Is6()
		n.compose.Ipam.Config = append(n.compose.Ipam.Config, &types.IPAMPool{Subnet: sub.CIDR.String()})
	}
	n.compose.EnableIPv4, n.compose.EnableIPv6 = &four, &six
}

// agrees takes the planned network that the user named, unless the engine has another one.
func (n *network) agrees(has *ipam.EngineNetwork, plan []ipam.NetworkInfo, ref string) error {
	said := byRef(plan, ref)
	switch {
	case said == nil:
		return fmt.Errorf("networks.%s is on the planned network %q, which does not exist; `berth network ls` lists "+
			"the planned networks", n.key, ref)
	case n.planned == nil:
		n.planned = said
	case n.planned.ID != said.ID:
		return fmt.Errorf("--network %s=%s contradicts the engine, whose network %s is on the planned network %s; "+
			"leave out --network", n.key, ref, has.Name, n.planned.Name)
	}
	return nil
}

// creation returns the command that creates the network on the planned network that the user named, or that has the
// same name.
func (n *network) creation(m Mapping, plan []ipam.NetworkInfo) string {
	ref := cmp.Or(m.Networks[n.key], n.compose.Name)
	planned := byRef(plan, ref)
	if planned == nil || len(planned.Subnets) == 0 {
		return "docker network create " + n.compose.Name
	}
	driver := cmp.Or(append(append([]string{m.Driver}, m.Drivers...), "berth")...)
	words := []string{"docker network create --ipam-driver", driver, "--ipam-opt network=" + planned.Name}
	families := map[bool]bool{}
	for _, sub := range planned.Subnets {
		is6 := sub.CIDR.Addr().Is6()
		if families[is6] { // a Docker network has at most one subnet per family
			continue
		}
		families[is6] = true
		if is6 {
			words = append(words, "--ipv6")
		}
		words = append(words, "--subnet "+sub.CIDR.String())
	}
	return strings.Join(append(words, n.compose.Name), " ")
}
