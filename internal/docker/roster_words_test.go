package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	"pgregory.net/rapid"
)

// rosterRig is an engine with the true state of its containers, and a roster that hears its news, at once or later
// in another order.
type rosterRig struct {
	t        rapid.TB
	clock    *clock
	roster   *Roster
	networks []ipam.EngineNetwork
	all      []*guest
	number   int
	held     []func() // news held back
	holds    bool
	views    int // number of views taken
	latest   int // number of the last view shown
}

// guest is a container.
type guest struct {
	ipam.EngineContainer
	runs bool
	ran  bool
	on   []*chair
}

// chair is a container's place on a network.
type chair struct {
	network string
	wanted  []netip.Addr
}

func newRosterRig(t rapid.TB) *rosterRig {
	h := &rosterRig{t: t, clock: &clock{now: now}}
	h.roster = NewRoster(h.clock.Now)
	must(t, json.Unmarshal([]byte(`[
		{"id": "front", "subnets": [{"cidr": "10.8.0.0/24"}, {"cidr": "fd00::/64"}]},
		{"id": "back", "subnets": [{"cidr": "10.9.0.0/24"}]},
		{"id": "twin", "subnets": [{"cidr": "10.8.0.0/24"}]},
		{"id": "swarm", "swarm": true, "subnets": [{"cidr": "10.7.0.0/24"}]},
		{"id": "lab", "options": {"space": "lab"}, "subnets": [{"cidr": "10.6.0.0/24"}]},
		{"id": "planned", "options": {"network": "lan"}, "subnets": [{"cidr": "10.5.0.0/24"}]}]`), &h.networks))
	for i := range h.networks {
		h.networks[i].Name, h.networks[i].Driver = h.networks[i].ID, "berth"
	}
	return h
}

// tell sends news to the roster, now or when the held news are released.
func (h *rosterRig) tell(news *ipam.EngineNews) { h.later(func() { h.roster.Hear(news) }) }

func (h *rosterRig) later(do func()) {
	h.clock.wait(time.Millisecond)
	if h.holds {
		h.held = append(h.held, do)
		return
	}
	do()
}

func (h *rosterRig) event(action string, g *guest, network string) {
	h.clock.wait(time.Millisecond)
	e := &ipam.EngineEvent{Action: action, Container: ipam.EngineContainer{ID: g.ID}, Network: network}
	if network == "" {
		e.Container = g.EngineContainer
		e.Container.State = ""
	}
	h.tell(&ipam.EngineNews{At: h.clock.Now(), Event: e})
}

func (h *rosterRig) guest(name string) *guest {
	for _, g := range h.all {
		if g.Name == name {
			return g
		}
	}
	h.t.Fatalf("there is no container %s", name)
	return nil
}

// shown is a container as the engine lists it.
func (g *guest) shown() ipam.EngineContainer {
	c := g.EngineContainer
	switch {
	case g.runs:
		c.State = "running"
	case g.ran:
		c.State = "exited"
	default:
		c.State = "created"
	}
	for _, s := range g.on {
		ep := ipam.EngineEndpoint{Network: s.network, Wanted: s.wanted}
		if g.runs {
			ep.ID = g.ID + s.network
		}
		c.Endpoints = append(c.Endpoints, ep)
	}
	return c
}

func (h *rosterRig) create(name, owner string, on ...*chair) *guest {
	h.number++
	g := &guest{EngineContainer: ipam.EngineContainer{ID: fmt.Sprintf("id%d", h.number), Name: name}, on: on}
	if parts := strings.Split(owner, "/"); len(parts) == 3 {
		g.Project, g.Service = parts[0], parts[1]
		g.Number, _ = strconv.Atoi(parts[2])
	}
	h.all = append(h.all, g)
	h.event(eventCreate, g, "")
	return g
}

func (h *rosterRig) list(g *guest) {
	h.clock.wait(time.Millisecond)
	h.tell(&ipam.EngineNews{At: h.clock.Now(), Listed: []ipam.EngineContainer{g.shown()}})
}

