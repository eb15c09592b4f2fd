package deploy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// Definition is a Docker network that Compose creates for the project, as the files describe it.
type Definition struct {
	Network  string   // its name in Docker
	Services []string // the services on it, by name
	Driver   string
	Options  map[string]string
	Internal bool
	IPv6     *bool // nil: not given
	Labels   map[string]string

	IPAM        string // the IPAM driver
	IPAMOptions map[string]string
	Pools       []Pool
}

// Pool is a subnet of a Docker network in the words of the files.
type Pool struct {
	Subnet  string
	Range   string
	Gateway string
	Aux     map[string]string
}

// Definitions returns the networks that the project's services use, by name, without external ones.
func (p *Project) Definitions() (all []Definition) {
	for _, key := range slices.Sorted(maps.Keys(p.compose.Networks)) {
		n := p.compose.Networks[key]
		if bool(n.External) || !p.uses(key) {
			continue
		}
		one := Definition{Network: n.Name, Driver: cmp.Or(n.Driver, "bridge"), Options: n.DriverOpts,
			Internal: n.Internal, IPv6: n.EnableIPv6, Labels: n.Labels,
			IPAM: cmp.Or(n.Ipam.Driver, "default"), IPAMOptions: n.Ipam.Options}
		for _, pool := range n.Ipam.Config {
			one.Pools = append(one.Pools, poolOf(pool))
		}
		for _, name := range p.services() {
			if _, on := p.compose.Services[name].Networks[key]; on {
				one.Services = append(one.Services, name)
			}
		}
		all = append(all, one)
	}
	return all
}

func poolOf(p *types.IPAMPool) Pool {
	return Pool{Subnet: p.Subnet, Range: p.IPRange, Gateway: p.Gateway, Aux: p.AuxiliaryAddresses}
}
