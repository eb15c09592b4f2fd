package allocator

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// RequestAddress leases an address and returns it with its subnet's prefix length. The lease is on disk by then.
// An address of one endpoint is never given to a second, whatever MAC or name that sends. An endpoint that lost its
// address gets it again at its next start (Target.repeats). A preferred address is given or refused with the reason.
func (s Allocator) RequestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	if err := s.MakeWaiting(ctx); err != nil {
		return netip.Prefix{}, err
	}
	given, _, err := RequestAddress(ctx, s.homes.Own, req)
	if err != nil {
		LeaveBehind(ctx, s.homes.Own, req)
	}
	return given, err
}

// RequestAddress is Allocator.RequestAddress on one ledger. It also returns the lease that was made, even with
// store.ErrUnknown; nil if there was none.
func RequestAddress(ctx context.Context, s *ledger.Ledger, req ipam.AddressRequest) (given netip.Prefix,
	made *ipam.Lease, err error) {
	if fromDHCP(s, &req) {
		return requestDHCP(ctx, s, req)
	}
	ask(ctx, s, &req)
	err = Update(ctx, s, func(c *ledger.Change) error {
		made = nil
		if err := c.MayTake(); err != nil {
			return err
		}
		t, err := OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		if err := t.Revive(); err != nil {
			return err
		}
		var addr netip.Addr
		switch {
		case req.Gateway:
			addr, err = t.takeGateway(req)
		case req.Preferred.IsValid():
			addr, err = t.takePreferred(req)
		default:
			addr, err = t.takeAny(req)
		}
		given, made = netip.PrefixFrom(addr, t.Sub.CIDR.Bits()), t.Made
		return err
	})
	if err != nil {
		given = netip.Prefix{}
	}
	return given, made, err
}

// ReleaseAddress is Allocator.ReleaseAddress (waiting.go) on one ledger. It also returns the id of the lease that it ended, even
// with store.ErrUnknown; 0 if there was none.
func ReleaseAddress(ctx context.Context, s *ledger.Ledger, pool ipam.ID, addr netip.Addr) (ended uint64, err error) {
	others := othersWith(s, pool, addr)
	err = s.Update(ctx, func(c *ledger.Change) (err error) {
		if len(others) > 0 {
			ended, err = handOver(c, pool, addr, others)
		} else {
			ended, err = GiveFree(c, pool, addr, 0)
		}
		return err
	})
	return ended, err
}

// othersWith tells the witness of a release, and returns the containers that still run with the address.
func othersWith(s *ledger.Ledger, pool ipam.ID, addr netip.Addr) []ipam.Container {
	at := s.Attachment(pool)
	if at == nil || s.Known().Left == nil {
		return nil
	}
	return s.Known().Left(at.Space, at.CIDR, addr)
}

// takeAny chooses an address in the order of the design: the requester's own, then its last one. Then each pool gives
// its lowest address that was never used, or the one released longest ago.
func (t *Target) takeAny(req ipam.AddressRequest) (netip.Addr, error) {
	// the lease of a container that comes back is like a memory, so a reservation comes before it
	lost, err := t.Repeated(&req, func(l *ipam.Lease) bool { return !t.comesBack(&req, l) })
	if err != nil {
		return netip.Addr{}, err
	}
	if lost != nil {
		return lost.Address, t.takeOver(req, lost)
	}
	addr, before, err := t.guess(&req)
	if err == nil && !addr.IsValid() {
		addr, before, err = t.choose(&req)
	}
	if err != nil {
		return netip.Addr{}, err
	}
	return addr, t.take(req, addr, before, ipam.Automatic)
}

