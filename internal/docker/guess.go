package docker

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
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
	return ipam.Known{Ask: r.Ask, Wanted: r.Wanted, Container: r.Container, Containers: r.Containers,
		Newcomer: r.Newcomer, Endpoint: r.Endpoint, Exists: r.Exists, Publishes: r.Publishes,
		NetworkDriver: r.NetworkDriver,
		DockerNetwork: r.DockerNetwork,
		Holder:        r.Holder, Watch: r.Watch, Look: r.Look}
}

// Bridges are the engine's bridge networks with addresses that are not of this Berth, and whether these are all.
func (r *Roster) Bridges() (networks []ipam.EngineNetwork, live bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.bridges, r.live()
}

// live tells whether all that happens is known.
func (r *Roster) live() bool { return !r.following.IsZero() && !r.viewed.Before(r.following) }

// Ask tells from whom a request without a name is. The engine's locks say it, where they can be asked; else it is
// guessed (Guess). What address is asked for by name needs no question.
func (r *Roster) Ask(ctx context.Context, q ipam.Question) ipam.Hint {
	r.mu.RLock()
	ask, gone := r.askLocks, r.following.IsZero() && r.now().Sub(r.lost) < awayFor
	r.mu.RUnlock()
	switch {
	case q.Address.IsValid():
		return r.Guess(q)
	case ask == nil && gone: // `berth witness` is told by the engine what happens again when that has started
		return ipam.Hint{Boots: true}
	case ask == nil:
		return r.Guess(q)
	}
	locked := ask(ctx, q)
	r.questions.count(&locked)
	switch {
	case locked.Boots:
		r.boots.Store(true)
		return ipam.Hint{Boots: true}
	case !locked.Told:
		return r.Guess(q)
	case len(locked.Silent)+len(locked.Elsewhere) == 1:
		name := append(locked.Silent, locked.Elsewhere...)[0]
		return ipam.Hint{Live: true, Name: name, Others: r.startingWith(q, name), Home: r.expected(name)}
	default:
		return ipam.Hint{Live: true, Others: r.startTogether(q, locked.Silent)}
	}
}

// Expect has a container of a name that asks be given the addresses that it is put back to, until end is called.
func (r *Roster) Expect(name string, homes []netip.Addr) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.homes[name] = homes
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.homes, name)
	}
}

func (r *Roster) expected(name string) []netip.Addr {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.homes[name]
}

// awayFor is for how long after its events broke off an engine that asks for addresses is taken for one that starts.
const awayFor = 2 * time.Minute

// StartedAt is when a container was last heard to start, or the engine to have started it at its own start; zero: it
// was so long ago. Settled is false while it is being started.
func (r *Roster) StartedAt(id string) (at time.Time, settled bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch m := r.containers[id]; {
	case m == nil:
		return time.Time{}, false
	case m.turned.IsZero():
		return r.booted, true
	default:
		return m.turned, m.runs
	}
}

// questions counts what came of the questions to the engine.
type questions struct{ one, several, none, late, boots atomic.Uint64 }

func (n *questions) count(l *ipam.Locked) {
	switch {
	case l.Boots:
		n.boots.Add(1)
	case !l.Told:
		n.late.Add(1)
	case len(l.Silent)+len(l.Elsewhere) == 0:
		n.none.Add(1)
	case len(l.Silent)+len(l.Elsewhere) == 1:
		n.one.Add(1)
	default:
		n.several.Add(1)
	}
}

// Questions is what came of the questions to the engine since the start.
func (r *Roster) Questions() ipam.QuestionCounts {
	n := &r.questions
	return ipam.QuestionCounts{One: n.one.Load(), Several: n.several.Load(), None: n.none.Load(), Late: n.late.Load(),
		Boots: n.boots.Load()}
}

// togetherFor is for how long those count as starting together who were locked at once.
const togetherFor = 10 * time.Second

// starter is a container, by its name, in a subnet.
type starter struct {
	name string
	cidr netip.Prefix
}

// together is with whom one was started.
type together struct {
	at     time.Time
	others []string
}

// startTogether notes that containers are started at once, and returns all who are, in the order that is given.
func (r *Roster) startTogether(q ipam.Question, names []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.together, func(_ starter, t together) bool { return now.Sub(t.at) > togetherFor })
	all := slices.Clone(names)
	for _, name := range names {
		for _, other := range r.together[starter{name, q.CIDR}].others {
			if !slices.Contains(all, other) {
				all = append(all, other)
			}
		}
	}
	for _, name := range all {
		r.together[starter{name, q.CIDR}] = together{now, all}
	}
	return all
}

// startingWith is who was started together with a container a moment ago.
func (r *Roster) startingWith(q ipam.Question, name string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if t := r.together[starter{name, q.CIDR}]; r.now().Sub(t.at) <= togetherFor {
		return t.others
	}
	return nil
}

// Guess tells from whom a request without a name must be: the only container that is on the network and holds nothing
// there, or of several the one that was created or ended in the last moments, where no other was. One that asks for
// an address by its own configuration asks for no other. The replicas that Compose exchanges for one another are one.
func (r *Roster) Guess(q ipam.Question) ipam.Hint {
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
