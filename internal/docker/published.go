package docker

import (
	"net/netip"
	"time"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
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

// Holder is what is known of the container that has a lease, by the endpoint that looks have shown of it or else by
// its name.
func (r *Roster) Holder(lease ipam.LeaseRef, name string, since time.Time) (word ipam.Holder) {
	sighting := r.Endpoint(lease, since)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.current() {
		return ipam.Holder{}
	}
	s := r.leases[place{lease.Space, lease.Address}]
	if s.lease != lease.ID {
		s = sighted{}
	}
	m := r.containers[s.container]
	if m == nil && s.container == "" {
		m = r.called(name)
	}
	word.Ended = sighting.Sight == ipam.Gone
	if m == nil {
		return word
	}
	word.Known, word.PortsKnown, word.Published = true, m.PortsKnown, m.Published
	switch {
	case m.turned.After(since):
		word.Ended = word.Ended || !m.runs
	case m.listed.After(m.turned) && m.State != "" && !lives(container.ContainerState(m.State)):
		word.Unsure = m.listed.Sub(since) < beginTime // it may be starting
		word.Ended = word.Ended || !word.Unsure
	}
	return word
}

// beginTime is for how long a container that has taken its address may be listed as one that does not run.
const beginTime = 5 * time.Second

// called is a container of a name; of several the one that was heard of last. nil: there is none.
func (r *Roster) called(name string) (found *member) {
	if name == "" || r.names[ipam.NameKey(name)] == 0 {
		return nil
	}
	for _, m := range r.containers {
		if m.Name == name && (found == nil || m.at.After(found.at)) {
			found = m
		}
	}
	return found
}

// Watch lets somebody know of each change of who is there, until end is called.
func (r *Roster) Watch() (changed <-chan struct{}, end func()) {
	ch := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[ch] = true
	return ch, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, ch)
	}
}

// tellWatchers is for one who holds the lock.
func (r *Roster) tellWatchers() {
	for ch := range r.watchers {
		wake(ch)
	}
}
