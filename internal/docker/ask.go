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

// Ask tells from whom a request without a name is. The engine's locks say it, where they can be asked; else it is
// guessed (Guess). Who asks for one address by itself gets that or none, and is worth no question.
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
	switch all := locked.All(); {
	case locked.Boots:
		r.boots.Store(true)
		return ipam.Hint{Boots: true}
	case !locked.Told:
		return r.Guess(q)
	case len(all) == 1:
		return ipam.Hint{Live: true, Name: all[0], Others: r.startingWith(q, all[0]), Home: r.expected(all[0])}
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
