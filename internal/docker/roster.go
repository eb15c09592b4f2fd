package docker

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// Roster knows the containers on this Berth's networks, and which of them hold no address there. Views of an engine and
// its events update it, in any order. The later of two statements about one thing counts. Requests ask it (ipam.Known),
// and it answers from memory. Its methods are safe for concurrent use.
type Roster struct {
	now func() time.Time

	mu         sync.RWMutex
	following  time.Time // since when events come without a break; zero: they do not come
	lost       time.Time // when they last broke off, or when the daemon started
	viewed     time.Time // when the last view was taken
	late       time.Time // last late event without an event on time after it; zero: none
	networked  time.Time // when the networks were last listed
	networks   []*ipam.EngineNetwork
	subnets    map[netip.Prefix][]*ipam.EngineNetwork // the networks by subnet
	bridges    []ipam.EngineNetwork
	containers map[string]*member
	gone       map[string]time.Time            // destroyed containers that an older view may still show
	idle       map[string][]*member            // containers without an address on a network, by its id, in no order
	lately     []*member                       // containers created or ended in the last seconds, and maybe older ones
	strange    map[string]*member              // containers whose networks are not known yet
	wanted     map[string]map[netip.Addr]claim // addresses that containers ask for, by the network's id
	services   map[composeService]*replicas    // of Compose (replicas.go)

	wants  map[segment][]ipam.Want // cached answers of Wanted; none is ever changed
	names  map[string]int          // number of containers by ipam.RememberedName
	byName map[string][]*member    // containers of a name: several if an end or a renaming was not heard
	ids    map[string]bool         // short ids of all containers

	running running  // who has which address, as last seen
	before  lastSeen // what an earlier daemon saw
	other   bool     // the engine is not the one of the records, so its word ends nothing
	first   firstView

	leases map[place]sighted // what looks have shown of their endpoints
	looked *ipam.EngineView  // the view of the last look; nil: none
	ended  time.Time         // when the engine was last heard to end; zero: never
	asked  chan struct{}     // a look is wanted
	missed chan struct{}     // the engine was used while its events do not come

	watchers map[chan struct{}]bool // channels of Watch

	askLocks func(context.Context, ipam.Question) ipam.Locked // nil: the engine cannot be asked
	together map[starter]together
	homes    map[string][]netip.Addr // addresses of containers that are being put back, by name

	questions questions
	naming    bool      // the engine has sent a container's name with a request
	boots     bool      // the engine was seen starting, and its events have not come since
	booted    time.Time // when its events began after such a start; zero: never
}

// claim holds the containers that ask for an address, by id.
type claim map[string]*member

// member is a container.
type member struct {
	ipam.EngineContainer // without the endpoints

	at         time.Time // of the latest name and state
	listed     time.Time // when its networks were last listed; zero: never
	lastChange time.Time // when it was last created, or ended
	turned     time.Time // when it was last created, started, or ended; zero: unknown
	runs       bool      // that was a start
	fresh      bool      // that was its creation
	ran        bool      // it was started at least once
	on         map[string]*attachment
}

// attachment is a container's place on a network.
type attachment struct {
	at     time.Time // of the latest statement
	holds  bool      // it has an address there
	idle   int       // its position among the network's idle ones, from 1; 0: it is not idle
	left   bool      // it was disconnected before its first start, and may be connected again without an event
	wanted []netip.Addr
}

// NewRoster returns an empty Roster.
func NewRoster(now func() time.Time) *Roster {
	if now == nil {
		now = time.Now
	}
	r := &Roster{now: now, lost: now(), asked: make(chan struct{}, 1), missed: make(chan struct{}, 1),
		watchers: map[chan struct{}]bool{}, together: map[starter]together{},
		homes: map[string][]netip.Addr{}}
	r.clear()
	return r
}

// askWith sets the function that asks the engine about requests without a name. With nil they are guessed.
func (r *Roster) askWith(ask func(context.Context, ipam.Question) ipam.Locked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.askLocks = ask
}

