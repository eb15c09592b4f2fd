package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// Service is a service of a project in the form that a deploy needs.
type Service struct {
	Name      string
	Image     string // in the files; empty: it is built
	Update    Update
	Needs     []string   // the services that it depends on
	Shares    []string   // services whose containers its own need to run: for their network or volumes (volumes_from)
	Worker    bool       // it runs to its end in each deploy and is then deleted
	Once      bool       // it runs to its end, for which another service waits, and stays
	Drain     *Hook      // runs in a container before it is stopped
	Snapshot  *Hook      // runs on the host after that
	Mounts    []Mount    // of named volumes
	Ports     []string   // published on the host
	Container string     // its container_name
	Instances []Instance // by number
}

// Hook is a command that runs when an instance is replaced.
type Hook struct {
	Command []string      `json:"command"`
	Timeout time.Duration `json:"timeout"`
}

// Mount is a named volume in the containers of a service.
type Mount struct {
	Key    string `json:"key"`    // in the files
	Volume string `json:"volume"` // its name in the engine
	Target string `json:"target"` // the path in the container
}

// Instance is one container that the files describe.
type Instance struct {
	Owner  string
	Number int
	On     []Place
}

// Place is an instance's network of Berth, with the addresses that the plan was granted there.
type Place struct {
	Network   string       // its name in Docker
	Planned   string       // the planned network
	Addresses []netip.Addr // at most one per family
	Named     bool         // the files name its subnets; without that, the engine refuses a configured address
}

// Services returns the project's services in the order of their dependencies, with all instances.
func (p *Plan) Services() (all []Service) {
	for _, name := range p.project.inOrder() {
		service := p.project.compose.Services[name]
		t := p.terms[name]
		one := Service{Name: name, Image: service.Image, Update: t.update,
			Needs:  slices.Sorted(slices.Values(service.GetDependencies())),
			Shares: shares(&service), Mounts: p.project.mounts(&service), Container: service.ContainerName,
			Worker: t.isWorker(), Once: p.project.endsFor(name), Drain: t.drain, Snapshot: t.snap}
		for _, port := range service.Ports {
			if port.Published != "" {
				one.Ports = append(one.Ports, port.Published)
			}
		}
		for number := range service.GetScale() {
			owner := p.project.owner(&service, number+1)
			one.Instances = append(one.Instances, Instance{Owner: owner, Number: number + 1, On: p.places(name, owner)})
		}
		all = append(all, one)
	}
	return all
}

// Workers returns how many of the project's workers run at the same time.
func (p *Plan) Workers() int { return p.workers }

// endsFor reports whether another service waits until a service has run to its end.
func (p *Project) endsFor(name string) bool {
	for _, service := range p.compose.Services {
		if service.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

// shares returns the services whose network, processes or volumes a service's containers use.
func shares(service *types.ServiceConfig) (all []string) {
	for _, mode := range []string{service.NetworkMode, service.Pid, service.Ipc} {
		if name, is := strings.CutPrefix(mode, types.ServicePrefix); is {
			all = append(all, name)
		}
	}
	for _, from := range service.VolumesFrom {
		if name, _, _ := strings.Cut(from, ":"); !strings.HasPrefix(from, types.ContainerPrefix) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mounts returns the named volumes of a service, by path in the container.
func (p *Project) mounts(service *types.ServiceConfig) (all []Mount) {
	for _, v := range service.Volumes {
		if v.Type == types.VolumeTypeVolume && v.Source != "" {
			all = append(all, Mount{Key: v.Source, Volume: p.compose.Volumes[v.Source].Name, Target: v.Target})
		}
	}
	slices.SortFunc(all, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	return all
}

// owner returns the owner of a replica's addresses.
func (p *Project) owner(service *types.ServiceConfig, number int) string {
	if service.ContainerName != "" {
		return service.ContainerName
	}
	return fmt.Sprintf("%s/%s/%d", p.Name(), service.Name, number)
}

// Owners returns the owners of the project that are not below its name, because their containers have their own names.
func (p *Project) Owners() (all []string) {
	for _, name := range p.services() {
		if container := p.compose.Services[name].ContainerName; container != "" {
			all = append(all, container)
		}
	}
	return all
}

// places returns what an owner was granted, by Docker network.
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

// inOrder returns the names of the services, dependencies first, otherwise by name. The reader of Compose files refuses
// circular dependencies.
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
