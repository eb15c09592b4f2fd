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

// fromHeadroom answers a request from the headroom of its attachment. The holder is durable before the answer. It
// returns the zero prefix if no headroom suits. svc is nil if the shared store was not opened yet.
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

// usedBefore leases a headroom address again to the endpoint that lost it. It returns the zero prefix if there is none.
// The address is in use from now on.
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

// leaveBehind marks as doubtful the leases of a start whose IPv6 address was refused. It is allocator.LeaveBehind, with
// headroom as well.
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
			s.warn(fmt.Errorf("%s is left from a start that got no IPv6 address, and Berth could not record that: "+
				"%w", addr, err))
		}
	}
}

// usesOf returns the IPv4 headroom addresses that the endpoint of req has, by attachment.
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

// fitHeadroom returns the headroom of an attachment that a request may get, with the ids of the leases. It lies in the
// pools for the requester. If the requester has a reservation it refuses, because only the shared store can lease that.
// It reads the state as known here.
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
			r, err := t.ReservedFor(who, &req)
			if err != nil {
				return err
			}
			if r != nil {
				return ipam.Refuse(ipam.ErrAway,
					"%s is reserved for %s; only the shared store can give that address, and the store is out of reach",
					r.Address, r.Reservation.Owner).Advise(ipam.DoShowStatus)
			}
			t.ByRule(who)
		}
		for addr := range t.Sx.Headroom(t.At.ID) {
			l, err := t.Record(addr)
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

// releaseHeadroom ends the use of a headroom address, and reports whether the address is one. If the use was not
// reported to the shared store, the address is free headroom at once.
func (s *Shared) releaseHeadroom(ctx context.Context, pool ipam.ID, addr netip.Addr) (is bool, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	one, ok := s.addrAt(pool, addr)
	if !ok || !one.held() {
		return ok, nil // nobody has it
	}
	one.Released = s.now().UTC()
	changed := map[netip.Addr]*headroomAddr{addr: &one}
	notes, err := addrNotes(pool, changed)
	if err != nil {
		return true, err
	}
	return true, s.keepRelease(ctx, notes, func(bool) { s.changeAddrs(pool, changed) })
}

// usesPage returns the uses of headroom to report next, in one transaction.
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

// tellUses reports to the store who has headroom in use. It first records that it reports them. A release before the
// outcome is known must then be reported, too.
func (s *Shared) tellUses(ctx context.Context, svc *service.Service, page []allocator.HeadroomUse) error {
	page, err := s.markReported(ctx, page)
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return nil
	}
	lost, err := allocator.SettleUses(ctx, svc.Ledger, page)
	switch {
	case isAway(err): // nothing was written
		return errors.Join(err, s.unmarkReported(ctx, page))
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
		err = fmt.Errorf("%w: the address is no longer claimed for this host", ipam.ErrChanged)
	}
	return ipam.Help(fmt.Errorf("%s was given from the headroom (pool %s, MAC %s, name %q), but the shared store "+
		"does not record it: another container may have the same address; stop that container: "+
		"%w", u.Addr, u.Pool, u.Holder.MAC,
		u.Holder.Name, err),
		ipam.Advise(ipam.DoRunCheck))
}

// markReported records that uses are being reported, and returns their current state. It omits uses that are gone.
func (s *Shared) markReported(ctx context.Context,
	page []allocator.HeadroomUse) (now []allocator.HeadroomUse, err error) {
	return now, s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		u = asUse(*one, u.Pool, u.Addr) // another holder may have it by now; from here on it stays
		u.Again, u.Sure = one.Told, one.held() && !one.mayBeLost(s.started)
		now = append(now, u)
		one.Told = true
		return one
	})
}

// unmarkReported records that uses were not reported, except those that were reported before.
func (s *Shared) unmarkReported(ctx context.Context, page []allocator.HeadroomUse) error {
	return s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		one.Told = u.Again
		return one
	})
}

// forgetUses deletes uses that the store has. It keeps uses that have ended or begun again since the report.
func (s *Shared) forgetUses(ctx context.Context, page []allocator.HeadroomUse) error {
	return s.changeUses(ctx, page, func(u allocator.HeadroomUse, one *headroomAddr) *headroomAddr {
		if u.Released != !one.Released.IsZero() || !u.Holder.Since.Equal(one.Holder.Since) {
			return one
		}
		return nil
	})
}

// changeUses applies change to each use that still exists; nil deletes the use.
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
	return s.setAllAddrs(ctx, changed)
}

// isUnknown reports whether a request may have been carried out.
func isUnknown(err error) bool { return errors.Is(err, store.ErrUnknown) }