func (r *Roster) clear() {
	r.late, r.networked = time.Time{}, time.Time{}
	r.networks, r.containers = nil, map[string]*member{}
	r.subnets = map[netip.Prefix][]*ipam.EngineNetwork{}
	r.gone, r.strange = map[string]time.Time{}, map[string]*member{}
	r.lately, r.wants = nil, map[segment][]ipam.Want{}
	r.names, r.byName, r.ids = map[string]int{}, map[string][]*member{}, map[string]bool{}
	r.idle, r.wanted = map[string][]*member{}, map[string]map[netip.Addr]claim{}
	r.services = map[composeService]*replicas{}
	r.running = running{}
}

// lose notes that the events broke off. The last view stays, because an engine that is away starts nothing.
func (r *Roster) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.following.IsZero() {
		r.lost = r.now()
	}
	r.following = time.Time{}
	r.forgetGaps()
	r.first.end() // an engine that cannot be followed is not waited for
}

// miss notes that the engine is there although its events do not come, so the follower need not wait.
func (r *Roster) miss() {
	if r.following.IsZero() {
		wake(r.missed)
	}
}

// Show applies a view. Its time is the beginning of the reading.
func (r *Roster) Show(view *ipam.EngineView) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if view.Taken.Before(r.viewed) { // the clock was set back, so times cannot be compared
		r.clear()
		if !r.following.IsZero() && r.following.After(view.Taken) {
			r.following = view.Taken
		}
	}
	_, before := r.lastRunning()
	r.viewed = view.Taken
	r.tellWatchers()
	r.miss()
	r.setNetworks(view.Networks, view.Bridges, view.Taken)
	there := make(map[string]bool, len(view.Containers))
	for i := range view.Containers {
		if c := &view.Containers[i]; c.ID != "" {
			there[c.ID] = true
			r.list(c, view.Taken, true)
		}
	}
	for id, m := range r.containers {
		if !there[id] && m.at.Before(view.Taken) {
			r.remove(m, time.Time{})
		}
	}
	for id, at := range r.gone {
		if at.Before(view.Taken) {
			delete(r.gone, id)
		}
	}
	r.setRunning(view, before)
	r.first.end()
}

// NoteNames notes that the engine has sent a container's name with a request.
func (r *Roster) NoteNames() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.naming = true
}

func (r *Roster) sendsNames() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.naming
}

// showOnce applies a view that came with one request, unless there is a later one. A later one from far in the future
// is from before the clock was set back.
func (r *Roster) showOnce(view *ipam.EngineView) {
	r.mu.RLock()
	later := !view.Taken.After(r.viewed) && r.viewed.Sub(r.now()) <= fresh
	r.mu.RUnlock()
	if !later {
		r.Show(view)
	}
}

// Hear applies news of the engine.
func (r *Roster) Hear(news *ipam.EngineNews) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case news.Late > lateness:
		r.late = r.now()
	case news.Event != nil: // events come in order: no earlier one is still on its way
		r.late = time.Time{}
	}
	if news.Ends {
		r.ended = news.At
	}
	if news.Begins { // the next view shows what happened before, and until then nothing is guessed
		r.following = news.At
		if r.boots {
			r.boots, r.booted = false, news.At
		}
	}
	if news.Networks != nil {
		r.setNetworks(news.Networks.Networks, news.Networks.Bridges, news.At)
	}
	for i := range news.Listed {
		r.list(&news.Listed[i], news.At, false)
	}
	if news.Event != nil {
		r.happen(news.Event, news.At)
	}
	r.tellWatchers()
}

// setNetworks replaces the networks by a list from a time. The containers on them stay.
func (r *Roster) setNetworks(networks, bridges []ipam.EngineNetwork, at time.Time) {
	if r.networked.After(at) {
		return
	}
	r.networked = at
	r.networks = r.networks[:0]
	clear(r.subnets)
	for i := range networks {
		r.networks = append(r.networks, &networks[i])
		for _, sub := range networks[i].Subnets {
			r.subnets[sub.CIDR] = append(r.subnets[sub.CIDR], &networks[i])
		}
	}
	r.bridges = bridges
	clear(r.wants)
}

