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
	// recently is how long the last event of a container sets it apart from other containers without addresses.
	recently = 10 * time.Second

	// lateness is the largest delay of an event that counts as on time. Then every event from before a request was
	// heard first.
	lateness = 200 * time.Millisecond

	// lateFor is how long nothing is guessed after a late event, unless an event on time follows.
	lateFor = 2 * time.Second
)

// Known returns the functions by which requests ask the roster.
func (r *Roster) Known() ipam.Known {
	return ipam.Known{Ask: r.ask, Wanted: r.Wanted, Container: r.container, Containers: r.Containers,
		Replica: r.replica, Endpoint: r.Endpoint, Exists: r.exists, Publishes: r.publishes,
		Returns: r.returns, Runs: r.runs, Left: r.left, Unnetworked: r.unnetworked, FirstView: r.first.wait,
		NetworkDriver: r.networkDriver,
		DockerNetwork: r.dockerNetwork,
		Holder:        r.holder, Watch: r.Watch, Look: r.look}
}

// Bridges returns the engine's bridge networks that do not get their addresses from this Berth. live reports whether
// the list is complete.
func (r *Roster) Bridges() (networks []ipam.EngineNetwork, live bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bridges, r.live()
}

// live reports whether the roster is complete: events come, and a view was read since they began.
func (r *Roster) live() bool { return !r.following.IsZero() && !r.viewed.Before(r.following) }

// guess finds the container that must have sent a request without a name. That is the only container on the network
// without an address there. If there are several, it is the only one that was created or ended in the last seconds. A
// container that asks for a configured address sends no other request. Compose's containers for one replica count as
// one.
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

// namesOfEnded returns the names of ended containers, in order. If a container was just created, it returns none: that
// one may be asking, and shares no addresses with them.
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

// only returns the latest container of the only owner in all. It returns nil if there is no owner, or more than one.
func only(all iter.Seq[*member]) (one *member) {
	for m := range all {
		switch {
		case one != nil && one.Owner() != m.Owner():
			return nil
		case one == nil || m.lastChange.After(one.lastChange):
			one = m
		}
	}
	return one
}

// candidates yields the containers that may send the request.
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

// recent yields the candidates that were created or ended in the last seconds.
func (r *Roster) recent(q ipam.Question, now time.Time) iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, m := range r.lately {
			if now.Sub(m.lastChange) <= recently && m.mayStart() && r.mayAsk(m, q) && !yield(m) {
				return
			}
		}
	}
}

// mayAsk reports whether a container is a candidate for the request.
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

// mayStart reports whether a container has a name and is not being removed.
func (m *member) mayStart() bool {
	return m.Name != "" && m.State != stateDead && m.State != stateRemoving
}

// asksFor reports whether a container may send this request. It asks for its configured address or, without one in the
// subnet, for any. A container that was disconnected before its first start may come back with other settings, so it
// may ask for anything.
func (s *attachment) asksFor(q ipam.Question) bool {
	if s.left {
		return true
	}
	if q.Address.IsValid() {
		return slices.Contains(s.wanted, q.Address)
	}
	return !slices.ContainsFunc(s.wanted, q.CIDR.Contains)
}

// Wanted returns the addresses of a subnet that containers ask for by their configuration, in order. The caller must
// not change it. It returns nil if nobody reads the engine.
func (r *Roster) Wanted(space string, cidr netip.Prefix) []ipam.Want {
	of := segment{space, cidr}
	r.mu.RLock()
	gone := !r.current()
	wants, known := r.wants[of]
	r.mu.RUnlock()
	switch {
	case gone: // nobody reads the engine any more
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

// wantsOf computes Wanted. If several containers ask for one address, those that have run come first, then the first by
// name.
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

// serves reports whether a Docker network may be one of a subnet of a space. A network that names a planned network may
// be in any space; that can only add candidates. A swarm's tasks ask through their manager.
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