// start connects a container to its networks first, as the engine does.
func (h *rosterRig) start(g *guest) {
	g.runs, g.ran = true, true
	for _, s := range g.on {
		h.event(eventConnect, g, s.network)
	}
	h.event(eventStart, g, "")
}

// end sends the events of a container's end, by itself or by `docker stop`.
func (h *rosterRig) end(g *guest, stopped bool) {
	g.runs = false
	for _, s := range g.on {
		h.event(eventDisconnect, g, s.network)
	}
	h.event(eventDie, g, "")
	if stopped {
		h.event(eventStop, g, "")
	}
}

func (h *rosterRig) rename(g *guest, name string) {
	g.Name = name
	h.event(eventRename, g, "")
}

func (h *rosterRig) destroy(g *guest) {
	h.all = slices.DeleteFunc(h.all, func(other *guest) bool { return other == g })
	h.event(eventDestroy, g, "")
}

// connect connects a container to a network. A stopped container has no event.
func (h *rosterRig) connect(g *guest, s *chair) {
	g.on = append(g.on, s)
	if g.runs {
		h.event(eventConnect, g, s.network)
	}
}

func (h *rosterRig) disconnect(g *guest, network string) {
	g.on = slices.DeleteFunc(g.on, func(s *chair) bool { return s.network == network })
	h.event(eventDisconnect, g, network)
}

// view takes a view and shows it.
func (h *rosterRig) view() {
	h.clock.wait(time.Millisecond)
	h.views++
	view, turn := h.seen(), h.views
	h.later(func() {
		if turn > h.latest { // the witness skips late views
			h.latest = turn
			h.roster.Show(view)
		}
	})
}

func (h *rosterRig) seen() *ipam.EngineView {
	view := &ipam.EngineView{Taken: h.clock.Now(), Networks: slices.Clone(h.networks)}
	for _, g := range h.all {
		view.Containers = append(view.Containers, g.shown())
	}
	return view
}

// release sends the held news in the given order.
func (h *rosterRig) release(order []func()) {
	h.holds, h.held = false, nil
	for _, do := range order {
		do()
	}
}

// step runs one step. Its forms are:
//
//	begin | lose                            the engine's events begin, or break off
//	create NAME [OWNER] NET[=ADDR] ...      the container is listed, too; with "create!" it is not
//	start | stop | die | rm | list NAME
//	rename NAME NEW
//	on NAME NET[=ADDR] | off NAME NET       docker network connect and disconnect
//	view
//	hold | go | go back                     hold news back | send them | send them in reverse order
//	late DURATION                           sets the delay of the next events
//	wait DURATION                           moves the clock; DURATION may be negative
//	guess NET [ADDR] -> NAME                the guess for a request; "-": none, "lost": the engine is not followed
//	soon NET, others NET                    whether the name may be known soon; the containers that share addresses
//	wanted NET ADDR -> NAME                 the container that asks for an address; "NAME new": it has never run
func (h *rosterRig) step(words []string) string {
	chairOf := func(word string) *chair {
		network, wanted, is := strings.Cut(word, "=")
		s := &chair{network: network}
		if is {
			s.wanted = []netip.Addr{addr(wanted)}
		}
		return s
	}
	switch verb := words[0]; verb {
	case "begin":
		h.tell(&ipam.EngineNews{At: h.clock.Now(), Begins: true})
	case "lose":
		h.roster.lose()
	case "create", "create!":
		owner, rest := "", words[2:]
		if len(rest) > 0 && strings.Contains(rest[0], "/") {
			owner, rest = rest[0], rest[1:]
		}
		var on []*chair
		for _, word := range rest {
			on = append(on, chairOf(word))
		}
		if g := h.create(words[1], owner, on...); verb == "create" {
			h.list(g)
		}
	case "start":
		h.start(h.guest(words[1]))
	case "stop", "die":
		h.end(h.guest(words[1]), verb == "stop")
	case "rm":
		h.destroy(h.guest(words[1]))
	case "list":
		h.list(h.guest(words[1]))
	case "rename":
		h.rename(h.guest(words[1]), words[2])
	case "on":
		h.connect(h.guest(words[1]), chairOf(words[2]))
	case "off":
		h.disconnect(h.guest(words[1]), words[2])
	case "view":
		h.view()
	case "hold":
		h.holds = true
	case "go":
		if len(words) > 1 {
			slices.Reverse(h.held)
		}
		h.release(h.held)
	case "late", "wait":
		d, err := time.ParseDuration(words[1])
		must(h.t, err)
		if verb == "wait" {
			h.clock.wait(d)
		} else {
			h.tell(&ipam.EngineNews{At: h.clock.Now(), Late: d,
				Event: &ipam.EngineEvent{Action: eventStart, Container: ipam.EngineContainer{ID: "x"}}})
			h.tell(&ipam.EngineNews{At: h.clock.Now(), Late: d,
				Event: &ipam.EngineEvent{Action: eventDestroy, Container: ipam.EngineContainer{ID: "x"}}})
		}
	case "guess", "soon", "others":
		q := h.question(words[1:])
		if verb == "others" {
			return strings.Join(h.roster.ask(context.Background(), q).Others, " ")
		}
		hint := h.roster.guess(q)
		if verb == "soon" && (!hint.Soon || hint.Name == "" && hint.Live) {
			return strconv.FormatBool(hint.Soon)
		}
		return h.guess(hint)
	case "wanted":
		for _, n := range h.networks {
			if n.ID == words[1] {
				return wantedBy(h.roster, spaceOf(&n), n.Subnets[0].CIDR, addr(words[2]))
			}
		}
	default:
		h.t.Fatalf("there is no step %q", words)
	}
	return ""
}

