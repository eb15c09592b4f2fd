package docker

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

const (
	// recently is for how long the last word of a container tells it from others that hold nothing either.
	recently = 10 * time.Second

	// lateness is how late an event may come: one that is made before a request is heard before it then.
	lateness = 200 * time.Millisecond

	// lateFor is for how long nobody is guessed after an event that came late, where none in time comes behind it.
	lateFor = 2 * time.Second
)

// Known is the roster as requests ask it.
func (r *Roster) Known() ipam.Known {
	return ipam.Known{Ask: r.ask, Wanted: r.Wanted, Container: r.container, Containers: r.Containers,
		Newcomer: r.newcomer, Endpoint: r.Endpoint, Exists: r.exists, Publishes: r.publishes,
		NetworkDriver: r.networkDriver,
		DockerNetwork: r.dockerNetwork,
		Holder:        r.holder, Watch: r.Watch, Look: r.look}
}

// Bridges are the engine's bridge networks with addresses that are not of this Berth, and whether these are all.
func (r *Roster) Bridges() (networks []ipam.EngineNetwork, live bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bridges, r.live()
}

// live tells whether all that happens is known.
func (r *Roster) live() bool { return !r.following.IsZero() && !r.viewed.Before(r.following) }

// guess tells from whom a request without a name must be: the only container that is on the network and holds nothing
// there, or of several the one that was created or ended in the last moments, where no other was. One that asks for
// an address by its own configuration asks for no other. The replicas that Compose exchanges for one another are one.
func (r *Roster) guess(q ipam.Question) ipam.Hint {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.live() {
		r.miss()
		return ipam.Hint{}
	}
	now := r.now()
	hint := ipam.Hint{Live: true}
	if now.Sub(r.late) < lateFor {
		hint.Soon = true
		return hint
	}
	m := only(r.candidates(q))
	if m == nil {
		m = only(r.recent(q, now))
	}
	if m != nil {
		hint.Name = m.Name
	} else {
		hint.Soon = none(r.candidates(q))
		hint.Others = namesOfEnded(r.recent(q, now))
	}
	return hint
}

// namesOfEnded are the names of containers that ended, in their order; none where one was just made: it may be the one
// that asks, and has nothing to share with them.
func namesOfEnded(all iter.Seq[*member]) (names []string) {
	for m := range all {
		if m.fresh {
			return nil
		}
		names = append(names, m.Name)
	}
	return names
}

func none(all iter.Seq[*member]) bool {
	for range all {
		return false
	}
	return true
}

// only is the one owner of all, by the latest of its containers; nil where there is none, or another one, at which it
// stops.
func only(all iter.Seq[*member]) (one *member) {
	for m := range all {
		switch {
		case one != nil && one.Owner() != m.Owner():
			return nil
		case one == nil || m.stirred.After(one.stirred):
			one = m
		}
	}
	return one
}

// candidates are the containers that a request can be from.
func (r *Roster) candidates(q ipam.Question) iter.Seq[*member] {
	return func(yield func(*member) bool) {
		known := false
		for _, n := range r.networks {
			if !serves(n, q.Space, q.CIDR) {
				continue
			}
			known = true
			for _, m := range r.idle[n.ID] {
				if m.on[n.ID].asksFor(q) && m.mayStart() && !yield(m) {
					return
				}
			}
		}
		if !known {
			return
		}
		for _, m := range r.strange {
			if m.mayStart() && !yield(m) {
				return
			}
		}
	}
}

// recent are those candidates that were created or ended in the last moments.
func (r *Roster) recent(q ipam.Question, now time.Time) iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, m := range r.lately {
			if now.Sub(m.stirred) <= recently && m.mayStart() && r.mayAsk(m, q) && !yield(m) {
				return
			}
		}
	}
}

// mayAsk tells whether a container is one of those that a request can be from.
func (r *Roster) mayAsk(m *member, q ipam.Question) bool {
	_, strange := r.strange[m.ID]
	for _, n := range r.networks {
		s := m.on[n.ID]
		if (strange || s != nil && s.idle > 0 && s.asksFor(q)) && serves(n, q.Space, q.CIDR) {
			return true
		}
	}
	return false
}

// mayStart tells whether a container is not on its way out, and known by its name.
func (m *member) mayStart() bool {
	return m.Name != "" && m.State != stateDead && m.State != stateRemoving
}

// asksFor tells whether a container may ask what is asked: for the address that its configuration has or, without one
// of that family, for any. What it is put on again with is not known before it starts.
func (s *spot) asksFor(q ipam.Question) bool {
	if s.left {
		return true
	}
	if q.Address.IsValid() {
		return slices.Contains(s.wanted, q.Address)
	}
	return !slices.ContainsFunc(s.wanted, q.CIDR.Contains)
}

// Wanted is which addresses of a subnet containers ask for by their own configuration, in order. It is not to be
// changed.
func (r *Roster) Wanted(space string, cidr netip.Prefix) []ipam.Want {
	of := segment{space, cidr}
	r.mu.RLock()
	gone := !r.current()
	wants, known := r.wants[of]
	r.mu.RUnlock()
	switch {
	case gone: // whoever looked
		return nil
	case known:
		return wants
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	wants = r.wantsOf(of)
	r.wants[of] = wants
	return wants
}

// wantsOf gathers what Wanted tells. Of several containers that ask for one address it is the first by name, of those
// that ran where there are such.
func (r *Roster) wantsOf(of segment) (wants []ipam.Want) {
	for _, n := range r.networks {
		if !serves(n, of.space, of.cidr) {
			continue
		}
		for addr, all := range r.wanted[n.ID] {
			for _, m := range all {
				if m.Name != "" {
					wants = append(wants, ipam.Want{Address: addr, Container: m.Name, New: !m.ran})
				}
			}
		}
	}
	slices.SortFunc(wants, func(a, b ipam.Want) int {
		return cmp.Or(a.Address.Compare(b.Address), ranFirst(a, b), cmp.Compare(a.Container, b.Container))
	})
	return slices.CompactFunc(wants, func(a, b ipam.Want) bool { return a.Address == b.Address })
}

func ranFirst(a, b ipam.Want) int {
	switch {
	case a.New == b.New:
		return 0
	case b.New:
		return -1
	}
	return 1
}

// serves tells whether a Docker network can be one of a subnet of a space. One that names a planned network may be in
// any space: that makes more candidates, and never fewer. A swarm's tasks ask through their manager.
func serves(n *ipam.EngineNetwork, space string, cidr netip.Prefix) bool {
	if n.Swarm || !slices.ContainsFunc(n.Subnets, func(sub ipam.EngineSubnet) bool { return sub.CIDR == cidr }) {
		return false
	}
	switch {
	case n.Options["space"] != "":
		return n.Options["space"] == space
	case n.Options["network"] != "":
		return true
	}
	return space == ipam.LocalSpace
}
