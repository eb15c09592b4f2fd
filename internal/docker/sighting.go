package docker

import (
	"time"

	"berth/internal/ipam"
)

// startTime is how long after its lease an endpoint may not be visible, because it is being created.
const startTime = time.Minute

// sighted is what looks have shown of a lease's endpoint.
type sighted struct {
	lease     uint64
	container string // id of the container that last had it; empty: no container
	name      string // its name then
	mac       ipam.MAC
	seen      bool // some look has shown it
	missed    int  // number of looks in a row since then that did not show it
}

// judge updates the sightings by a comparison with a view, once per view. It reports whether a second look would tell
// more, because an endpoint was missing for the first time.
func (r *Roster) judge(view *ipam.EngineView, c *comparison) (unsure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := view.Taken
	if view == r.looked || r.looked != nil && taken.Before(r.looked.Taken) && !r.looked.Taken.After(r.now()) {
		return false // a later view is known, and the clock was not set back
	}
	r.looked = view
	judged := r.sights(taken, c)
	for i := range c.found {
		f := &c.found[i]
		l := c.held[place{f.Space, f.Address}]
		if f.Kind != ipam.UnusedLease || l == nil {
			continue
		}
		at := place{f.Space, f.Address}
		s := r.leases[at]
		if s.lease != l.ID {
			s = sighted{lease: l.ID}
		}
		if !s.seen && l.Since.After(r.ended) && taken.Sub(l.Since) < startTime {
			continue
		}
		s.missed++
		unsure = unsure || s.missed == 1
		judged[at] = s
	}
	for at, s := range r.leases {
		_, again := judged[at]
		if l := c.held[at]; !again && (l != nil && l.ID == s.lease || l == nil && c.rec.partial != nil) {
			judged[at] = s
		}
	}
	r.leases = judged
	r.tellWatchers()
	return unsure
}

// sights returns the sightings of leases whose address some endpoint has, even if that is another lease's. If lease and
// view are too close in time, the endpoint may be of the previous lease, so it does not count.
func (r *Roster) sights(taken time.Time, c *comparison) map[place]sighted {
	all := make(map[place]sighted, len(c.held))
	for at, sights := range c.seen.at {
		l := c.held[at]
		if l == nil {
			continue
		}
		m := match{l, sights[0]}
		if m.certain(taken) || l.Since.Before(taken) {
			all[at] = sighted{lease: l.ID, container: m.sight.container.ID, name: m.sight.container.Name,
				mac: m.sight.endpoint.MAC, seen: true}
		}
	}
	return all
}

// Endpoint reports whether a lease has an endpoint, and whose. since is when the lease was taken.
func (r *Roster) Endpoint(lease ipam.LeaseRef, since time.Time) (word ipam.Sighting) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.miss()
	s := r.sighted(lease)
	word.Container, word.MAC = s.name, s.mac
	if m := r.containers[s.container]; m != nil && m.Name != "" {
		word.Container = m.Name
	}
	switch {
	case r.other: // what another engine does not show may be there all the same
	case s.missed >= 2:
		word.Sight = ipam.Gone
	case s.seen:
		word.Sight = ipam.Seen
	case since.Before(r.ended):
		word.Sight = ipam.CutOff
	}
	return word
}

// sighted returns what looks have shown of a lease; it is zero if they have shown nothing.
func (r *Roster) sighted(lease ipam.LeaseRef) (s sighted) {
	if last := r.leases[place{lease.Space, lease.Address}]; last.lease == lease.ID {
		s = last
	}
	return s
}

// exists reports whether there is a container with this ipam.RememberedName or this short id.
func (r *Roster) exists(name, id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (r.names[name] > 0 || r.ids[id]) && r.current()
}

// current reports whether somebody still reads the engine.
func (r *Roster) current() bool { return !r.following.IsZero() || r.now().Sub(r.viewed) <= fresh }

// look asks for a look soon.
func (r *Roster) look() { wake(r.asked) }

// count adds to the number of containers with this name.
func (r *Roster) count(name string, more int) {
	if name == "" {
		return
	}
	key := ipam.RememberedName(name)
	if r.names[key] += more; r.names[key] == 0 {
		delete(r.names, key)
	}
}
