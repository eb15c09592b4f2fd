package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"berth/store"
)

// fromHeadroom answers a request out of the headroom of its attachment. Who has the address is durable before the answer. The zero
// prefix is no answer: there is no headroom that suits. svc is nil where the shared store was not opened yet.
func (s *Shared) fromHeadroom(ctx context.Context, svc *Service, req AddressRequest) (netip.Prefix, error) {
	if req.Gateway || s.stockOf(req.Pool) == nil {
		return netip.Prefix{}, nil
	}
	suits := func(netip.Addr, uint64) bool { return true }
	if svc != nil {
		if svc.hostState() != "" {
			return netip.Prefix{}, nil
		}
		fit, err := svc.fitHeadroom(ctx, req)
		if err != nil {
			return netip.Prefix{}, err
		}
		suits = func(addr netip.Addr, lease uint64) bool { return fit[addr] == lease }
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	st := s.stockOf(req.Pool) // as it is now
	if st == nil {
		return netip.Prefix{}, nil
	}
	addr, ok := st.choose(&req, s.now(), suits)
	if !ok {
		return netip.Prefix{}, nil
	}
	sp := spare{Lease: st.spares[addr].Lease, Use: &use{Kind: kindOfUse(req), MAC: req.MAC, Name: req.Name, Since: s.now().UTC()}}
	if err := s.setSpares(ctx, req.Pool, map[netip.Addr]*spare{addr: &sp}); err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(addr, st.CIDR.Bits()), nil
}

// kindOfUse is the kind that the lease is to have: as without headroom (kindOf).
func kindOfUse(req AddressRequest) Kind {
	switch {
	case !req.Preferred.IsValid():
		return Automatic
	case req.MAC == (MAC{}) && req.Name == "":
		return Auxiliary
	}
	return Static
}

// fitHeadroom tells which headroom of an attachment a request may be given, with the ids of the leases: what lies in the pools
// that are for who asks. Where an address is reserved for him it is refused, because only the shared store can give that. It
// is read from the state as it is known here.
func (s *Service) fitHeadroom(ctx context.Context, req AddressRequest) (fit map[netip.Addr]uint64, err error) {
	err = s.look(ctx, func(c *change) error {
		fit = map[netip.Addr]uint64{}
		t, err := c.target(req.Pool)
		if err != nil {
			return err
		}
		n := c.ix.network(t.sub.Network)
		if n == nil || n.checkAutomatic() != nil {
			return nil
		}
		who := n.meaning(req.Name)
		if !req.Preferred.IsValid() {
			r, err := t.reservedFor(who, req.MAC)
			if err != nil {
				return err
			}
			if r != nil {
				return &refusal{ErrAway, fmt.Sprintf("%s is reserved for %s, and only the shared store can give it, which is out of reach: `berth status` tells since when and why",
					r.Address, r.Reservation.Owner)}
			}
			t.byRule(who)
		}
		for addr := range t.sx.headroom[t.at.ID] {
			l, err := t.lease(t.sub.ID, addr)
			if err != nil {
				return err
			}
			fits := t.inPools(addr)
			if req.Preferred.IsValid() {
				fits = t.checkWanted(addr) == nil
			}
			if fits && l.Held() && l.Kind == Headroom && l.Reservation == nil {
				fit[addr] = l.ID
			}
		}
		return nil
	})
	return fit, err
}

// releaseSpare ends the use of an address of the headroom, and tells whether it is one. What the shared store has not been told of
// is headroom again at once.
func (s *Shared) releaseSpare(ctx context.Context, pool ID, addr netip.Addr) (is bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	sp, ok := s.spareAt(pool, addr)
	if !ok || !sp.used() {
		return ok, nil // nobody has it
	}
	sp.Released = s.now().UTC()
	return true, s.setSpares(ctx, pool, map[netip.Addr]*spare{addr: &sp})
}

// usesPage is what the store is told next of the headroom in use, in one transaction.
func (s *Shared) usesPage() (page []headroomUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pool, st := range s.stocks {
		for _, addr := range st.uses() {
			if len(page) == claimPage {
				return page
			}
			page = append(page, st.spares[addr].asUse(pool, addr))
		}
	}
	return page
}

func (sp spare) asUse(pool ID, addr netip.Addr) headroomUse {
	return headroomUse{pool: pool, addr: addr, lease: sp.Lease, use: *sp.Use, released: !sp.Released.IsZero()}
}

// tellUses tells the store who has headroom in use. First it is noted that the store was told: from then on, until the outcome is
// known, a release is one that the store is to be told of, too.
func (s *Shared) tellUses(ctx context.Context, svc *Service, page []headroomUse) error {
	page, err := s.markTold(ctx, page)
	if err != nil || len(page) == 0 {
		return err
	}
	lost, err := svc.settleUses(ctx, page)
	switch {
	case isAway(err): // nothing was written
		return errors.Join(err, s.unmarkTold(ctx, page))
	case hopeless(err) && len(page) > 1:
		for i := range page {
			if err := s.tellUses(ctx, svc, page[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case hopeless(err):
		lost = []int{0}
	case err != nil:
		return err
	}
	for _, i := range lost {
		s.warn(lostUse(&page[i], err))
	}
	return s.forgetUses(ctx, page)
}

func lostUse(u *headroomUse, err error) error {
	if err == nil {
		err = fmt.Errorf("%w: it is no longer claimed for this host", ErrChanged)
	}
	return fmt.Errorf("%s was given out of the headroom (pool %s, MAC %s, name %q), and the shared store does not have it so: somebody else may have the same address; "+
		"stop that container, or look with `berth check`: %w", u.addr, u.pool, u.use.MAC, u.use.Name, err)
}

// markTold notes that the store is told of uses, and returns them as they are now, less those that have gone.
func (s *Shared) markTold(ctx context.Context, page []headroomUse) (now []headroomUse, err error) {
	return now, s.changeUses(ctx, page, func(u headroomUse, sp *spare) *spare {
		u = sp.asUse(u.pool, u.addr) // it may be another's by now; from here on it stays
		u.again = sp.Told
		now = append(now, u)
		sp.Told = true
		return sp
	})
}

// unmarkTold notes that the store was not told of uses, those excepted of which it was told before.
func (s *Shared) unmarkTold(ctx context.Context, page []headroomUse) error {
	return s.changeUses(ctx, page, func(u headroomUse, sp *spare) *spare {
		sp.Told = u.again
		return sp
	})
}

// forgetUses forgets uses that the store has taken in, unless they have ended since it was told of them.
func (s *Shared) forgetUses(ctx context.Context, page []headroomUse) error {
	return s.changeUses(ctx, page, func(u headroomUse, sp *spare) *spare {
		if u.released != !sp.Released.IsZero() {
			return sp
		}
		return nil
	})
}

// changeUses makes of each use that is there still what change makes of it; nil: it goes.
func (s *Shared) changeUses(ctx context.Context, page []headroomUse, change func(headroomUse, *spare) *spare) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	changed := map[ID]map[netip.Addr]*spare{}
	for _, u := range page {
		sp, ok := s.spareAt(u.pool, u.addr)
		if !ok || sp.free() || sp.Lease != u.lease {
			continue
		}
		before := sp
		if after := change(u, &sp); after == nil || *after != before {
			if changed[u.pool] == nil {
				changed[u.pool] = map[netip.Addr]*spare{}
			}
			changed[u.pool][u.addr] = after
		}
	}
	for pool, spares := range changed {
		if err := s.setSpares(ctx, pool, spares); err != nil {
			return err
		}
	}
	return nil
}

// isUnknown tells whether a request may have been carried out.
func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }
