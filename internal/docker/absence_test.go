package docker

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// away is an engine on which things happen while Berth is away, and the Berth that comes back. It keeps its own list of
// what runs.
type away struct {
	*harness
	t      *testing.T
	store  *mem.Store
	dir    string // of what Berth keeps beside its state
	names  bool   // the engine sends names, as from 29 on; otherwise its lock shows who asks
	roster *Roster
	w      *Witness
	up     bool // Berth is there
	all    []*box
	made   int
	asks   string               // the container whose lock the engine holds now
	taken  map[*box]netip.Addr  // what each had last
	shown  map[string]time.Time // when each Docker network was made
}

// box is a container on the network front.
type box struct {
	id, name string
	wants    netip.Addr // --ip; zero: none
	has      netip.Addr // zero: it does not run
	state    string
	lease    string // the name under which it had its last lease; empty: it had none
	stranger bool   // neither its id nor its name is in the records, so it waits like anybody else
}

func newAway(t *testing.T, names bool) *away {
	a := &away{t: t, store: mem.New(), dir: t.TempDir(), names: names, taken: map[*box]netip.Addr{}, shown: map[string]time.Time{}}
	a.back()
	a.answers()
	a.network("front", "10.8.0.0/24")
	a.shown["front"] = a.clock.Now().Add(-time.Millisecond)
	a.pass(time.Minute)
	return a
}

// back starts a daemon over the state.
func (a *away) back() {
	a.t.Helper()
	if a.harness == nil {
		a.harness = &harness{t: a.t, clock: &clock{now: now}, pools: map[string]ipam.ID{},
			view: ipam.EngineView{Host: "h1", Networks: []ipam.EngineNetwork{}}}
	}
	var roster *Roster
	known := ipam.Known{
		Ask:       func(ctx context.Context, q ipam.Question) ipam.Hint { return roster.ask(ctx, q) },
		Container: func(name string) (string, bool) { return roster.container(name) },
		Exists:    func(name, id string) bool { return roster.exists(name, id) },
		Endpoint:  func(l ipam.LeaseRef, since time.Time) ipam.Sighting { return roster.Endpoint(l, since) },
		Wanted:    func(space string, cidr netip.Prefix) []ipam.Want { return roster.Wanted(space, cidr) },
		Returns: func(space string, cidr netip.Prefix, l *ipam.Lease, name string) bool {
			return roster.returns(space, cidr, l, name)
		},
		Runs: func(space string, cidr netip.Prefix, at netip.Addr) []ipam.Container {
			return roster.runs(space, cidr, at)
		},
		Left: func(space string, cidr netip.Prefix, at netip.Addr) []ipam.Container {
			return roster.left(space, cidr, at)
		},
		Unnetworked: func(space string, cidr netip.Prefix, created time.Time) bool {
			return roster.unnetworked(space, cidr, created)
		},
	}
	service, err := service.Open(a.t.Context(),
		service.Config{Store: a.store, Host: "h1", Now: a.clock.Now, Known: known})
	must(a.t, err)
	a.service = service
	roster = NewRoster(a.clock.Now)
	a.roster = roster
	roster.askWith(func(context.Context, ipam.Question) ipam.Locked {
		return ipam.Locked{Told: true, Silent: []string{a.asks}}
	})
	a.w = a.witness(nil, func(cfg *Config) {
		cfg.Roster, cfg.Seen, cfg.Boot = roster, filepath.Join(a.dir, "running.json"), "boot"
	})
	a.up = true
}

// answers makes the engine answer for the first time. The daemon reads it twice, as its first check does.
func (a *away) answers() {
	a.t.Helper()
	a.roster.Hear(&ipam.EngineNews{At: a.clock.Now(), Begins: true})
	a.look()
	a.look()
}

// leave ends the daemon.
func (a *away) leave() { a.up = false }

// pass lets time pass. If Berth is there, it looks twice meanwhile.
func (a *away) pass(d time.Duration) {
	a.t.Helper()
	a.clock.wait(d)
	if a.up {
		a.look()
		a.look()
	}
}

// look shows the witness the engine.
func (a *away) look() {
	a.t.Helper()
	a.clock.wait(time.Millisecond)
	must(a.t, a.w.Show(a.t.Context(), a.engineView()))
	a.clock.wait(time.Millisecond)
}

