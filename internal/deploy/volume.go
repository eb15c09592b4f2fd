package deploy

import (
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// Volume is a named volume of the project's services, as the files describe it.
type Volume struct {
	Key      string            // in the files
	Name     string            // its name in the engine
	Driver   string            // empty: the engine's own
	Options  map[string]string // of the driver
	Labels   map[string]string
	External bool     // somebody else creates it
	Services []string // the services that use it
	Asleep   bool     // only services of inactive profiles use it
}

// Volumes returns the volumes of the services in the files, by key. It includes volumes that only services of inactive
// profiles use.
func (p *Project) Volumes() (all []Volume) {
	used := map[string]*Volume{}
	take := func(services types.Services, asleep bool) {
		for _, name := range slices.Sorted(maps.Keys(services)) {
			service := services[name]
			for _, on := range p.mounts(&service) {
				v := used[on.Key]
				if v == nil {
					c := p.compose.Volumes[on.Key]
					v = &Volume{Key: on.Key, Name: c.Name, Driver: c.Driver, Options: c.DriverOpts, Labels: c.Labels,
						External: bool(c.External), Asleep: asleep}
					used[on.Key] = v
				}
				if v.Asleep == asleep && !slices.Contains(v.Services, name) {
					v.Services = append(v.Services, name)
				}
			}
		}
	}
	take(p.compose.Services, false)
	take(p.compose.DisabledServices, true)
	for _, key := range slices.Sorted(maps.Keys(used)) {
		all = append(all, *used[key])
	}
	return all
}
