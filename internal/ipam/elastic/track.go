package elastic

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// leadsAtOnce is of how many addresses is worked out at a time where they lead: the ledger is locked meanwhile, and
// requests wait.
const leadsAtOnce = 64

// inNet is in how many ticks each address is looked at that no commit has touched. It is a net: were a commit missed,
// or seen wrongly, that would last so long (30 s) and no longer.
const inNet = 30

// tracker keeps what the edge of this host is to have. It works out anew only what a commit can have changed.
type tracker struct {
	room     Room
	commits  *ledger.Commits
	ticked   time.Duration // the host's moment of the last tick
	ranges   []ipam.EdgeRange
	mappings map[netip.Addr]ipam.EdgeMapping

	leads  map[netip.Addr]lead         // of the addresses that lead somewhere
	guests map[netip.Addr][]netip.Addr // which of them lead to a guest's address: of those that are here one is mapped
	worked map[netip.Addr]bool         // of which it was worked out where they lead; nil: nobody asks
	moved  map[netip.Addr]bool         // the guests to which another leads since, or none any more

	begun  bool
	looked map[netip.Addr]bool // since the last tick, because of commits
	before map[netip.Addr]bool // since the one before that
	round  []netip.Addr        // what the net has yet to look at
	part   int                 // how many of them in a tick
}

// track begins to follow what is committed. The first look is at all there is.
func (s Room) track(ctx context.Context) *tracker {
	return s.trackBy(s.ledger.Watch(ctx, bearing, waking))
}

// trackBy is track by what is collected of bearing.
func (s Room) trackBy(w *ledger.Commits) *tracker {
	return &tracker{room: s, commits: w, ticked: s.ledger.Moment(), mappings: map[netip.Addr]ipam.EdgeMapping{},
		leads: map[netip.Addr]lead{}, guests: map[netip.Addr][]netip.Addr{}, looked: map[netip.Addr]bool{},
		before: map[netip.Addr]bool{}}
}

// end waits until nothing of it runs. The context of track has ended.
func (t *tracker) end() { t.commits.Wait() }

// look brings what is wanted up to date, and names the addresses whose mapping can be another one now.
func (t *tracker) look(ctx context.Context) (changed []netip.Addr, err error) {
	seen, missed := t.commits.Take()
	return t.after(ctx, seen, missed)
}

// after is look after some commits; missed tells that there were others.
func (t *tracker) after(ctx context.Context, seen map[string][]byte, missed bool) (changed []netip.Addr, err error) {
	due := map[netip.Addr]bool{}
	all := !t.begun || missed || t.touched(seen, due)
	if all {
		t.room.ledger.Read(func(ix *ledger.Index) { t.all(ix, due) })
	}
	maps.Copy(t.looked, due)
	if now := t.room.ledger.Moment(); now-t.ticked >= lookAgain {
		t.ticked = now
		t.ticks(due)
	}
	if len(due) == 0 && !all {
		return nil, nil
	}
	t.begun = true
	differs := map[netip.Addr]bool{}
	addrs := slices.SortedFunc(maps.Keys(due), netip.Addr.Compare)
	for first := true; first || len(addrs) > 0; first = false {
		page := addrs[:min(len(addrs), leadsAtOnce)]
		addrs = addrs[len(page):]
		err := t.room.ledger.Look(ctx, func(c *ledger.Change) error {
			t.ranges = edgeRanges(c)
			return t.lookAt(c, page, differs)
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Keys(differs), netip.Addr.Compare), nil
}

// all marks all addresses that lead somewhere, or may.
func (t *tracker) all(ix *ledger.Index, due map[netip.Addr]bool) {
	for addr, one := range ix.Elastics() {
		if one.Association != nil {
			due[addr] = true
		}
	}
	for addr := range t.leads {
		due[addr] = true
	}
}

// ticks marks once more what commits have touched before the last tick, and a part of the net. A commit that was taken
// back was in the index while it was looked at.
func (t *tracker) ticks(due map[netip.Addr]bool) {
	maps.Copy(due, t.before)
	t.before, t.looked = t.looked, map[netip.Addr]bool{}
	if len(t.round) == 0 {
		all := map[netip.Addr]bool{}
		t.room.ledger.Read(func(ix *ledger.Index) { t.all(ix, all) })
		t.round = slices.SortedFunc(maps.Keys(all), netip.Addr.Compare) // so that each comes again in its turn
		t.part = max((len(t.round)+inNet-1)/inNet, leadsAtOnce)
	}
	part := t.round[:min(len(t.round), t.part)]
	for _, addr := range part {
		due[addr] = true
	}
	t.round = t.round[len(part):]
}

// lookAt works out where some addresses lead, and what is mapped then.
func (t *tracker) lookAt(c *ledger.Change, addrs []netip.Addr, differs map[netip.Addr]bool) error {
	in := placesOf(c)
	guests := map[netip.Addr]bool{}
	for _, addr := range addrs {
		now, there, err := in.lead(addr)
		if err != nil {
			return err
		}
		was, led := t.leads[addr]
		if led == there && was == now {
			continue
		}
		if led {
			guests[was.Guest] = true
			t.leave(addr, was.Guest)
		}
		if there {
			guests[now.Guest] = true
			t.leads[addr] = now
			t.guests[now.Guest] = append(t.guests[now.Guest], addr)
		}
		if _, mapped := t.mappings[addr]; mapped {
			delete(t.mappings, addr)
			differs[addr] = true
		}
	}
	for guest := range guests {
		t.choose(guest, differs)
	}
	if t.worked != nil {
		maps.Copy(t.moved, guests)
		for _, addr := range addrs {
			t.worked[addr] = true
		}
	}
	return nil
}

// leave takes an address from the guest that it led to.
func (t *tracker) leave(addr, guest netip.Addr) {
	delete(t.leads, addr)
	rest := slices.DeleteFunc(t.guests[guest], func(other netip.Addr) bool { return other == addr })
	if t.guests[guest] = rest; len(rest) == 0 {
		delete(t.guests, guest)
	}
}

// choose maps of the addresses that lead to a guest's the one that was associated first. A guest has one, and more only
// where its addresses have changed hands.
func (t *tracker) choose(guest netip.Addr, differs map[netip.Addr]bool) {
	var first *lead
	for _, addr := range t.guests[guest] {
		if l := t.leads[addr]; l.here && (first == nil || cmp.Less(l.Association, first.Association)) {
			first = &l
		}
	}
	for _, addr := range t.guests[guest] {
		if first != nil && addr == first.Elastic {
			if t.mappings[addr] != first.EdgeMapping {
				t.mappings[addr] = first.EdgeMapping
				differs[addr] = true
			}
		} else if _, mapped := t.mappings[addr]; mapped {
			delete(t.mappings, addr)
			differs[addr] = true
		}
	}
}

// tell writes into news what one who was told of some addresses before has to hear of them, and notes it there.
func (t *tracker) tell(news *ipam.EdgeNews, addrs []netip.Addr, told map[netip.Addr]ipam.EdgeMapping) {
	tellOf(news, addrs, t.mappings, told)
}

// tellOf is tracker.tell of mappings.
func tellOf(news *ipam.EdgeNews, addrs []netip.Addr, mappings, told map[netip.Addr]ipam.EdgeMapping) {
	for _, addr := range addrs {
		was, before := told[addr]
		now, there := mappings[addr]
		switch {
		case there && was != now:
			told[addr] = now
			news.Set = append(news.Set, now)
		case before && !there:
			delete(told, addr)
			news.Removed = append(news.Removed, addr)
		}
	}
}
