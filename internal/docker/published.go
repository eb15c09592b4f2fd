package docker

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// publishes returns a container that publishes ports, and these ports, among those whose name satisfies is.
func (r *Roster) publishes(is func(name string) bool) (container string, ports []string) {
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

// networkDriver returns the engine's driver of a subnet's Docker network. If there are several networks, one that is no
// bridge counts.
func (r *Roster) networkDriver(space string, cidr netip.Prefix) (driver string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.networks {
		if n.Kind != "" && (driver == "" || n.Kind != bridgeDriver) && serves(n, space, cidr) {
			driver = n.Kind
		}
	}
	return driver
}

// dockerNetwork returns the name of a subnet's Docker network. It is empty if none is known, or several.
func (r *Roster) dockerNetwork(space string, cidr netip.Prefix) (name string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.subnets[cidr] {
		switch {
		case n.Name == "" || n.Name == name || !serves(n, space, cidr):
		case name != "":
			return ""
		default:
			name = n.Name
		}
	}
	return name
}

// holder returns what is known of a lease's container. It is found by the endpoint that a look has shown, or else by
// its name.
func (r *Roster) holder(lease ipam.LeaseRef, name string, since time.Time) (word ipam.Holder) {
	sighting := r.Endpoint(lease, since)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.current() {
		return ipam.Holder{}
	}
	s := r.sighted(lease)
	m := r.containers[s.container]
	if m == nil && s.container == "" && name != "" {
		m = r.named(name)
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

// beginTime is how long a container may be listed as not running after it has taken its address.
const beginTime = 5 * time.Second

// Watch returns a channel that receives a token after each change of the roster, until end is called.
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

// tellWatchers wakes the watchers. The caller holds the lock.
func (r *Roster) tellWatchers() {
	for ch := range r.watchers {
		wake(ch)
	}
}

const (
	// patienceWithOne is the longest wait for an inspection of one container. The engine holds the container's lock
	// while it starts.
	patienceWithOne = 2 * time.Second
	// askAgain is the pause before a container is inspected again after a failure.
	askAgain = time.Second
	// askAtOnce is the most containers inspected at once.
	askAtOnce = 4
)

// ports remembers the ports that containers publish by their configuration, which never changes. The engine lists them
// only for running containers. Others are inspected once, on a separate goroutine, because an inspection waits for the
// container's lock.
type ports struct {
	mu     sync.Mutex
	of     map[string][]string  // by the container's id
	unread map[string]time.Time // containers to inspect, and from when on
	wake   chan struct{}
}

func newPorts() *ports {
	return &ports{of: map[string][]string{}, unread: map[string]time.Time{}, wake: make(chan struct{}, 1)}
}

// fill adds the known ports to listed containers that do not run. It queues an inspection of unknown ones on a network
// of Berth's. If all is set, it forgets the containers that are not listed.
func (p *ports) fill(listed []ipam.EngineContainer, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there := make(map[string]bool, len(listed))
	for i := range listed {
		c := &listed[i]
		there[c.ID] = true
		configured, known := p.of[c.ID]
		if c.PortsKnown = known; known && len(c.Published) == 0 {
			c.Published = configured
		}
		if _, asked := p.unread[c.ID]; !known && !asked && c.ID != "" && len(c.Endpoints) > 0 {
			p.unread[c.ID] = time.Time{}
		}
	}
	if all {
		maps.DeleteFunc(p.of, func(id string, _ []string) bool { return !there[id] })
		maps.DeleteFunc(p.unread, func(id string, _ time.Time) bool { return !there[id] })
	}
	if len(p.unread) > 0 {
		wake(p.wake)
	}
}

// next returns the containers to inspect now, and whether others are due later.
func (p *ports) next(now time.Time) (ids []string, later bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, from := range p.unread {
		if len(ids) < askAtOnce && !from.After(now) {
			ids = append(ids, id)
		}
	}
	return ids, len(p.unread) > 0
}

// know records the ports of a container. If the container no longer exists it is not inspected again; after another
// error it is.
func (p *ports) know(id string, published []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.of[id] = published
		delete(p.unread, id)
	case errdefs.IsNotFound(err):
		delete(p.unread, id)
	default:
		p.unread[id] = time.Now().Add(askAgain)
	}
}

// run inspects the queued containers until ctx ends, and calls tell for each one that becomes known.
func (p *ports) run(ctx context.Context, api func() *client.Client, tell func(id string)) {
	for ctx.Err() == nil {
		ids, later := p.next(time.Now())
		var asking sync.WaitGroup
		for _, id := range ids {
			asking.Go(func() {
				if p.ask(ctx, api(), id) {
					tell(id)
				}
			})
		}
		asking.Wait()
		if len(ids) > 0 {
			continue
		}
		var again <-chan time.Time
		if later {
			again = time.After(askAgain)
		}
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-again:
		}
	}
}

// ask inspects a container and reports whether its ports are known now.
func (p *ports) ask(ctx context.Context, api *client.Client, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, patienceWithOne)
	defer cancel()
	answer, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	p.know(id, configuredPorts(&answer.Container), err)
	return err == nil
}

// configuredPorts returns the ports that a container publishes when it runs, such as 8080/tcp. If the engine chooses
// the host's port, the container's port is named.
func configuredPorts(c *container.InspectResponse) []string {
	all := []string{}
	if c.HostConfig == nil || c.HostConfig.NetworkMode.IsHost() {
		return all
	}
	for port, bindings := range c.HostConfig.PortBindings {
		for _, b := range bindings {
			if b.HostPort == "" || b.HostPort == "0" {
				all = append(all, "a port for "+port.String())
			} else {
				all = append(all, fmt.Sprintf("%s/%s", b.HostPort, port.Proto()))
			}
		}
	}
	if c.HostConfig.PublishAllPorts && c.Config != nil {
		for port := range c.Config.ExposedPorts {
			all = append(all, "a port for "+port.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
