package docker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// composeService is a service of a Compose project.
type composeService struct{ project, name string }

// replicas are the numbers of a service. A gap is a number whose container was destroyed while a higher number stayed.
// A container that vanished during a break of the events, or only from a view, leaves no gap.
type replicas struct {
	there map[int]*replica
	gone  map[int]departed
	// the last container of a number that vanished from a view before its end was heard
	missing map[int]*member
}

// replica is a number that has had a container without a break. It has two containers while Compose recreates one.
type replica struct {
	since time.Time
	now   map[string]*member // by id
}

// departed is the last container of a number.
type departed struct {
	name string
	at   time.Time // when it was destroyed
}

// serviceOf returns the service of which a container is a replica. A container from `docker compose run` is none,
// because showContainer leaves out its number.
func serviceOf(m *member) (of composeService, ok bool) {
	return composeService{m.Project, m.Service}, m.Project != "" && m.Service != "" && m.Number > 0
}

// enroll notes that a number has a container.
func (r *Roster) enroll(m *member, at time.Time) {
	of, ok := serviceOf(m)
	if !ok {
		return
	}
	s := r.services[of]
	if s == nil {
		s = &replicas{there: map[int]*replica{}, gone: map[int]departed{}, missing: map[int]*member{}}
		r.services[of] = s
	}
	delete(s.gone, m.Number)
	delete(s.missing, m.Number)
	if s.there[m.Number] == nil {
		s.there[m.Number] = &replica{since: at, now: map[string]*member{}}
	}
	s.there[m.Number].now[m.ID] = m
}

// dismiss notes that a container no longer exists. The zero time means that nobody knows when it was destroyed.
func (r *Roster) dismiss(m *member, destroyed time.Time) {
	of, ok := serviceOf(m)
	s := r.services[of]
	if !ok || s == nil || s.there[m.Number] == nil {
		return
	}
	number := s.there[m.Number]
	if delete(number.now, m.ID); len(number.now) > 0 {
		return
	}
	delete(s.there, m.Number)
	if destroyed.IsZero() {
		s.missing[m.Number] = m
	} else {
		s.gone[m.Number] = departed{m.Name, destroyed}
	}
	r.prune(of)
}

// destroyed notes the end of a container that had vanished from a view before.
func (r *Roster) destroyed(c *ipam.EngineContainer, at time.Time) {
	of, ok := serviceOf(&member{EngineContainer: *c})
	s := r.services[of]
	if !ok || s == nil || s.missing[c.Number] == nil || s.missing[c.Number].ID != c.ID {
		return
	}
	s.gone[c.Number] = departed{s.missing[c.Number].Name, at}
	delete(s.missing, c.Number)
	r.prune(of)
}

// prune forgets the gaps without a higher number that has stayed, and a service without containers.
func (r *Roster) prune(of composeService) {
	s := r.services[of]
	maps.DeleteFunc(s.gone, func(n int, d departed) bool { return len(s.above(n, d.at)) == 0 })
	if len(s.there) == 0 {
		delete(r.services, of)
	}
}

// above returns the higher numbers that had a container at a time and have had one ever since.
func (s *replicas) above(number int, at time.Time) (all []int) {
	for n, one := range s.there {
		if n > number && one.since.Before(at) {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// forgetGaps forgets all gaps, because the events broke off.
func (r *Roster) forgetGaps() {
	for _, s := range r.services {
		clear(s.gone)
		clear(s.missing)
	}
}

// named returns the container of a name, or nil. There are two if the end of one was not heard; then the later one
// counts.
func (r *Roster) named(name string) (found *member) {
	for _, m := range r.byName[name] {
		if found == nil || found.at.Before(m.at) {
			found = m
		}
	}
	return found
}

// container returns the id of the container of a name. live reports whether the roster is complete.
func (r *Roster) container(name string) (id string, live bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if m := r.named(name); m != nil {
		id = m.ID
	}
	return id, r.live()
}

// Containers returns the containers whose id begins with the given digits, by id.
func (r *Roster) Containers(id string) (all []ipam.Container) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, m := range r.containers {
		if m.Name != "" && strings.HasPrefix(m.ID, id) {
			all = append(all, ipam.Container{ID: m.ID, Name: m.Name})
		}
	}
	slices.SortFunc(all, func(a, b ipam.Container) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// replica returns the gaps that a new container of Compose may stand in for. These are lower numbers whose container
// was destroyed before the new one came, and was not replaced.
func (r *Roster) replica(name string) (found ipam.Replica) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.live() || r.now().Sub(r.late) < lateFor || !r.gaps() {
		return found
	}
	m := r.named(name)
	if m == nil {
		return found
	}
	of, ok := serviceOf(m)
	s := r.services[of]
	if !ok || s == nil || s.there[m.Number] == nil {
		return found
	}
	found.ID = m.ID
	for _, one := range s.there {
		found.Replicas = slices.AppendSeq(found.Replicas, maps.Keys(one.now))
	}
	for _, n := range slices.Sorted(maps.Keys(s.gone)) {
		d := s.gone[n]
		if n > m.Number || !s.there[m.Number].since.After(d.at) {
			continue
		}
		v := ipam.RemovedReplica{Name: d.name}
		for _, higher := range s.above(n, d.at) {
			for _, stayed := range s.there[higher].now {
				v.Above = append(v.Above, stayed.Name)
			}
		}
		found.Removed = append(found.Removed, v)
	}
	return found
}

// gaps reports whether any service has a gap. Without one, most requests end here.
func (r *Roster) gaps() bool {
	for _, s := range r.services {
		if len(s.gone) > 0 {
			return true
		}
	}
	return false
}
