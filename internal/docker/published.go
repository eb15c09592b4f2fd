package docker

import (
	"net/netip"
)

// Publishes tells which container of those whose name has a property publishes ports, and which ports.
func (r *Roster) Publishes(is func(name string) bool) (container string, ports []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.current() {
		return "", nil
	}
	for _, m := range r.containers {
		if len(m.Published) > 0 && is(m.Name) && (container == "" || m.Name < container) {
			container, ports = m.Name, m.Published
		}
	}
	return container, ports
}

// NetworkDriver tells by which driver the engine connects the Docker network of a subnet. Of several it is one that
// is no bridge.
func (r *Roster) NetworkDriver(space string, cidr netip.Prefix) (driver string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.networks {
		if n.Kind != "" && (driver == "" || n.Kind != bridgeDriver) && serves(n, space, cidr) {
			driver = n.Kind
		}
	}
	return driver
}