// takePreferred takes the requested address, anywhere in the subnet. A quarantine does not matter: it only limits which
// addresses are chosen, and a container with an address of its own must get it again when it is restarted. Engines
// before 29 do not name the container, so Berth cannot tell the last holder from others.
func (t *Target) takePreferred(req ipam.AddressRequest) (netip.Addr, error) {
	addr := req.Preferred
	if err := t.CheckHost(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.Record(addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if req.Hint.Sure {
			req.TakeHint()
		}
		if t.repeats(req, held) {
			return addr, t.takeOver(req, held)
		}
		return addr, t.replay(req, held)
	}
	if by, runs := t.runsElsewhere(addr, cmp.Or(req.Name, req.Hint.Name)); runs {
		return netip.Addr{}, runsError(t.Change, addr, by)
	}
	r := held.Reserved()
	switch {
	case r == nil:
		if err := t.CheckWanted(addr); err != nil {
			return netip.Addr{}, err
		}
	case surelyAuxiliary(&req, t.At) || !t.Index().Network(t.Sub.Network).CanBe(req, r.Owner):
		return netip.Addr{}, ReservedError(t.Change, addr, r)
	}
	req.TakeHint()
	// its owner may have it, even if it was excluded later
	return addr, t.take(req, addr, held, KindOf(req, t.At, t.Now()))
}

// take writes the lease and its event. before is the address's record in this transaction.
func (t *Target) take(req ipam.AddressRequest, addr netip.Addr, before *ipam.Lease, kind ipam.Kind) error {
	t.TakenSince(t.At.ID)
	if before.Held() { // its endpoint has lost it
		if _, err := t.Event(before.Event(ipam.LeaseReleased, t.Sub, "")); err != nil {
			return err
		}
	}
	if err := t.endLost(&req, addr); err != nil {
		return err
	}
	l := &ipam.Lease{Address: addr, Kind: kind, Attachment: t.At.ID, MAC: req.MAC, Name: req.Name,
		Container: t.Known().ContainerOf(req.Name), Guessed: req.Guessed && req.Name != "", Host: t.Host(),
		DHCP: t.DHCP, Reservation: before.Reserved()}
	if t.DHCP == nil && before != nil && before.Name == req.Name && before.MAC == req.MAC {
		l.DHCP = before.DHCP // the witness found who had it all the time
	}
	if l.Guessed {
		t.CountGuess()
	}
	e := l.Event(ipam.LeaseTaken, t.Sub, kind.String())
	if req.Guessed {
		e.Detail += " by a guess"
	}
	t.Made = l
	return t.create(l, before, e)
}

// create writes a new lease with its event. before is the address's record in this transaction.
func (t *Target) create(l, before *ipam.Lease, e *ipam.Event) error {
	id, err := t.Event(e)
	if err != nil {
		return err
	}
	l.ID, l.Since = id, t.TimeOf(id)
	return t.SetLease(t.Sub.ID, l.Address, before, l)
}

// takeOver ends a lease that its endpoint has lost, and leases the address to the next one in the same transaction.
func (t *Target) takeOver(req ipam.AddressRequest, held *ipam.Lease) error {
	req.TakeHint()
	return t.take(req, held.Address, held, held.Kind)
}

// auxiliaryTime is the maximum time between the requests for a pool and for its auxiliary addresses. The engine makes
// them at once.
const auxiliaryTime = time.Second

// KindOf is the kind of a new lease. It distinguishes a requested address from one that the network keeps for itself
// (`--aux-address`). An engine that sends neither MAC nor name uses the same words for both; requests right after the
// pool are the network's. The witness corrects errors (NameLeases). A swarm's manager sends neither for anything. at is
// nil if the store is unreachable, when no pool can be made.
func KindOf(req ipam.AddressRequest, at *ipam.Attachment, now time.Time) ipam.Kind {
	switch {
	case !req.Preferred.IsValid():
		return ipam.Automatic
	case req.MAC != (ipam.MAC{}) || req.Name != "" || at != nil && at.Swarm:
		return ipam.Static
	case req.Telling, at != nil && now.Sub(at.Created) <= auxiliaryTime:
		return ipam.Auxiliary
	}
	return ipam.Static
}

// surelyAuxiliary reports whether an endpoint would have sent a MAC or a name.
func surelyAuxiliary(req *ipam.AddressRequest, at *ipam.Attachment) bool {
	return req.MAC == (ipam.MAC{}) && req.Name == "" && !at.Swarm && req.Telling
}
