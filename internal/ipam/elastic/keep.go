package elastic

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

const (
	// keeperActor is the actor in events of system addresses.
	keeperActor = "keeper"
	// keepAgain is the time until the next look at guests about which more must be known.
	keepAgain = 200 * time.Millisecond
	// keepAnew is the pause before a new start after an error.
	keepAnew = 5 * time.Second
)

// KeepSystem gives each running container of this host on a network in the mode auto a system address, and takes it
// back at the end. It reacts to commits and to the witness, and delays no request. After an error it calls failed and
// starts again after some seconds. It returns when ctx ends.
func (s Addresses) KeepSystem(ctx context.Context, failed func(error)) {
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

// awaitAuto waits until a network is on auto or a system address must be taken back. Meanwhile it follows only
// networks, because most hosts have no such network.
func (s Addresses) awaitAuto(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	planned := s.ledger.Watch(ctx, nil, []byte{ledger.NetworkKeys})
	defer func() { cancel(); planned.Wait() }()
	for {
		if g, err := s.guests(ctx); err != nil || g.needed {
			return err
		}
		if !rest(ctx, restBetween, nil) || !rest(ctx, lookAlways, planned.Woken()) {
			return ctx.Err()
		}
	}
}

// keepAuto keeps system addresses until there is nothing left to keep, or ctx ends.
func (s Addresses) keepAuto(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	k := s.assigner(ctx)
	defer func() { cancel(); k.anew.commits.Wait() }()
	var changed <-chan struct{}
	if watch := s.ledger.Known().Watch; watch != nil {
		var end func()
		changed, end = watch()
		defer end()
	}
	for {
		begun := time.Now()
		if err := k.round(ctx); err != nil || !k.needed {
			return err
		}
		if !rest(ctx, max(restBetween, time.Since(begun)), nil) {
			return ctx.Err()
		}
		long := lookAgain
		if k.pending {
			long = keepAgain
		}
		next := time.NewTimer(long)
		select {
		case <-ctx.Done():
		case <-next.C:
		case <-changed:
			k.heard = true
		case <-k.anew.commits.Woken():
		}
		next.Stop()
	}
}

// assigner gives this host's guests system addresses, and takes them back.
type assigner struct {
	Addresses
	anew    anew
	began   time.Time // since when the witness could report
	heard   bool      // the witness has reported something
	pending bool      // more must be known about some guest
	needed  bool      // there is something to keep
}

// keeping are the kinds of records that the assigner follows: those that affect mappings, and hosts, whose system
// addresses are taken back when they are removed.
var keeping = append([]byte{ledger.HostKeys}, bearing...)

func (s Addresses) assigner(ctx context.Context) *assigner {
	return &assigner{Addresses: s, anew: anewAfter(ctx, s.ledger, keeping, nil), began: s.ledger.Now()}
}

// round checks all guests of this host if it is time, and gives and takes back system addresses.
func (k *assigner) round(ctx context.Context) error {
	if !k.anew.due(bearsOnSystem) && !k.heard && !k.pending {
		return nil
	}
	g, err := k.guests(ctx)
	if err != nil {
		return err
	}
	k.heard, k.pending, k.needed = false, false, g.needed
	var wrong []guestPlace
	unnamed := false
	err = k.stands(ctx, g, k.began, func(_ *ledger.Change, at guestPlace, s *standing) error {
		k.pending, unnamed = k.pending || s.pending, unnamed || s.unnamed
		if !s.settled() {
			wrong = append(wrong, at)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = inPages(ctx, k.ledger, wrong, func(c *ledger.Change, at guestPlace) error { return settle(c, at, k.began) })
	if err != nil {
		return err
	}
	if look := k.ledger.Known().Look; unnamed && look != nil {
		look()
	}
	return inPages(ctx, k.ledger, g.adrift, func(c *ledger.Change, addr netip.Addr) error {
		if known := c.Index().Elastic(addr); known != nil && isAdrift(c, known) {
			return takeBack(c, known, "its network or its host is gone")
		}
		return nil
	})
}

// bearsOnSystem reports whether a written record can affect system addresses. Leases on networks without mappings
// cannot.
func bearsOnSystem(ix *ledger.Index, key, _ []byte) bool {
	if key[0] != ledger.LeaseKeys {
		return true
	}
	subnet, _, ok := ledger.LeaseKeyParts(key)
	sx := ix.Subnet(subnet)
	if !ok || sx == nil {
		return false
	}
	n := ix.Network(sx.Record().Network)
	return n != nil && n.Elastic.Maps()
}

// guests are this host's guests that have system addresses or may get one.
type guests struct {
	places []guestPlace // in the order of their addresses
	adrift []netip.Addr // system addresses whose guests no assigner checks any more
	needed bool         // there are some, or a network is on auto
}

// guests reads them. It does not lock the index while it reads leases, because a subnet may have many.
func (s Addresses) guests(ctx context.Context) (g guests, err error) {
	var subnets []ipam.ID
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		for addr, one := range c.Index().Elastics() {
			switch {
			case !one.System || one.State != ipam.ElasticAllocated:
			case isAdrift(c, one):
				g.adrift = append(g.adrift, addr)
			case isOurs(c, addr):
				g.places = append(g.places, guestPlace{subnetOf(c, one).ID, one.Association.Guest})
			}
		}
		g.needed = len(g.places)+len(g.adrift) > 0
		for id, nx := range c.Index().Networks() {
			if n := nx.Record(); n != nil && n.Stage == "" && n.Elastic == ipam.ElasticAuto {
				g.needed, subnets = true, append(subnets, c.Index().NetworkIndex(id).Subnets()...)
			}
		}
		return nil
	})
	if err != nil || len(subnets) == 0 {
		return g, err
	}
	err = s.ledger.View(ctx, func(tx store.Tx) error {
		for _, id := range subnets {
			err := ledger.EachLease(tx, id, func(l *ipam.Lease) error {
				if runsOn(s.ledger.Host(), s.ledger.Member(), l) {
					g.places = append(g.places, guestPlace{id, l.Address})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(g.places, func(a, b guestPlace) int {
		if by := a.addr.Compare(b.addr); by != 0 {
			return by
		}
		return slices.Compare(a.subnet[:], b.subnet[:])
	})
	g.places = slices.Compact(g.places)
	return g, err
}

// stands checks the system addresses of some guests. began is since when the witness could report.
func (s Addresses) stands(ctx context.Context, g guests, began time.Time,
	tell func(*ledger.Change, guestPlace, *standing) error) error {
	return ledger.LookEach(ctx, s.ledger, g.places, func(c *ledger.Change, at guestPlace) error {
		one, err := stand(c, at, began)
		if err != nil {
			return err
		}
		return tell(c, at, &one)
	})
}

// subnetOf returns the subnet of a system address's guest, or nil if it is gone.
func subnetOf(c *ledger.Change, one *ipam.Elastic) *ipam.Subnet {
	if one.Association == nil {
		return nil
	}
	return subnetAt(c.Index(), one.Association.Network, one.Association.Guest)
}

// isAdrift reports whether no assigner checks the guest of a system address, because its network or its host is gone.
func isAdrift(c *ledger.Change, one *ipam.Elastic) bool {
	if !one.System || one.State != ipam.ElasticAllocated || isMoving(c.Index(), one.Address) {
		return false
	}
	if r := rangeOf(c.Index(), one.Address); r != nil && c.Member() != nil && r.Host != c.Host() {
		h := c.Index().Host(r.Host)
		return h == nil || h.State == ipam.HostRemoved
	}
	return !isOurs(c, one.Address) || subnetOf(c, one) == nil
}
