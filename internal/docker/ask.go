package docker

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"berth/internal/ipam"
)

// ask finds the container of a request without a name. It asks the engine's locks if possible, and otherwise guesses
// (guess). A request for a certain free address gets that address or none, so it is not worth a question to the engine.
func (r *Roster) ask(ctx context.Context, q ipam.Question) ipam.Hint {
	r.mu.RLock()
	ask, gone := r.askLocks, r.following.IsZero() && r.now().Sub(r.lost) < awayFor
	r.mu.RUnlock()
	wanter, moving := "", false
	if q.Address.IsValid() {
		wanter, moving = r.onlyWanter(q)
	}
	switch {
	case moving: // Berth itself connects it, so there is nothing to ask. A view confirms the name of a new lease
		return ipam.Hint{Live: true, Name: wanter, Sure: q.Held}
	case q.Address.IsValid() && (!q.Held || ask == nil):
		return r.guess(q)
	case ask == nil && gone: // `berth witness` reconnects, or hears the engine again, after the engine's start
		return ipam.Hint{Boots: true}
	case ask == nil:
		return r.guess(q)
	}
	locked := ask(ctx, q)
	r.questions.count(&locked)
	switch all := locked.All(); {
	case locked.Boots:
		r.sawBoot()
		return ipam.Hint{Boots: true}
	case !locked.Told && gone: // on a busy host even the answer that it starts can be too late
		return ipam.Hint{Boots: true}
	case !locked.Told:
		hint := r.guess(q)
		if name, homes := r.expected(q); hint.Name == "" || hint.Name == name {
			hint.Home = homes
		}
		return hint
	case q.Address.IsValid():
		if wanter != "" && slices.Contains(all, wanter) {
			return ipam.Hint{Live: true, Name: wanter, Sure: true}
		}
		return r.guess(q)
	case len(all) == 1:
		hint := r.hintOf(q, all[0])
		hint.Sure = true
		return hint
	default:
		// silent containers elsewhere hardly ask at the moment of a move
		if name, _ := r.expected(q); len(locked.Silent) == 0 && slices.Contains(all, name) {
			return r.hintOf(q, name)
		}
		return ipam.Hint{Live: true, Others: r.startTogether(q, locked.Silent)}
	}
}

// onlyWanter returns the only container that may ask for the requested address, because its configuration has it, or
// because it is being put back to it now (moving). The name is empty if there is none, or if there are several: anybody
// may write the address of another container there.
func (r *Roster) onlyWanter(q ipam.Question) (name string, moving bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.wanter(q.Space, q.CIDR, q.Address)
}

// wanter is onlyWanter. The caller holds the lock.
func (r *Roster) wanter(space string, cidr netip.Prefix, addr netip.Addr) (name string, moving bool) {
	wanters := map[string]bool{} // by name; true: is being put back
	for _, n := range r.networks {
		if serves(n, space, cidr) {
			for _, m := range r.wanted[n.ID][addr] {
				wanters[m.Name] = false
			}
		}
	}
	for name, homes := range r.homes {
		if slices.Contains(homes, addr) {
			wanters[name] = true
		}
	}
	if len(wanters) != 1 {
		return "", false
	}
	name = slices.Collect(maps.Keys(wanters))[0]
	return name, wanters[name]
}

// sawBoot notes that the engine is starting, unless its events came meanwhile.
func (r *Roster) sawBoot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boots = r.boots || r.following.IsZero()
}

// hintOf is the hint for a request of a known container.
func (r *Roster) hintOf(q ipam.Question, name string) ipam.Hint {
	return ipam.Hint{Live: true, Name: name, Others: r.startingWith(q, name), Home: r.homeOf(name)}
}

// Expect makes requests of a container get the given addresses, to which it is being put back, until end is called.
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

func (r *Roster) homeOf(name string) []netip.Addr {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.homes[name]
}

// expected returns the only container that is being put back in a subnet, and its addresses. It is empty if there is
// none, or several.
func (r *Roster) expected(q ipam.Question) (one string, homes []netip.Addr) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for name, all := range r.homes {
		switch {
		case !slices.ContainsFunc(all, q.CIDR.Contains):
		case one != "":
			return "", nil
		default:
			one, homes = name, all
		}
	}
	return one, homes
}

// awayFor is how long an engine without events counts as starting. The time begins when the events end, or when the
// daemon starts.
const awayFor = 2 * time.Minute

// questions counts the outcomes of questions to the engine.
type questions struct{ one, several, none, late, boots atomic.Uint64 }

func (n *questions) count(l *ipam.Locked) {
	switch all := len(l.All()); {
	case l.Boots:
		n.boots.Add(1)
	case !l.Told:
		n.late.Add(1)
	case all == 0:
		n.none.Add(1)
	case all == 1:
		n.one.Add(1)
	default:
		n.several.Add(1)
	}
}

// Questions returns the outcomes of questions to the engine since the start.
func (r *Roster) Questions() ipam.QuestionCounts {
	n := &r.questions
	return ipam.QuestionCounts{One: n.one.Load(), Several: n.several.Load(), None: n.none.Load(), Late: n.late.Load(),
		Boots: n.boots.Load()}
}

// togetherFor is how long containers that were locked at the same time count as starting together.
const togetherFor = 10 * time.Second

// starter is a container in a subnet, by name.
type starter struct {
	name string
	cidr netip.Prefix
}

// together lists the containers that started together with one.
type together struct {
	at     time.Time
	others []string
}

// startTogether notes that containers start together. It returns the given names in their order, and then those that
// started with them before.
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

// startingWith lists the containers that started together with one a moment ago.
func (r *Roster) startingWith(q ipam.Question, name string) []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if t := r.together[starter{name, q.CIDR}]; r.now().Sub(t.at) <= togetherFor {
		return t.others
	}
	return nil
}
