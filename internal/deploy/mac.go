package deploy

import (
	"cmp"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// macOf returns the MAC of an owner on a network. If another owner in the file has it, macOf takes the next one.
func macOf(c *claim, taken map[string]bool) string {
	for try := 0; ; try++ {
		mac := ipam.OwnerMAC(c.on.planned.ID, c.on.planned.MACPrefix, c.owner, try)
		if !taken[mac] {
			taken[mac] = true
			return mac
		}
	}
}

// macs returns the services' MACs by name. docker-compose 1.29 supports only one MAC per service, which the engine
// gives to the container's first network. So a service gets a MAC only if that network is Berth's. A MAC in the files
// takes precedence.
func (p *Plan) macs() map[string]string {
	services := p.project.compose.Services
	given, taken := map[string]string{}, map[string]bool{}
	for _, name := range p.project.services() {
		taken[strings.ToLower(ownMAC(services[name]))] = true
	}
	byName := slices.SortedFunc(slices.Values(p.claims),
		func(a, b *claim) int { return cmp.Compare(a.service, b.service) })
	for _, c := range byName {
		service := services[c.service]
		// On an adopted network, containers keep the MAC from the engine.
		if !c.shared && !c.on.adopted && ownMAC(service) == "" &&
			firstNetwork(service, p.project.compose.Networks) == c.on.key {
			given[c.service] = macOf(c, taken)
		}
	}
	return given
}

// ownMAC returns the MAC that the files give a service, or one of its networks.
func ownMAC(service types.ServiceConfig) string {
	mac := service.MacAddress
	for _, key := range service.NetworksByPriority() {
		if on := service.Networks[key]; on != nil {
			mac = cmp.Or(mac, on.MacAddress)
		}
	}
	return mac
}

// firstNetwork returns the network that a container is created with. It is empty if the versions of Compose disagree.
// Newer versions sort networks of the same priority by key. docker-compose 1.29 sorts by the Docker name, and has no
// order if any network has a priority.
func firstNetwork(service types.ServiceConfig, networks types.Networks) string {
	keys := service.NetworksByPriority()
	if len(keys) == 0 {
		return ""
	}
	priority := func(key string) int {
		if service.Networks[key] == nil {
			return 0
		}
		return service.Networks[key].Priority
	}
	first := keys[0]
	if slices.ContainsFunc(keys, func(key string) bool { return priority(key) != 0 }) {
		if len(keys) > 1 && priority(keys[1]) == priority(first) {
			return ""
		}
		return first
	}
	for _, key := range keys {
		if networks[key].Name < networks[first].Name {
			return ""
		}
	}
	return first
}
