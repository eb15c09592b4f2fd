package cluster

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
)

// claimed is the state of an attachment's headroom in the shared store.
type claimed struct {
	headroomFacts
	leases map[netip.Addr]uint64 // the ids of the leases
	// claimed addresses that may not be leased any more, because they were excluded or reserved since
	unfit map[netip.Addr]bool
}

// allClaimed returns the headroom that each attachment of this host should have and has. It omits attachments that
// neither have nor need headroom. It also omits those of a swarm manager, because the manager requests everything again
// through new attachments (allocator/replay.go).
func allClaimed(ctx context.Context, s *ledger.Ledger) (all map[ipam.ID]*claimed, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		all = map[ipam.ID]*claimed{}
		for id, known := range c.Index().Attachments() {
			if known.Host != s.Host() {
				continue
			}
			cl, err := claimedOf(c, id)
			if err != nil {
				return err
			}
			if !cl.none() {
				all[id] = cl
			}
		}
		return nil
	})
	return all, err
}

// none reports whether an attachment neither has nor needs headroom.
func (cl *claimed) none() bool { return cl.Wanted == 0 && len(cl.leases) == 0 }

// claimedOf returns the headroom that one attachment should have and has. It is empty if the attachment has ended.
func claimedOf(c *ledger.Change, pool ipam.ID) (*claimed, error) {
	t, err := allocator.OpenTarget(c, pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return new(claimed), nil
	}
	if err != nil {
		return nil, err
	}
	cl := &claimed{headroomFacts: headroomFacts{Space: t.Sub.Space, CIDR: t.Sub.CIDR}, unfit: map[netip.Addr]bool{}}
	n := t.Index().Network(t.Sub.Network)
	if n != nil {
		cl.Network, cl.Forget, cl.Quarantine = n.Name, n.Policy.Forget, n.Policy.Quarantine
	}
	h := t.Index().Host(t.Host())
	if n != nil && n.Type == ipam.Manual && !t.At.Swarm && (h == nil || h.State == "") {
		cl.Wanted = n.Headroom
	}
	if cl.leases, err = t.HeadroomOf(); err != nil {
		return nil, err
	}
	for addr := range cl.leases {
		l, err := t.Record(addr)
		if err != nil {
			return nil, err
		}
		if l.Reserved() != nil || !t.InPools(addr) {
			cl.unfit[addr] = true
		}
	}
	return cl, nil
}

// review makes the headroom what it should be. Between two attachments it lets others report to the store.
func (s *Shared) review(ctx context.Context, svc *service.Service) error {
	all, err := allClaimed(ctx, svc.Ledger)
	if err != nil {
		return err
	}
	for _, pool := range s.unlike(all) {
		if err := s.inTellingTurn(ctx, func() error { return s.reviewOne(ctx, svc, pool) }); err != nil {
			return err
		}
	}
	return nil
}

