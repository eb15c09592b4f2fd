package docker

import (
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

// running is which containers have which addresses, by the network's id. A view fills it. Between views it only loses
// containers, because an address that Berth gives has a lease.
type running map[string]map[netip.Addr]*holders

// holders are the containers that have one address. There are several only if Berth's records were wrong.
type holders struct {
	all []ipam.Container
	// The engine releases an address and reports the end of its container, in either order. A release does not name
	// the container.
	released int       // releases whose container is not known yet
	reported int       // ends whose release has not come yet
	at       time.Time // of the last of both
}

func (run running) of(network string, addr netip.Addr) *holders {
	if run[network] == nil {
		run[network] = map[netip.Addr]*holders{}
	}
	if run[network][addr] == nil {
		run[network][addr] = &holders{}
	}
	return run[network][addr]
}

// release notes a release, and returns the containers that may still have the address.
func (h *holders) release(at time.Time) []ipam.Container {
	if h.reported > 0 {
		h.reported--
	} else {
		h.released++
	}
	h.at = at
	h.settle()
	return h.all
}

// settle forgets the containers if as many have released the address.
func (h *holders) settle() {
	if h.released >= len(h.all) {
		h.all = nil
	}
}

// setRunning replaces the running addresses by those of a view. before is what was known until then. Of an address that
// was released shortly before the view, or after it, what is known stays: an engine releases an address before it stops
// showing the endpoint. Whoever was given that address since has a lease of it.
func (r *Roster) setRunning(view *ipam.EngineView, before running) {
	r.running = running{}
	for i := range view.Containers {
		c := &view.Containers[i]
		m := r.containers[c.ID]
		for _, ep := range c.Endpoints {
			if ep.ID == "" || m != nil && m.on[ep.Network] != nil && !m.on[ep.Network].holds {
				continue
			}
			for _, addr := range ep.Addresses {
				h := r.running.of(ep.Network, addr)
				h.all = append(h.all, ipam.Container{ID: c.ID, Name: c.Name})
			}
		}
	}
	for network, addrs := range before {
		for addr, old := range addrs {
			if old.leftBefore(view.Taken) {
				*r.running.of(network, addr) = *old
			}
		}
	}
}

// leftBefore reports whether a view that was taken at a time may still show an endpoint that has ended.
func (h *holders) leftBefore(taken time.Time) bool { return taken.Before(h.at.Add(endpointTime)) }

// stopped notes that a container has ended on a network.
func (r *Roster) stopped(network, id string, at time.Time) {
	for _, h := range r.running[network] {
		left := slices.DeleteFunc(h.all, func(c ipam.Container) bool { return c.ID == id })
		if len(left) == len(h.all) {
			continue
		}
		if h.all, h.at = left, at; h.released > 0 {
			h.released--
		} else {
			h.reported++
		}
		h.settle()
	}
}

// holdersIn returns the holders of an address in a subnet, one for each Docker network that may have it. Before the
// first view these are what an earlier daemon saw.
func (r *Roster) holdersIn(space string, cidr netip.Prefix, addr netip.Addr) (all []*holders) {
	networks, run := r.lastRunning()
	for _, n := range networks {
		if h := run[n.ID][addr]; h != nil && serves(n, space, cidr) {
			all = append(all, h)
		}
	}
	return all
}

func (r *Roster) lastRunning() ([]*ipam.EngineNetwork, running) {
	if r.viewed.IsZero() {
		return r.before.networks, r.before.running
	}
	return r.networks, r.running
}

// runs returns the containers that have an address of a subnet.
func (r *Roster) runs(space string, cidr netip.Prefix, addr netip.Addr) (all []ipam.Container) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, h := range r.holdersIn(space, cidr, addr) {
		all = append(all, h.all...)
	}
	return all
}

// left notes a release of an address, and returns the other containers that still have it.
func (r *Roster) left(space string, cidr netip.Prefix, addr netip.Addr) (others []ipam.Container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	networks, run := r.lastRunning()
	for _, n := range networks {
		if serves(n, space, cidr) {
			others = append(others, run.of(n.ID, addr).release(r.now())...)
		}
	}
	return others
}

// justLeft reports whether an address on a Docker network was released so shortly before a view that the view may still
// show its endpoint.
func (r *Roster) justLeft(network string, addr netip.Addr, taken time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, run := r.lastRunning()
	h := run[network][addr]
	return h != nil && h.leftBefore(taken)
}