// happen applies one event.
func (r *Roster) happen(e *ipam.EngineEvent, at time.Time) {
	id := e.Container.ID
	if id == "" {
		return
	}
	if e.Action == eventDestroy {
		r.gone[id] = at
		if m := r.containers[id]; m != nil {
			for network := range m.on {
				r.stopped(network, id, at)
			}
			r.remove(m, at)
		} else {
			r.destroyed(&e.Container, at)
		}
		return
	}
	m := r.member(id, at)
	if m == nil {
		return
	}
	if e.Container.Name != "" && !m.at.After(at) {
		m.at = at
		r.name(m, e.Container.Name)
		if e.Container.Project != "" {
			m.Project, m.Service, m.Number = e.Container.Project, e.Container.Service, e.Container.Number
			r.enroll(m, at)
		}
	}
	switch e.Action {
	case eventCreate, eventStart, eventDie, eventStop:
		r.turn(m, e.Action, at)
	case eventConnect:
		r.put(m, e.Network, at, true)
	case eventDisconnect:
		if r.put(m, e.Network, at, false) {
			r.stopped(e.Network, id, at)
			m.on[e.Network].left = m.fresh // Compose before v2 does this to set other aliases
		}
	}
}

// turn notes that a container was created, started, or ended, and updates its places.
func (r *Roster) turn(m *member, action string, at time.Time) {
	if action != eventStart && !m.lastChange.After(at) {
		m.lastChange = at
		r.noteChange(m)
	}
	if action == eventStart {
		r.ran(m)
	}
	if m.turned.After(at) {
		return
	}
	m.turned, m.runs, m.fresh = at, action == eventStart, action == eventCreate
	if action == eventCreate {
		return
	}
	for network := range m.on {
		if r.put(m, network, at, m.runs) && !m.runs {
			r.stopped(network, m.ID, at)
		}
	}
}

// ran notes that a container has been started. That never changes back.
func (r *Roster) ran(m *member) {
	if m.ran {
		return
	}
	m.ran = true
	for _, s := range m.on {
		r.forgetWants(s)
	}
}

// noteChange notes that a container was created or ended, and drops those that did so long ago.
func (r *Roster) noteChange(m *member) {
	r.lately = slices.DeleteFunc(r.lately,
		func(other *member) bool { return other == m || m.lastChange.Sub(other.lastChange) > recently })
	r.lately = append(r.lately, m)
}

// member returns the container of an id, and adds it if it is new. It returns nil for a destroyed one, about which
// older news may still come.
func (r *Roster) member(id string, at time.Time) *member {
	if m := r.containers[id]; m != nil {
		return m
	}
	if _, gone := r.gone[id]; gone || at.Before(r.viewed) {
		return nil
	}
	m := &member{EngineContainer: ipam.EngineContainer{ID: id}, at: at, on: map[string]*attachment{}}
	r.containers[id], r.strange[id], r.ids[ipam.ShortContainer(id)] = m, m, true
	return m
}

// list applies the engine's list entry of a container. Only a whole view shows the endpoints of a starting container; a
// list alone does not.
func (r *Roster) list(c *ipam.EngineContainer, at time.Time, whole bool) {
	m := r.member(c.ID, at)
	if m == nil || m.listed.After(at) {
		return
	}
	if !m.at.After(at) {
		r.name(m, c.Name)
		m.EngineContainer, m.at = *c, at
		m.Endpoints = nil
		r.enroll(m, at)
	}
	if hasRun(c.State) {
		r.ran(m)
	}
	m.listed = at
	delete(r.strange, c.ID)
	listed := make(map[string]bool, len(c.Endpoints))
	for i := range c.Endpoints {
		ep := &c.Endpoints[i]
		listed[ep.Network] = true
		switch _, known := m.on[ep.Network]; {
		case !known && m.turned.After(at):
			r.put(m, ep.Network, m.turned, m.runs)
		case !known || whole || ep.ID != "":
			r.put(m, ep.Network, at, ep.ID != "")
		}
		if s := m.on[ep.Network]; !s.at.After(at) {
			s.left = false
		}
		r.want(m, ep.Network, ep.Wanted)
	}
	for network, s := range m.on {
		if again := s.left && at.Sub(s.at) < recently; !listed[network] && !s.at.After(at) && !again {
			r.leave(m, network)
		}
	}
}

