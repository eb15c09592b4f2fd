package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// fromHeadroom answers a request out of the headroom of its attachment. Who has the address is durable before the
// answer. The zero prefix is no answer: there is no headroom that suits. svc is nil where the shared store was not
// opened yet.
func (s *Shared) fromHeadroom(ctx context.Context, svc *service.Service,
	req ipam.AddressRequest) (netip.Prefix, error) {
	if req.Gateway || s.headroomOf(req.Pool) == nil {
		return netip.Prefix{}, nil
	}
	suits, known := func(netip.Addr, uint64) bool { return true }, new(ipam.Known)
	var at *ipam.Attachment
	if svc != nil {
		if hostState(svc.Ledger) != "" {
			return netip.Prefix{}, nil
		}
		fit, err := fitHeadroom(ctx, svc.Ledger, req)
		if err != nil {
			return netip.Prefix{}, err
		}
		at, known = svc.Ledger.Attachment(req.Pool), svc.Ledger.Known()
		suits = func(addr netip.Addr, lease uint64) bool { return fit[addr] == lease }
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.untrusted(); err != nil {
		return netip.Prefix{}, err
	}
	hr := s.headroomOf(req.Pool) // as it is now
	if hr == nil {
		return netip.Prefix{}, nil
	}
	addr, ok, err := chooseHeadroom(hr, &req, s.now(), suits, known)
	if err != nil || !ok {
		return netip.Prefix{}, err
	}
	holder := &allocator.HeadroomHolder{Kind: allocator.KindOf(req, at, s.now()), MAC: req.MAC, Name: req.Name,
		Container: known.ContainerOf(req.Name), Since: s.now().UTC()}
	one := headroomAddr{Lease: hr.addrs[addr].Lease, Holder: holder}
	if err := s.setAddrs(ctx, req.Pool, map[netip.Addr]*headroomAddr{addr: &one}); err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(addr, hr.CIDR.Bits()), nil
}

// usedBefore gives an endpoint the address of the headroom again that it has lost; the zero prefix where there is none.
// From now on it is in use.
func (s *Shared) usedBefore(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	hr := s.headroomOf(req.Pool)
	if hr == nil {
		return netip.Prefix{}, nil
	}
	lost, err := hr.lost(&req, s.started)
	if err != nil || lost == nil {
		return netip.Prefix{}, err
	}
	addr := lost.Address
	one := hr.addrs[addr]
	again := *one.Holder
	again.Since = s.now().UTC()
	one.Holder, one.LeftBehind = &again, false
	if err := s.setAddrs(ctx, req.Pool, map[netip.Addr]*headroomAddr{addr: &one}); err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(addr, hr.CIDR.Bits()), nil
}

// leaveBehind puts in doubt what was given to a start whose IPv6 address was refused, as Service.leaveBehind does, out
// of the headroom as well.
func (s *Shared) leaveBehind(ctx context.Context, req ipam.AddressRequest) {
	svc, err := s.service()
	if err != nil || req.MAC == (ipam.MAC{}) || req.Gateway || !allocator.IsIPv6(svc.Ledger, req.Pool) {
		return
	}
	allocator.LeaveBehind(ctx, svc.Ledger, req)
	s.turn.Lock()
	defer s.turn.Unlock()
	for pool, addr := range s.usesOf(&req) {
		one, ok := s.addrAt(pool, addr)
		if !ok || !one.heldBy(&req) || s.now().Sub(one.Holder.Since) > allocator.OtherFamilyTime {
			continue
		}
		one.LeftBehind = true
		if err := s.setAddrs(context.WithoutCancel(ctx), pool, map[netip.Addr]*headroomAddr{addr: &one}); err != nil {
			s.warn(fmt.Errorf("%s was left behind by a start that was refused its IPv6 address, and that could not be "+
				"written down: %w", addr, err))
		}
	}
}

// usesOf are the IPv4 addresses of the headroom that the endpoint of req has, by attachment.
func (s *Shared) usesOf(req *ipam.AddressRequest) map[ipam.ID]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[ipam.ID]netip.Addr{}
	for pool, hr := range s.headroom {
		for addr, one := range hr.addrs {
			if addr.Is4() && one.heldBy(req) {
				all[pool] = addr
			}
		}
	}
	return all
}

