package ipam

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// claimed is how it stands with an attachment's headroom in the shared store.
type claimed struct {
	stockFacts
	leases map[netip.Addr]uint64 // with their ids
	unfit  map[netip.Addr]bool   // those of them that are to be given out no more: excluded since, or reserved
}

// headroom tells what there should be of it for each attachment of this host, and what there is. Attachments that neither
// have nor should have any are left out. A swarm manager's are, too: it asks for all it has again through others (heir.go).
func (s *Service) headroom(ctx context.Context) (all map[ID]*claimed, err error) {
	err = s.look(ctx, func(c *change) error {
		all = map[ID]*claimed{}
		for id, known := range c.ix.attachments {
			if known.value.Host != s.host {
				continue
			}
			cl, err := c.claimed(id)
			if err != nil {
				return err
			}
			if cl != nil {
				all[id] = cl
			}
		}
		return nil
	})
	return all, err
}

// headroomOf is headroom of one attachment; nil where it neither has nor should have any.
func (s *Service) headroomOf(ctx context.Context, pool ID) (cl *claimed, err error) {
	err = s.look(ctx, func(c *change) (err error) {
		cl, err = c.claimed(pool)
		return err
	})
	return cl, err
}

func (c *change) claimed(pool ID) (*claimed, error) {
	t, err := c.target(pool)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cl, err := t.claimed()
	if err != nil || cl.Wanted == 0 && len(cl.leases) == 0 {
		return nil, err
	}
	return cl, nil
}

func (t *target) claimed() (*claimed, error) {
	cl := &claimed{stockFacts: stockFacts{Space: t.sub.Space, CIDR: t.sub.CIDR}, unfit: map[netip.Addr]bool{}}
	n := t.ix.network(t.sub.Network)
	if n != nil {
		cl.Network, cl.Forget, cl.Quarantine = n.Name, n.Policy.Forget, n.Policy.Quarantine
	}
	h := t.ix.hosts[t.host].value
	if n != nil && n.Type == Manual && !t.at.Swarm && (h == nil || h.State == "") {
		cl.Wanted = n.Headroom
	}
	var err error
	if cl.leases, err = t.headroomOf(); err != nil {
		return nil, err
	}
	for addr := range cl.leases {
		l, err := t.lease(t.sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if l.reserved() != nil || !t.inPools(addr) {
			cl.unfit[addr] = true
		}
	}
	return cl, nil
}

// review makes the headroom what it should be. Whoever has something to tell the store comes between any two attachments.
func (s *Shared) review(ctx context.Context, svc *Service) error {
	all, err := svc.headroom(ctx)
	if err != nil {
		return err
	}
	for _, pool := range s.unlike(all) {
		if err := s.inTellingTurn(ctx, func() error { return s.reviewStock(ctx, svc, pool) }); err != nil {
			return err
		}
	}
	return nil
}

// unlike lists the attachments whose headroom is not what it should be, or not as this host knows it.
func (s *Shared) unlike(all map[ID]*claimed) (pools []ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pool := range s.stocks {
		if all[pool] == nil {
			pools = append(pools, pool)
		}
	}
	for pool, cl := range all {
		if st := s.stocks[pool]; st == nil || !st.is(cl) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// is tells whether the headroom is what it should be.
func (st *stock) is(cl *claimed) bool {
	free := 0
	for addr, sp := range st.spares {
		if sp.free() {
			free++
		}
		if sp.free() && (cl.leases[addr] != sp.Lease || cl.unfit[addr]) {
			return false
		}
	}
	for addr, lease := range cl.leases {
		if st.spares[addr].Lease != lease {
			return false
		}
	}
	return st.stockFacts == cl.stockFacts && (free == cl.Wanted || free < cl.Wanted && time.Since(st.exhausted) < claimAgain)
}

// reviewStock makes the headroom of one attachment what it should be. Whoever calls it has the token of telling.
func (s *Shared) reviewStock(ctx context.Context, svc *Service, pool ID) error {
	cl, err := svc.headroomOf(ctx, pool)
	if err != nil {
		return err
	}
	if cl == nil {
		return s.dropStock(ctx, pool)
	}
	surplus, free, err := s.agree(ctx, pool, cl)
	if err != nil {
		return err
	}
	if len(surplus) > 0 {
		if err := svc.giveHeadroom(ctx, pool, surplus); err != nil {
			return err
		}
	}
	if free >= cl.Wanted || !s.mayClaim(pool) {
		return nil
	}
	leases, err := svc.claimHeadroom(ctx, pool, cl.Wanted)
	if errors.Is(err, ErrNotFound) {
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

// agree makes what this host knows of an attachment's headroom agree with the shared store. It forgets what is not claimed any more;
// takes over what is, which a crash or a lost answer left; and forgets what is too much or unfit, which is returned, to be given back
// in the shared store. free is how many addresses are left that can be given out.
func (s *Shared) agree(ctx context.Context, pool ID, cl *claimed) (surplus map[netip.Addr]uint64, free int, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.isQueued(parting{Pool: pool}) {
		return nil, cl.Wanted, nil // it has none any more, and ends in the shared store with all that was taken through it
	}
	if err := s.setStock(ctx, pool, cl.stockFacts); err != nil {
		return nil, 0, err
	}
	known := s.stockOf(pool).spares
	changed, surplus := map[netip.Addr]*spare{}, map[netip.Addr]uint64{}
	for addr, sp := range known {
		if sp.free() && cl.leases[addr] != sp.Lease {
			changed[addr] = nil
		}
	}
	for _, addr := range s.keepingOrder(known, cl) {
		sp, knows := known[addr]
		knows = knows && sp.Lease == cl.leases[addr]
		switch {
		case knows && !sp.free(): // in somebody's hands, and told of next
		case cl.unfit[addr] || free >= cl.Wanted:
			if knows && sp.Released.Add(cl.Quarantine).After(s.now()) && !sp.Released.IsZero() {
				continue // until its quarantine is over
			}
			surplus[addr] = cl.leases[addr]
			if knows {
				changed[addr] = nil
			}
		default:
			free++
			if !knows {
				changed[addr] = &spare{Lease: cl.leases[addr]}
			}
		}
	}
	return surplus, free, s.setSpares(ctx, pool, changed)
}

// keepingOrder lists what is claimed, what is kept first before what is given back first: what the host knows of, the lowest
// first.
func (s *Shared) keepingOrder(known map[netip.Addr]spare, cl *claimed) []netip.Addr {
	all := sortedAddrs(cl.leases)
	slices.SortStableFunc(all, func(a, b netip.Addr) int {
		_, knowsA := known[a]
		_, knowsB := known[b]
		return boolCompare(!knowsA, !knowsB)
	})
	return all
}

// adopt takes over addresses that were claimed.
func (s *Shared) adopt(ctx context.Context, pool ID, leases map[netip.Addr]uint64) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	st := s.stockOf(pool)
	if st == nil {
		return nil // the pool was released meanwhile, and they with it
	}
	changed := map[netip.Addr]*spare{}
	for addr, lease := range leases {
		if sp, ok := st.spares[addr]; !ok || sp.Lease != lease && sp.free() {
			changed[addr] = &spare{Lease: lease}
		}
	}
	return s.setSpares(ctx, pool, changed)
}

// mayClaim tells whether it makes sense to claim for an attachment: not soon after nothing was free.
func (s *Shared) mayClaim(pool ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stocks[pool]
	return st != nil && time.Since(st.exhausted) >= claimAgain
}

func (s *Shared) claimLater(pool ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.stocks[pool]; st != nil {
		st.exhausted = time.Now()
	}
}

// dropSpares forgets all headroom that nobody has in use.
func (s *Shared) dropSpares(ctx context.Context) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	gone := map[ID]map[netip.Addr]*spare{}
	for pool, st := range s.stocks {
		gone[pool] = map[netip.Addr]*spare{}
		for addr, sp := range st.spares {
			if sp.free() {
				gone[pool][addr] = nil
			}
		}
	}
	s.mu.Unlock()
	for pool, spares := range gone {
		if err := s.setSpares(ctx, pool, spares); err != nil {
			return err
		}
	}
	return nil
}

// giveBack gives all headroom of this host back: a host that leaves the cluster does. What is in use becomes the lease of who has
// it.
func (s *Shared) giveBack(ctx context.Context, svc *Service) error {
	for {
		if err := s.tellInTurn(ctx, svc); err != nil {
			return err
		}
		if err := s.dropSpares(ctx); err != nil { // before they are given back in the shared store
			return err
		}
		if s.keeps() {
			continue // an address was given out meanwhile
		}
		all, err := svc.headroom(ctx)
		if err != nil {
			return err
		}
		for pool, cl := range all {
			if err := svc.giveHeadroom(ctx, pool, cl.leases); err != nil {
				return err
			}
		}
		return nil
	}
}