// unlike lists the attachments whose headroom is not as it should be, or not as this host knows it.
func (s *Shared) unlike(all map[ipam.ID]*claimed) (pools []ipam.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pool := range s.headroom {
		if all[pool] == nil {
			pools = append(pools, pool)
		}
	}
	for pool, cl := range all {
		if hr := s.headroom[pool]; hr == nil || !is(hr, cl) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// is reports whether the headroom is what it should be.
func is(hr *headroom, cl *claimed) bool {
	free := 0
	for addr, one := range hr.addrs {
		if one.free() {
			free++
		}
		if one.free() && (cl.leases[addr] != one.Lease || cl.unfit[addr]) {
			return false
		}
	}
	for addr, lease := range cl.leases {
		if hr.addrs[addr].Lease != lease {
			return false
		}
	}
	return hr.headroomFacts == cl.headroomFacts &&
		(free == cl.Wanted || free < cl.Wanted && time.Since(hr.exhausted) < claimAgain)
}

// reviewOne makes the headroom of one attachment what it should be. The caller has the token of telling.
func (s *Shared) reviewOne(ctx context.Context, svc *service.Service, pool ipam.ID) error {
	cl, err := ledger.Look(ctx, svc.Ledger, func(c *ledger.Change) (*claimed, error) { return claimedOf(c, pool) })
	if err != nil {
		return err
	}
	if cl.none() {
		s.turn.Lock()
		defer s.turn.Unlock()
		notes, then := s.withoutHeadroom(pool)
		return s.keep(ctx, notes, then)
	}
	surplus, free, err := s.agree(ctx, pool, cl)
	if err != nil {
		return err
	}
	if len(surplus) > 0 {
		if err := allocator.GiveHeadroom(ctx, svc.Ledger, pool, surplus); err != nil {
			return err
		}
	}
	if free >= cl.Wanted || !s.mayClaim(pool) {
		return nil
	}
	leases, err := allocator.ClaimHeadroom(ctx, svc.Ledger, pool, cl.Wanted)
	if errors.Is(err, ipam.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(leases) < cl.Wanted {
		s.claimLater(pool)
	}
	return s.adopt(ctx, pool, leases)
}

// agree adjusts what this host knows of an attachment's headroom to the shared store. It forgets addresses that are no
// longer claimed. It adds claimed addresses that a crash or a lost answer left. It also forgets surplus and unfit
// addresses, and returns them for release in the shared store. free is the number of addresses that can still be
// leased.
func (s *Shared) agree(ctx context.Context, pool ipam.ID,
	cl *claimed) (surplus map[netip.Addr]uint64, free int, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isQueued(queuedRelease{Pool: pool}) {
		// the attachment ends in the shared store, together with its leases
		return nil, cl.Wanted, nil
	}
	if err := s.setFacts(ctx, pool, cl.headroomFacts); err != nil {
		return nil, 0, err
	}
	known := s.headroomOf(pool).addrs
	changed, surplus := unclaimed(known, cl.leases), map[netip.Addr]uint64{}
	for _, addr := range s.keepingOrder(known, cl) {
		one, knows := known[addr]
		knows = knows && one.Lease == cl.leases[addr]
		switch {
		case knows && !one.free(): // held, and reported next
		case cl.unfit[addr] || free >= cl.Wanted:
			if knows && ipam.Quarantined(one.Released.Add(cl.Quarantine), s.now()) {
				continue // its quarantine still runs
			}
			surplus[addr] = cl.leases[addr]
			if knows {
				changed[addr] = nil
			}
		default:
			free++
			if !knows {
				changed[addr] = &headroomAddr{Lease: cl.leases[addr]}
			}
		}
	}
	return surplus, free, s.setAddrs(ctx, pool, changed)
}

// unclaimed returns the free addresses that are not among the claimed leases, as changes that forget them.
func unclaimed(known map[netip.Addr]headroomAddr, leases map[netip.Addr]uint64) map[netip.Addr]*headroomAddr {
	changed := map[netip.Addr]*headroomAddr{}
	for addr, one := range known {
		if one.free() && leases[addr] != one.Lease {
			changed[addr] = nil
		}
	}
	return changed
}

// dropUnclaimed forgets the free addresses that are not claimed; with nil, all free ones.
func (s *Shared) dropUnclaimed(ctx context.Context, all map[ipam.ID]*claimed) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	gone := map[ipam.ID]map[netip.Addr]*headroomAddr{}
	for pool, hr := range s.headroom {
		var leases map[netip.Addr]uint64
		if cl := all[pool]; cl != nil {
			leases = cl.leases
		}
		gone[pool] = unclaimed(hr.addrs, leases)
	}
	s.mu.Unlock()
	return s.setAllAddrs(ctx, gone)
}

// keepingOrder lists the claimed addresses, those to keep first. Known addresses come before unknown ones, and lower
// ones before higher ones.
func (s *Shared) keepingOrder(known map[netip.Addr]headroomAddr, cl *claimed) []netip.Addr {
	all := allocator.SortedAddrs(cl.leases)
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		_, knowsA := known[a]
		_, knowsB := known[b]
		return edit.BoolCompare(!knowsA, !knowsB)
	})
	return all
}

// adopt adds claimed addresses to the headroom.
func (s *Shared) adopt(ctx context.Context, pool ipam.ID, leases map[netip.Addr]uint64) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	hr := s.headroomOf(pool)
	if hr == nil {
		return nil // the pool was released meanwhile, and the addresses with it
	}
	changed := map[netip.Addr]*headroomAddr{}
	for addr, lease := range leases {
		if one, ok := hr.addrs[addr]; !ok || one.Lease != lease && one.free() {
			changed[addr] = &headroomAddr{Lease: lease}
		}
	}
	return s.setAddrs(ctx, pool, changed)
}

// mayClaim reports whether a claim for an attachment may succeed. It waits a while after a claim that found nothing
// free.
func (s *Shared) mayClaim(pool ipam.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	hr := s.headroom[pool]
	return hr != nil && time.Since(hr.exhausted) >= claimAgain
}

func (s *Shared) claimLater(pool ipam.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hr := s.headroom[pool]; hr != nil {
		hr.exhausted = time.Now()
	}
}

// giveBack releases all headroom of a host that leaves the cluster. Headroom in use becomes a lease of its holder.
func (s *Shared) giveBack(ctx context.Context, svc *service.Service) error {
	for {
		if err := s.tellInTurn(ctx, svc); err != nil {
			return err
		}
		if err := s.dropUnclaimed(ctx, nil); err != nil { // first here, then in the shared store
			return err
		}
		if s.keeps() {
			continue // an address was leased meanwhile
		}
		all, err := allClaimed(ctx, svc.Ledger)
		if err != nil {
			return err
		}
		for pool, cl := range all {
			if err := allocator.GiveHeadroom(ctx, svc.Ledger, pool, cl.leases); err != nil {
				return err
			}
		}
		return nil
	}
}
