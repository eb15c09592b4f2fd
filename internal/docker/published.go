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

// publishes tells which container of those whose name has a property publishes ports, and which ports.
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

// networkDriver tells by which driver the engine connects the Docker network of a subnet. Of several it is one that
// is no bridge.
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

// dockerNetwork is the name of the Docker network of a subnet; empty where none is known, or several are.
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

// holder is what is known of the container that has a lease, by the endpoint that looks have shown of it or else by
// its name.
func (r *Roster) holder(lease ipam.LeaseRef, name string, since time.Time) (word ipam.Holder) {
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

const (
	// patienceWithOne is how long the engine may take to tell of one container: it holds its lock while that starts.
	patienceWithOne = 2 * time.Second
	// askAgain is how long a container is left alone of which the engine did not tell.
	askAgain = time.Second
	// askAtOnce is how many containers are asked for at a time.
	askAtOnce = 4
)

// ports is what containers publish by their configuration, which stays what it was when they were made. The engine's
// list tells it only of those that run; of others each is to be asked for once, and never in the midst of a view or of
// what events wake: the engine may be holding its lock.
type ports struct {
	mu     sync.Mutex
	of     map[string][]string  // by the container's id
	unread map[string]time.Time // those that are to be asked for, and from when on
	wake   chan struct{}
}

func newPorts() *ports {
	return &ports{of: map[string][]string{}, unread: map[string]time.Time{}, wake: make(chan struct{}, 1)}
}

// fill adds to listed containers what they publish though they do not run, and has those asked for that are on a
// network of Berth's and not known. Those that a list of all has not are forgotten.
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

// next are some that are to be asked for now, and whether others are later.
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

// know takes in what one publishes. One that is not there is asked for no more, and one of which the engine did not
// tell is asked for again.
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

// run asks for those that are wanted until ctx ends, and tells of each that is known then.
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

// ask asks for one, and tells whether it is known now.
func (p *ports) ask(ctx context.Context, api *client.Client, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, patienceWithOne)
	defer cancel()
	answer, err := api.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	p.know(id, configuredPorts(&answer.Container), err)
	return err == nil
}

// configuredPorts are the ports that a container publishes whenever it runs, such as 8080/tcp. Of one that the engine
// chooses it is said for which port of the container it is.
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
