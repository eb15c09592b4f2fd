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

// ask tells from whom a request without a name is. The engine's locks say it, where they can be asked; else it is
// guessed (Guess). Who asks for one address by itself gets that or none, and is worth no question.
func (r *Roster) ask(ctx context.Context, q ipam.Question) ipam.Hint {
	r.mu.RLock()
	ask, gone := r.askLocks, r.following.IsZero() && r.now().Sub(r.lost) < awayFor
	r.mu.RUnlock()
	switch {
	case q.Address.IsValid():
		return r.guess(q)
	case ask == nil && gone: // `berth witness` comes again, or hears the engine again, when that has started
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
	case !locked.Told && gone: // on a busy host even the answer that it starts can come late
		return ipam.Hint{Boots: true}
	case !locked.Told:
		hint := r.guess(q)
		if name, homes := r.expected(q); hint.Name == "" || hint.Name == name {
			hint.Home = homes
		}
		return hint
	case len(all) == 1:
		return r.hintOf(q, all[0])
	default:
		// those elsewhere that answer late hardly ask at the very moment at which one is put back
		if name, _ := r.expected(q); len(locked.Silent) == 0 && slices.Contains(all, name) {
			return r.hintOf(q, name)
		}
		return ipam.Hint{Live: true, Others: r.startTogether(q, locked.Silent)}
	}
}

// sawBoot notes that the engine starts. The answer is too late where its events come by now.
func (r *Roster) sawBoot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boots = r.boots || r.following.IsZero()
}

// hintOf is what there is to say of the container that asks.
func (r *Roster) hintOf(q ipam.Question, name string) ipam.Hint {
	return ipam.Hint{Live: true, Name: name, Others: r.startingWith(q, name), Home: r.homeOf(name)}
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

func (r *Roster) homeOf(name string) []netip.Addr {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.homes[name]
}

// expected is the only container that is being put back in a subnet, and its addresses; empty: there is none, or several
// are.
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

// awayFor is how long an engine whose events do not come is taken for one that starts, from their end or the daemon's
// start.
const awayFor = 2 * time.Minute

// questions counts what came of the questions to the engine.
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
