package elastic

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

const (
	// keeperActor is who gives and takes back system addresses, for events.
	keeperActor = "keeper"
	// keepAgain is how soon it is looked again at guests of which more has to be known.
	keepAgain = 200 * time.Millisecond
	// keepAll is how often it is looked at all guests by itself: a word of what happened may be missed.
	keepAll = 30 * time.Second
	// keepPage is at how many guests it is looked without letting requests in between.
	keepPage = 128
	// keepAnew is after which time it is begun anew where it could not go on.
	keepAnew = 5 * time.Second
)

// KeepSystem gives each container of this host that runs on a network with the mode auto a system address, and takes it
// back when that ends (CS-7, CS-8), until ctx ends. It goes by what is committed and by what the witness hears, and is
// on the way of no request. Where it cannot go on, failed hears why, and it begins anew after some seconds.
func (s Room) KeepSystem(ctx context.Context, failed func(error)) {
	if s.ledger.NoElastic() {
		return
	}
	ctx = ipam.WithActor(ctx, keeperActor)
	for ctx.Err() == nil {
		err := s.awaitAuto(ctx)
		if err == nil {
			err = s.keepAuto(ctx)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		failed(err)
		rest(ctx, keepAnew, nil)
	}
}

// awaitAuto waits as long as no network is on auto and no system address is to be taken back, and hears of nothing but
// networks meanwhile: most hosts have none such, and pay nothing for it.
func (s Room) awaitAuto(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	planned := s.ledger.Watch(ctx, []byte{ledger.NetworkKeys}, nil)
	defer func() { cancel(); planned.Wait() }()
	for {
		needed := false
		if err := s.ledger.Look(ctx, func(c *ledger.Change) (err error) { needed = needsKeeper(c); return nil }); err != nil {
			return err
		}
		for waited := false; !waited && !needed; {
			next := time.NewTimer(keepAll)
			select {
			case <-ctx.Done():
				next.Stop()
				return ctx.Err()
			case <-next.C:
				waited = true
			case <-planned.Woken():
				next.Stop()
				waited = namesAuto(planned.Take())
			}
		}
		if needed {
			return nil
		}
	}
}

// namesAuto tells whether some commits can have turned a network to auto.
func namesAuto(seen map[string][]byte, missed bool) bool {
	for _, value := range seen {
		if n, there := ledger.Decoded[ipam.Network](value); there && n.Value.Elastic == ipam.ElasticAuto {
			return true
		}
	}
	return missed
}

// needsKeeper tells whether there is anything to keep.
func needsKeeper(c *ledger.Change) bool {
	for _, nx := range c.Index().Networks() {
		if n := nx.Record(); n != nil && n.Elastic == ipam.ElasticAuto {
			return true
		}
	}
	places, gone := systemGuests(c)
	return len(places)+len(gone) > 0
}

// keepAuto keeps system addresses until there is nothing to keep any more, or ctx ends.
func (s Room) keepAuto(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	k := s.keeper(ctx)
	defer func() { cancel(); k.leads.end() }()
	var changed <-chan struct{}
	if watch := s.ledger.Known().Watch; watch != nil {
		var end func()
		changed, end = watch()
		defer end()
	}
	for {
		if _, err := k.round(ctx); err != nil || !k.needed {
			return err
		}
		if !rest(ctx, restBetween, nil) {
			return ctx.Err()
		}
		next := time.NewTimer(k.next())
		select {
		case <-ctx.Done():
		case <-next.C:
		case <-changed:
			k.heard = true
		case <-k.leads.commits.Woken():
		}
		next.Stop()
	}
}

// keeper is what is known of the guests of this host, and at which of them it is to be looked.
type keeper struct {
	Room
	began time.Time // from when on the witness could tell
	leads *tracker  // what is mapped to guests, be it in place of a system address

	networks map[ipam.ID]autoTerms     // that are on auto
	here     map[netip.Addr][]ipam.ID  // guests that run here on those, with their subnets
	by       map[guestPlace]netip.Addr // what is mapped to them, as it was when they were looked at
	lacking  map[guestPlace]bool       // those of them for which no address was free
	waits    map[guestPlace]bool       // those of which more has to be known, or that were changed just now
	looked   map[guestPlace]bool       // since the last tick
	before   map[guestPlace]bool       // since the one before that
	ticked   time.Duration             // the host's moment of the last tick
	wholly   time.Duration             // and of the last look at all guests
	all      bool                      // all are to be looked at
	heard    bool                      // the witness has said something
	needed   bool                      // there is something to keep
}

func (s Room) keeper(ctx context.Context) *keeper {
	now := s.ledger.Moment()
	k := &keeper{Room: s, began: s.ledger.Now(), networks: map[ipam.ID]autoTerms{}, here: map[netip.Addr][]ipam.ID{},
		by:      map[guestPlace]netip.Addr{},
		lacking: map[guestPlace]bool{}, waits: map[guestPlace]bool{}, looked: map[guestPlace]bool{},
		before: map[guestPlace]bool{}, ticked: now, wholly: now, all: true}
	k.leads = s.trackBy(s.ledger.Watch(ctx, keeping, nil)) // before anything is read
	k.leads.worked, k.leads.moved = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	return k
}

// next is after which time it is worth looking by itself.
func (k *keeper) next() time.Duration {
	if len(k.waits) > 0 {
		return keepAgain
	}
	return lookAgain
}

// round settles what is to be looked at, and tells at which guests it was.
func (k *keeper) round(ctx context.Context) (due map[guestPlace]bool, err error) {
	seen, missed := k.leads.commits.Take()
	due = map[guestPlace]bool{}
	now := k.ledger.Moment()
	k.all = k.bears(seen, due) || missed || k.all || now-k.wholly >= keepAll
	if _, err := k.leads.after(ctx, seen, missed || k.all); err != nil {
		return due, err
	}
	k.hear(due)
	maps.Copy(k.looked, due)
	k.tick(now, due)
	if k.all {
		if err := k.whole(ctx, due); err != nil {
			return due, err
		}
		k.wholly = now
	}
	k.all = false
	return due, k.settle(ctx, due)
}

// settle looks at some guests, and gives and takes back what is to be.
func (k *keeper) settle(ctx context.Context, due map[guestPlace]bool) error {
	unnamed := false
	for page := range slices.Chunk(inOrder(due), keepPage) {
		var wrong []guestPlace
		err := k.ledger.Look(ctx, func(c *ledger.Change) error {
			for _, at := range page {
				s, err := stand(c, at, k.began)
				if err != nil {
					return err
				}
				k.note(at, &s)
				k.all = k.all || k.isBehind(c.Index(), at)
				unnamed = unnamed || s.unnamed
				if !s.settled() {
					wrong = append(wrong, at)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, at := range wrong {
			k.waits[at] = true // until it is seen to be settled
		}
		err = inPages(ctx, k.ledger, wrong, func(c *ledger.Change, at guestPlace) error {
			return settle(c, at, k.began)
		})
		if err != nil {
			return err
		}
	}
	if look := k.ledger.Known().Look; unnamed && look != nil {
		look()
	}
	return nil
}

// note takes down how it stands with a guest.
func (k *keeper) note(at guestPlace, s *standing) {
	mark(k.lacking, at, s.noneFree)
	mark(k.waits, at, s.pending)
	subnets := slices.DeleteFunc(k.here[at.addr], func(id ipam.ID) bool { return id == at.subnet })
	if delete(k.by, at); s.runs {
		subnets = append(subnets, at.subnet)
		k.by[at] = s.by
	}
	if k.here[at.addr] = subnets; len(subnets) == 0 {
		delete(k.here, at.addr)
	}
}

func mark(in map[guestPlace]bool, at guestPlace, is bool) {
	if is {
		in[at] = true
	} else {
		delete(in, at)
	}
}
