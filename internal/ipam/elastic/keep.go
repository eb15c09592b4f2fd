package elastic

import (
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
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
)

// KeepSystem gives each container of this host that runs on a network with the mode auto a system address, and takes it
// back when that ends (CS-7, CS-8), until ctx ends. It goes by what is committed and by what the witness hears, and is
// on the way of no request. It returns nil when ctx ends, else why it could not go on; it may be called again.
func (s Room) KeepSystem(ctx context.Context) error {
	if s.ledger.NoElastic() {
		return nil
	}
	k := &keeper{Room: s, began: s.ledger.Now(), all: true, woken: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ipam.WithActor(ctx, keeperActor))
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	committed := k.watch(ctx) // before anything is read
	listening.Go(func() { k.listen(ctx, committed) })
	var changed <-chan struct{}
	if watch := s.ledger.Known().Watch; watch != nil {
		var end func()
		changed, end = watch()
		defer end()
	}
	for {
		pending, err := k.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		next := keepAll
		if pending {
			next = keepAgain
		}
		if !rest(ctx, restBetween, nil) {
			return nil
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
			k.want(nil)
		case <-changed:
			k.want(nil)
		case <-k.woken:
		}
		timer.Stop()
	}
}

// keeper is what KeepSystem has to look at.
type keeper struct {
	Room
	began time.Time // from when on the witness could tell
	woken chan struct{}

	mu   sync.Mutex
	all  bool                     // all guests are to be looked at
	some map[*ipam.Event]struct{} // or those of these events

	short bool // for some guest no address was free when it was last looked at all
}

// want has a guest looked at to which something happened; nil: all.
func (k *keeper) want(e *ipam.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e == nil || len(k.some) >= 10*keepPage {
		k.all, k.some = true, nil
		return
	}
	if k.some == nil {
		k.some = map[*ipam.Event]struct{}{}
	}
	k.some[e] = struct{}{}
}

// taken is what is to be looked at now.
func (k *keeper) taken() (all bool, some []*ipam.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, some = k.all, slices.Collect(maps.Keys(k.some))
	k.all, k.some = false, nil
	return all, some
}

// watch are the events that are committed from now on.
func (k *keeper) watch(ctx context.Context) iter.Seq2[store.Change, error] {
	return k.ledger.Store().Watch(ctx, []byte{ledger.EventKeys})
}

// listen hears what is committed. Where that breaks off, all is looked at once it goes on.
func (k *keeper) listen(ctx context.Context, committed iter.Seq2[store.Change, error]) {
	for ctx.Err() == nil {
		for change, err := range committed {
			if err != nil {
				break
			}
			k.hear(&change)
		}
		if !rest(ctx, keepAgain, nil) {
			return
		}
		committed = k.watch(ctx)
		k.want(nil)
		wakeOne(k.woken)
	}
}

// hear takes in one change of the events; what was trimmed says nothing.
func (k *keeper) hear(change *store.Change) {
	if change.Value == nil {
		return
	}
	e, err := ipam.DecodeEvent(ledger.EventID(change.Key), change.Value)
	switch {
	case err != nil || !isOfLease(e.Verb) && k.concerns(e):
		k.want(nil)
	case k.concerns(e):
		k.want(e)
	default:
		return
	}
	wakeOne(k.woken)
}