func (a *away) engineView() ipam.EngineView {
	view := a.harness.taken()
	view.Engine, view.Root = "engine", "root"
	view.Networks = slices.Clone(view.Networks)
	for i := range view.Networks {
		view.Networks[i].Created = a.shown[view.Networks[i].Name]
	}
	view.Containers = nil
	for _, b := range a.all {
		one := ipam.EngineContainer{ID: b.id, Name: b.name, State: b.state}
		ep := ipam.EngineEndpoint{Network: "id-front"}
		if b.wants.IsValid() {
			ep.Wanted = []netip.Addr{b.wants}
		}
		if b.has.IsValid() {
			ep.ID, ep.Addresses = "e-"+b.id, []netip.Addr{b.has}
		}
		one.Endpoints = []ipam.EngineEndpoint{ep}
		view.Containers = append(view.Containers, one)
	}
	return view
}

// hear tells Berth of an event, if it is there.
func (a *away) hear(action string, b *box) {
	a.clock.wait(time.Millisecond)
	if a.up {
		e := &ipam.EngineEvent{Action: action, Container: ipam.EngineContainer{ID: b.id, Name: b.name}}
		if action == eventDisconnect || action == eventConnect {
			e = &ipam.EngineEvent{Action: action, Network: "id-front", Container: ipam.EngineContainer{ID: b.id}}
		}
		a.roster.Hear(&ipam.EngineNews{At: a.clock.Now(), Event: e})
	}
}

// create makes a container without starting it.
func (a *away) create(name string, wants netip.Addr) *box {
	a.made++
	b := &box{id: fmt.Sprintf("%012d", a.made), name: name, wants: wants, state: "created"}
	a.all = append(a.all, b)
	a.hear(eventCreate, b)
	if a.up {
		a.roster.Hear(&ipam.EngineNews{At: a.clock.Now(), Listed: a.engineView().Containers})
	}
	return b
}

// start starts a container. Without Berth its start fails.
func (a *away) start(b *box) error {
	if !a.up {
		return nil
	}
	req := ipam.AddressRequest{Pool: a.pools["front"], Preferred: b.wants}
	if a.asks = b.name; a.names {
		req.Name, req.Telling = b.name, true
	}
	got, err := a.service.RequestAddress(a.t.Context(), req)
	if err != nil {
		return err
	}
	b.has, b.state, b.lease = got.Addr(), "running", b.name
	a.hear(eventConnect, b)
	a.hear(eventStart, b)
	return nil
}

// end ends a container. The engine shows its endpoint a moment longer than it has the address. Docker gives up to
// release that if Berth is away.
func (a *away) end(b *box) {
	had := b.has
	if a.up && had.IsValid() {
		a.release("front", had)
		a.look()
		a.look()
	}
	b.has, b.state = netip.Addr{}, "exited"
	if !had.IsValid() {
		return
	}
	a.taken[b] = had
	a.hear(eventDie, b)
	a.hear(eventDisconnect, b)
}

func (a *away) remove(b *box) {
	a.end(b)
	a.all = slices.DeleteFunc(a.all, func(other *box) bool { return other == b })
	a.hear(eventDestroy, b)
}

func (a *away) rename(b *box) *box {
	b.name += "-old"
	b.stranger = b.stranger || b.lease == ""
	a.hear(eventRename, b)
	return b
}

// happenings are what can happen to a container while Berth is away. Each returns the container that goes on, which is
// wanted to have the same address afterwards; nil: there is none.
var happenings = []struct {
	name string
	do   func(*away, *box) *box
}{
	{"nothing", func(_ *away, b *box) *box { return b }},
	{"stop", func(a *away, b *box) *box { a.end(b); return b }},
	{"start, which fails", func(a *away, b *box) *box { a.end(b); _ = a.start(b); return b }},
	{"pause", func(_ *away, b *box) *box {
		if b.has.IsValid() {
			b.state = "paused"
		}
		return b
	}},
	{"restart for ever", func(a *away, b *box) *box { a.end(b); b.state = "restarting"; return b }},
	{"remove", func(a *away, b *box) *box { a.remove(b); return nil }},
	{"rename", (*away).rename},
	{"recreate", func(a *away, b *box) *box { // as Compose and updaters do
		a.remove(b)
		next := a.create(b.name, b.wants)
		next.stranger = b.stranger || b.lease != "" && b.lease != b.name
		a.taken[next] = a.taken[b]
		return next
	}},
	{"rename, and another takes the name", func(a *away, b *box) *box {
		old := b.name
		a.rename(b)
		a.create(old, netip.Addr{})
		return b
	}},
}