func spaceOf(n *ipam.EngineNetwork) string {
	if space := n.Options["space"]; space != "" {
		return space
	}
	return "local"
}

// question is a request on a network, for any address or for one.
func (h *rosterRig) question(words []string) (q ipam.Question) {
	q.Space = "local"
	for _, n := range h.networks {
		if n.ID == words[0] {
			q.Space, q.CIDR = spaceOf(&n), n.Subnets[0].CIDR
		}
	}
	if len(words) > 1 {
		q.Address = addr(words[1])
		for _, n := range h.networks {
			for _, sub := range n.Subnets {
				if n.ID == words[0] && sub.CIDR.Contains(q.Address) {
					q.CIDR = sub.CIDR
				}
			}
		}
	}
	return q
}

func (h *rosterRig) guess(hint ipam.Hint) string {
	switch {
	case hint.Name != "" && hint.Live:
		return hint.Name
	case hint.Live:
		return "-"
	case hint.Name == "" && !hint.Soon:
		return "lost"
	}
	return fmt.Sprintf("%+v", hint)
}

func (h *rosterRig) run(script string) {
	if t, ok := h.t.(*testing.T); ok {
		t.Helper()
	}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, want, asked := strings.Cut(line+" ", " -> ")
		if got := h.step(strings.Fields(step)); asked && got != strings.TrimSpace(want) {
			h.t.Fatalf("%s\n\tgot %q", line, got)
		}
	}
}

// leaks lists what a roster keeps of removed containers.
func (h *rosterRig) leaks() (all []string) {
	r := h.roster
	for what, n := range map[string]int{"containers": len(r.containers), "gone": len(r.gone), "idle": len(r.idle),
		"strange": len(r.strange), "lately": len(r.lately), "wanted": len(r.wanted), "names": len(r.byName)} {
		if n > 0 {
			all = append(all, fmt.Sprintf("%s: %d", what, n))
		}
	}
	return all
}

// wantedBy returns the container that asks for an address, or "".
func wantedBy(r *Roster, space string, cidr netip.Prefix, addr netip.Addr) string {
	for _, w := range r.Wanted(space, cidr) {
		if w.Address == addr {
			if w.New {
				return w.Container + " new"
			}
			return w.Container
		}
	}
	return ""
}