// put records whether a container has an address on a network, unless a later statement is known. It reports whether it
// did.
func (r *Roster) put(m *member, network string, at time.Time, holds bool) (done bool) {
	s := m.on[network]
	if s == nil {
		s = &attachment{}
		m.on[network] = s
	}
	if s.at.After(at) {
		return false
	}
	s.at, s.holds, s.left = at, holds, false
	switch {
	case holds:
		r.busy(s, network)
	case s.idle == 0:
		r.idle[network] = append(r.idle[network], m)
		s.idle = len(r.idle[network])
	}
	return true
}

// busy removes a container from those without an address on a network.
func (r *Roster) busy(s *attachment, network string) {
	if s.idle == 0 {
		return
	}
	all := r.idle[network]
	last := len(all) - 1
	all[s.idle-1], all[last].on[network].idle = all[last], s.idle
	all[last], s.idle = nil, 0
	if r.idle[network] = all[:last]; last == 0 {
		delete(r.idle, network)
	}
}

// want records the addresses that a container asks for on a network.
func (r *Roster) want(m *member, network string, wanted []netip.Addr) {
	s := m.on[network]
	if s == nil || slices.Equal(s.wanted, wanted) {
		return
	}
	r.unclaim(m, network, s)
	s.wanted = wanted
	r.claim(m, network, s)
}

func (r *Roster) claim(m *member, network string, s *attachment) {
	r.forgetWants(s)
	for _, addr := range s.wanted {
		if r.wanted[network] == nil {
			r.wanted[network] = map[netip.Addr]claim{}
		}
		if r.wanted[network][addr] == nil {
			r.wanted[network][addr] = claim{}
		}
		r.wanted[network][addr][m.ID] = m
	}
}

func (r *Roster) unclaim(m *member, network string, s *attachment) {
	r.forgetWants(s)
	for _, addr := range s.wanted {
		if delete(r.wanted[network][addr], m.ID); len(r.wanted[network][addr]) == 0 {
			delete(r.wanted[network], addr)
		}
	}
	if len(r.wanted[network]) == 0 {
		delete(r.wanted, network)
	}
}

// forgetWants drops the cached answers of Wanted if they depend on this place.
func (r *Roster) forgetWants(s *attachment) {
	if len(s.wanted) > 0 {
		clear(r.wants)
	}
}

// name records a container's name.
func (r *Roster) name(m *member, name string) {
	if m.Name == name {
		return
	}
	r.unname(m)
	r.count(name, 1)
	r.byName[name] = append(r.byName[name], m)
	m.Name = name
	for _, s := range m.on {
		r.forgetWants(s)
	}
}

func (r *Roster) unname(m *member) {
	r.count(m.Name, -1)
	left := slices.DeleteFunc(r.byName[m.Name], func(other *member) bool { return other == m })
	if r.byName[m.Name] = left; len(left) == 0 {
		delete(r.byName, m.Name)
	}
}

// leave removes a container from a network.
func (r *Roster) leave(m *member, network string) {
	s := m.on[network]
	r.unclaim(m, network, s)
	r.busy(s, network)
	delete(m.on, network)
}

// remove removes a container. The zero time means that its end was not heard.
func (r *Roster) remove(m *member, destroyed time.Time) {
	r.dismiss(m, destroyed)
	r.unname(m)
	for network := range m.on {
		r.leave(m, network)
	}
	delete(r.containers, m.ID)
	delete(r.ids, ipam.ShortContainer(m.ID))
	delete(r.strange, m.ID)
	r.lately = slices.DeleteFunc(r.lately, func(other *member) bool { return other == m })
}

// startedAt returns when a container last started, as heard, or when the engine that started it answered; zero means
// unknown. settled is false while the container or the engine is starting. A view of a starting engine may come before
// its events do.
func (r *Roster) startedAt(id string) (at time.Time, settled bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	switch m := r.containers[id]; {
	case m == nil, r.boots:
		return time.Time{}, false
	case m.turned.Before(r.booted) || m.turned.IsZero(): // the engine has started it since
		return r.booted, true
	default:
		return m.turned, m.runs
	}
}