func wakeOne(waiting chan struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// isOfLease tells whether a verb is about one lease.
func isOfLease(v ipam.Verb) bool {
	switch v {
	case ipam.LeaseTaken, ipam.LeaseReleased, ipam.LeaseNamed, ipam.LeaseMoved, ipam.GuessedWrong:
		return true
	}
	return false
}

// concerns tells whether something that happened can change what guests of this host are to have.
func (k *keeper) concerns(e *ipam.Event) bool {
	switch {
	case e.Verb == ipam.ElasticApplied:
		return false
	case isOfLease(e.Verb):
		return k.ledger.Member() == nil || e.Host == k.ledger.Host()
	}
	return e.Actor != keeperActor
}

// round settles what is to be looked at, and tells whether more has to be known of somebody.
func (k *keeper) round(ctx context.Context) (pending bool, err error) {
	all, some := k.taken()
	places, err := k.places(ctx, all, some)
	if err != nil {
		return false, err
	}
	unnamed := false
	if all {
		k.short = false
	}
	for page := range slices.Chunk(places, keepPage) {
		var due []guestPlace
		err := k.ledger.Look(ctx, func(c *ledger.Change) error {
			for _, at := range page {
				s, err := stand(c, at, k.began)
				if err != nil {
					return err
				}
				pending, unnamed = pending || s.pending, unnamed || s.unnamed
				k.short = k.short || s.noneFree
				if !s.settled() {
					due = append(due, at)
				}
			}
			return nil
		})
		if err == nil {
			err = inPages(ctx, k.ledger, due, func(c *ledger.Change, at guestPlace) error {
				return settle(c, at, k.began)
			})
		}
		if err != nil {
			return false, err
		}
		pending = pending || k.short && len(due) > 0 // perhaps one is free now
	}
	if look := k.ledger.Known().Look; unnamed && look != nil {
		look()
	}
	if pending {
		k.want(nil)
	}
	return pending, nil
}

// places are where guests lie that are to be looked at.
func (k *keeper) places(ctx context.Context, all bool, some []*ipam.Event) (places []guestPlace, err error) {
	if !all {
		k.ledger.Read(func(ix *ledger.Index) {
			for _, e := range some {
				if id := ix.SubnetAt(e.Space, e.Subnet); id != (ipam.ID{}) {
					places = append(places, guestPlace{id, e.Address})
				}
			}
		})
		return places, nil
	}
	var gone []netip.Addr
	err = k.ledger.Look(ctx, func(c *ledger.Change) error {
		places, gone = systemGuests(c)
		more, err := autoGuests(c)
		places = append(places, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(places, func(a, b guestPlace) int { return a.addr.Compare(b.addr) })
	places = slices.Compact(places)
	return places, inPages(ctx, k.ledger, gone, func(c *ledger.Change, addr netip.Addr) error {
		if known := c.Index().Elastic(addr); known != nil && isAdrift(c, known) {
			return takeBack(c, known, "its network is gone, or its host")
		}
		return nil
	})
}

// systemGuests are the guests of this host that have system addresses, and those of such addresses that have no guest
// any more which somebody would look at.
func systemGuests(c *ledger.Change) (places []guestPlace, gone []netip.Addr) {
	for addr, one := range c.Index().Elastics() {
		if !one.System || one.State != ipam.ElasticAllocated {
			continue
		}
		if isAdrift(c, one) {
			gone = append(gone, addr)
		} else if isOurs(c, addr) {
			places = append(places, guestPlace{subnetOf(c, one).ID, one.Association.Guest})
		}
	}
	return places, gone
}

// subnetOf is the subnet of the guest of a system address; nil where it has none any more.
func subnetOf(c *ledger.Change, one *ipam.Elastic) *ipam.Subnet {
	if one.Association == nil {
		return nil
	}
	return subnetAt(c.Index(), one.Association.Network, one.Association.Guest)
}

// isAdrift tells whether no keeper looks at the guest of a system address: its network or its host is gone.
func isAdrift(c *ledger.Change, one *ipam.Elastic) bool {
	if !one.System || one.State != ipam.ElasticAllocated {
		return false
	}
	if r := rangeOf(c.Index(), one.Address); r != nil && c.Member() != nil && r.Host != c.Host() {
		h := c.Index().Host(r.Host)
		return h == nil || h.State == ipam.HostRemoved
	}
	return !isOurs(c, one.Address) || subnetOf(c, one) == nil
}

// autoGuests are the addresses that containers of this host have on networks with the mode auto.
func autoGuests(c *ledger.Change) (places []guestPlace, err error) {
	for id, nx := range c.Index().Networks() {
		n := nx.Record()
		if n == nil || n.Stage != "" || n.Elastic != ipam.ElasticAuto {
			continue
		}
		for _, sub := range c.Index().NetworkIndex(id).Subnets() {
			err := ledger.EachLease(c.Tx(), sub, func(l *ipam.Lease) error {
				if runsHere(c, l) {
					places = append(places, guestPlace{sub, l.Address})
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return places, nil
}