// fitHeadroom tells which headroom of an attachment a request may be given, with the ids of the leases: what lies in
// the pools that are for who asks. Where an address is reserved for him it is refused, because only the shared store
// can give that. It is read from the state as it is known here.
func fitHeadroom(ctx context.Context, s *ledger.Ledger,
	req ipam.AddressRequest) (fit map[netip.Addr]uint64, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		fit = map[netip.Addr]uint64{}
		t, err := allocator.OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		n := c.Index().Network(t.Sub.Network)
		if n == nil || n.CheckAutomatic() != nil {
			return nil
		}
		who := n.Meaning(req.Name)
		if !req.Preferred.IsValid() {
			r, err := t.ReservedFor(who, req.MAC)
			if err != nil {
				return err
			}
			if r != nil {
				return ipam.Help(ipam.Refuse(ipam.ErrAway,
					"%s is reserved for %s, and only the shared store can give it, which is "+
						"out of reach",
					r.Address, r.Reservation.Owner), ipam.Advise(ipam.DoShowStatus))
			}
			t.ByRule(who)
		}
		for addr := range t.Sx.Headroom(t.At.ID) {
			l, err := t.Lease(t.Sub.ID, addr)
			if err != nil {
				return err
			}
			fits := t.InPools(addr)
			if req.Preferred.IsValid() {
				fits = t.CheckWanted(addr) == nil
			}
			if fits && l.Held() && l.Kind == ipam.Headroom && l.Reservation == nil {
				fit[addr] = l.ID
			}
		}
		return nil
	})
	return fit, err
}

// releaseHeadroom ends the use of an address of the headroom, and tells whether it is one. What the shared store has
// not been told of is headroom again at once.
func (s *Shared) releaseHeadroom(ctx context.Context, pool ipam.ID, addr netip.Addr) (is bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	one, ok := s.addrAt(pool, addr)
	if !ok || !one.held() {
		return ok, nil // nobody has it
	}
	one.Released = s.now().UTC()
	return true, s.setAddrs(ctx, pool, map[netip.Addr]*headroomAddr{addr: &one})
}

// usesPage is what the store is told next of the headroom in use, in one transaction.
func (s *Shared) usesPage() (page []allocator.HeadroomUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pool, hr := range s.headroom {
		for _, addr := range hr.toTell() {
			if len(page) == allocator.ClaimPage {
				return page
			}
			page = append(page, asUse(hr.addrs[addr], pool, addr))
		}
	}
	return page
}

func asUse(one headroomAddr, pool ipam.ID, addr netip.Addr) allocator.HeadroomUse {
	return allocator.HeadroomUse{Pool: pool, Addr: addr, Lease: one.Lease, Holder: *one.Holder,
		Released: !one.Released.IsZero()}
}

// tellUses tells the store who has headroom in use. First it is noted that the store was told: from then on, until the
// outcome is known, a release is one that the store is to be told of, too.
func (s *Shared) tellUses(ctx context.Context, svc *service.Service, page []allocator.HeadroomUse) error {
	page, err := s.markTold(ctx, page)
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return nil
	}
	lost, err := allocator.SettleUses(ctx, svc.Ledger, page)
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

func lostUse(u *allocator.HeadroomUse, err error) error {
	if err == nil {
		err = fmt.Errorf("%w: it is no longer claimed for this host", ipam.ErrChanged)
	}
	return ipam.Help(fmt.Errorf("%s was given out of the headroom (pool %s, MAC %s, name %q), and the shared "+
		"store does "+
		"not have it so: "+
		"somebody else may have the same address; stop that container: %w", u.Addr, u.Pool, u.Holder.MAC,
		u.Holder.Name, err),
		ipam.Advise(ipam.DoRunCheck))
}

// markTold notes that the store is told of uses, and returns them as they are now, less those that have gone.
func (s *Shared) markTold(ctx context.Context, page []allocator.HeadroomUse) (now []allocator.HeadroomUse, err error) {
	return now, s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		u = asUse(*one, u.Pool, u.Addr) // it may be another's by now; from here on it stays
		u.Again, u.Sure = one.Told, one.held() && !one.mayBeLost(s.started)
		now = append(now, u)
		one.Told = true
		return one
	})
}

// unmarkTold notes that the store was not told of uses, those excepted of which it was told before.
func (s *Shared) unmarkTold(ctx context.Context, page []allocator.HeadroomUse) error {
	return s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		one.Told = u.Again
		return one
	})
}

// forgetUses forgets uses that the store has taken in, unless they have ended, or begun anew, since it was told of
// them.
func (s *Shared) forgetUses(ctx context.Context, page []allocator.HeadroomUse) error {
	return s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		if u.Released != !one.Released.IsZero() || !u.Holder.Since.Equal(one.Holder.Since) {
			return one
		}
		return nil
	})
}

// changeUses makes of each use that is there still what change makes of it; nil: it goes.
func (s *Shared) changeUses(ctx context.Context, page []allocator.HeadroomUse,
	change func(allocator.HeadroomUse, *headroomAddr) *headroomAddr) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	changed := map[ipam.ID]map[netip.Addr]*headroomAddr{}
	for _, u := range page {
		one, ok := s.addrAt(u.Pool, u.Addr)
		if !ok || one.free() || one.Lease != u.Lease {
			continue
		}
		before := one
		if after := change(u, &one); after == nil || *after != before {
			if changed[u.Pool] == nil {
				changed[u.Pool] = map[netip.Addr]*headroomAddr{}
			}
			changed[u.Pool][u.Addr] = after
		}
	}
	for pool, addrs := range changed {
		if err := s.setAddrs(ctx, pool, addrs); err != nil {
			return err
		}
	}
	return nil
}

// isUnknown tells whether a request may have been carried out.
func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }
