package docker

import (
	"time"

	"berth/internal/ipam"
)

// startTime is for how long an endpoint may not be seen after it was given its address, because it is being made.
const startTime = time.Minute

// sighted is what looks have shown of the endpoint of a lease.
type sighted struct {
	lease     uint64
	container string // that has it or had it last, by id; empty: none that has one
	name      string // as it was then
	mac       ipam.MAC
	seen      bool // some look has shown it
	missed    int  // by how many looks, one after the other, it was not shown since
}

// judge takes in which leases have an endpoint, by a comparison with a view, which counts once. It tells whether a
// second look would show more: that of a lease which has none now.
func (r *Roster) judge(view *ipam.EngineView, c *comparison) (unsure bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := view.Taken
	if view == r.looked || r.looked != nil && taken.Before(r.looked.Taken) && !r.looked.Taken.After(r.now()) {
		return false // later ones are known, unless the clock was set back
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

// sights are the leases of addresses that endpoints have, whether it is the lease's own or another one. Of a lease that
// is younger than the view it is not sure that it is not the one before which is seen.
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

// Endpoint tells whether a lease, which was taken at a time, has an endpoint, and whose.
func (r *Roster) Endpoint(lease ipam.LeaseRef, since time.Time) (word ipam.Sighting) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.miss()
	s := r.leases[place{lease.Space, lease.Address}]
	if s.lease != lease.ID {
		s = sighted{}
	}
	word.Container, word.MAC = s.name, s.mac
	if m := r.containers[s.container]; m != nil && m.Name != "" {
		word.Container = m.Name
	}
	switch {
	case s.missed >= 2:
		word.Sight = ipam.Gone
	case s.seen:
		word.Sight = ipam.Seen
	case since.Before(r.ended):
		word.Sight = ipam.CutOff
	}
	return word
}

// exists tells whether there is a container that ipam.NameKey calls so, or that has a short id.
func (r *Roster) exists(name, id string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return (r.names[name] > 0 || r.ids[id]) && r.current()
}

// current tells whether somebody looks still.
func (r *Roster) current() bool { return !r.following.IsZero() || r.now().Sub(r.viewed) <= fresh }

// look has whoever reads the engine do so soon.
func (r *Roster) look() { wake(r.asked) }

// count notes that more or fewer containers are called so.
func (r *Roster) count(name string, more int) {
	if name == "" {
		return
	}
	key := ipam.NameKey(name)
	if r.names[key] += more; r.names[key] == 0 {
		delete(r.names, key)
	}
}