// TestAbsence (issue of absences): Berth is away while things happen to containers, in all pairs, with one container
// and with eight, on engines with and without names. Afterwards each container has its own address, none is refused, no
// address has two, and after the grace period the leases are what runs.
func TestAbsence(t *testing.T) {
	for _, names := range []bool{true, false} {
		for _, first := range happenings {
			for _, second := range happenings {
				for _, n := range []int{1, 8} {
					if n > 1 && testing.Short() && first.name != second.name {
						continue
					}
					for _, fixed := range []bool{false, true} {
						t.Run(fmt.Sprintf("names %v/%d/fixed %v/%s/%s", names, n, fixed, first.name, second.name),
							func(t *testing.T) {
								a := newAway(t, names)
								var going []*box
								for i := range n {
									var wants netip.Addr
									if fixed {
										wants = addr(fmt.Sprintf("10.8.0.%d", 50+i))
									}
									b := a.create(fmt.Sprintf("c%d", i), wants)
									must(t, a.start(b))
									a.pass(time.Second)
									a.taken[b] = b.has
									going = append(going, b)
								}
								a.pass(time.Minute)
								a.leave()
								for _, do := range []func(*away, *box) *box{first.do, second.do} {
									var left []*box
									for _, b := range going {
										if b = do(a, b); b != nil {
											left = append(left, b)
										}
									}
									going = left
									a.pass(time.Minute)
								}
								a.back()
								a.answers()
								a.comesTo(n > 1)
							})
					}
				}
			}
		}
	}
}

// TestUnnamedLease: an engine without names, and Berth ended before it was shown who has an address. The lease names
// nobody. The only container with that address in its configuration gets it again; of two, neither does before the
// grace period is over.
func TestUnnamedLease(t *testing.T) {
	for _, row := range []struct {
		name   string
		thief  bool // another container asks for the address, too
		after  time.Duration
		wanted bool
	}{
		{name: "the only one", after: time.Minute, wanted: true},
		{name: "one of two", after: time.Minute, thief: true},
		{name: "its endpoint may not be shown yet", after: time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newAway(t, false)
			fixed := addr("10.8.0.50")
			a.clock.wait(time.Minute)
			req := ipam.AddressRequest{Pool: a.pools["front"], Preferred: fixed}
			_, err := a.service.RequestAddress(t.Context(), req)
			must(t, err)
			a.leave()
			b := a.create("web", fixed)
			a.end(b)
			if row.thief {
				a.create("thief", fixed)
			}
			a.pass(row.after)
			a.back()
			a.answers()
			err = a.start(b)
			switch {
			case row.wanted && (err != nil || b.has != fixed):
				t.Errorf("it has %v, and the error is %v", b.has, err)
			case !row.wanted && err == nil:
				t.Errorf("it is given %v", b.has)
			}
		})
	}
}

// graceEnds lets the grace period pass, with a check at both ends.
func (a *away) graceEnds() {
	a.t.Helper()
	for range 2 {
		a.pass(defaultGrace)
		_, _, err := a.w.check(a.t.Context(), ipam.CheckRequest{}, true)
		must(a.t, err)
	}
}

// comesTo starts what does not run, in either order of creation, and checks what each has.
func (a *away) comesTo(latestFirst bool) {
	a.t.Helper()
	order := slices.Clone(a.all)
	if latestFirst {
		slices.Reverse(order)
	}
	for _, b := range order {
		if b.has.IsValid() || b.stranger {
			continue
		}
		if err := a.start(b); err != nil {
			a.t.Fatalf("%s is refused: %v", b.name, err)
		}
		if had, known := a.taken[b]; known && had != b.has {
			a.t.Errorf("%s had %s, and has %s", b.name, had, b.has)
		}
	}
	a.graceEnds()
	for _, b := range a.all {
		if !b.stranger {
			continue
		}
		inUse := slices.ContainsFunc(a.all, func(other *box) bool { return other.has == b.wants })
		if err := a.start(b); err != nil && !inUse { // the successor of its name may have its address
			a.t.Errorf("%s is refused after the grace period: %v", b.name, err)
		}
	}
	a.graceEnds()
	has := map[netip.Addr]string{}
	running := slices.DeleteFunc(slices.Clone(a.all), func(b *box) bool { return !b.has.IsValid() })
	for _, b := range running {
		if other := has[b.has]; other != "" {
			a.t.Errorf("%s and %s have %s", other, b.name, b.has)
		}
		has[b.has] = b.name
	}
	held := map[netip.Addr]string{}
	for l, err := range a.service.Leases(a.t.Context(), ipam.LeaseFilter{}) {
		must(a.t, err)
		if l.Kind != ipam.Gateway {
			held[l.Address] = l.Container
		}
	}
	for _, b := range running {
		if held[b.has] != b.id {
			a.t.Errorf("%s (%s) has %s, which is leased to %q", b.name, b.id, b.has, held[b.has])
		}
		delete(held, b.has)
	}
	if len(held) > 0 {
		a.t.Errorf("leases without a container: %v", held)
	}
}
