package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// Service is a service of a project as a deploy sees it.
type Service struct {
	Name      string
	Image     string // as the files name it; empty: it is built
	Update    Update
	Instances []Instance // by number
}

// Instance is one container that the files describe.
type Instance struct {
	Owner  string
	Number int
	On     []Place
}

// Place is what an instance is to have on a network of Berth's, once the plan was granted.
type Place struct {
	Network   string       // as Docker calls it
	Planned   string       // the planned network
	Addresses []netip.Addr // one of a family
	Named     bool         // the files name its subnets, without which the engine refuses an address of a container's own
}

// Services are the project's services in the order of their dependencies, each behind those that it needs, and with all
// its instances.
func (p *Plan) Services() (all []Service) {
	for _, name := range p.project.inOrder() {
		service := p.project.compose.Services[name]
		one := Service{Name: name, Image: service.Image, Update: updateOf(&service)}
		for number := range service.GetScale() {
			owner := p.project.owner(&service, number+1)
			one.Instances = append(one.Instances, Instance{Owner: owner, Number: number + 1, On: p.places(name, owner)})
		}
		all = append(all, one)
	}
	return all
}

// owner is who a replica's addresses are reserved for.
func (p *Project) owner(service *types.ServiceConfig, number int) string {
	if service.ContainerName != "" {
		return service.ContainerName
	}
	return fmt.Sprintf("%s/%s/%d", p.Name(), service.Name, number)
}

// Owners are the owners of the project that have names of their own, and not one below its name.
func (p *Project) Owners() (all []string) {
	for _, name := range p.services() {
		if container := p.compose.Services[name].ContainerName; container != "" {
			all = append(all, container)
		}
	}
	return all
}

// places are what an owner was granted, by the names of the Docker networks.
func (p *Plan) places(service, owner string) (all []Place) {
	for _, c := range p.claims {
		if c.service == service && c.owner == owner {
			all = append(all, Place{Network: c.on.compose.Name, Planned: c.on.planned.Name, Addresses: c.has,
				Named: len(c.on.named()) > 0})
		}
	}
	slices.SortFunc(all, func(a, b Place) int { return strings.Compare(a.Network, b.Network) })
	return all
}

// inOrder are the names of the services, each behind those that it depends on; of those that depend on none of each
// other, by name. The reader of Compose files refuses circles.
func (p *Project) inOrder() (all []string) {
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		service, there := p.compose.Services[name]
		if !there || seen[name] {
			return
		}
		seen[name] = true
		for _, needed := range slices.Sorted(slices.Values(service.GetDependencies())) {
			visit(needed)
		}
		all = append(all, name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.compose.Services)) {
		visit(name)
	}
	return all
}
